// SPDX-License-Identifier: Apache-2.0
// householder.hpp: the reference of the tests, a textbook Householder QR without blocks in long
// double. It shares no code with the program.
#pragma once

#include <vector>

#include "core/batch.hpp"

namespace qrtool::test {

/// Computes A (m x n) = Q R by Golub and Van Loan, algorithm 5.2.1, with LAPACK's choice of sign.
struct ReferenceQr {
  index_t m = 0, n = 0;
  std::vector<double> q;    // m x m, row-major
  std::vector<double> r;    // m x n, row-major
  std::vector<double> tau;  // k

  double q_at(index_t i, index_t j) const { return q[i * m + j]; }
  double r_at(index_t i, index_t j) const { return r[i * n + j]; }
};

template <class T>
ReferenceQr reference_qr(MatrixView<const T> a);

}  // namespace qrtool::test
