// SPDX-License-Identifier: Apache-2.0
// complex_reference.hpp: the reference of the tests for complex matrices: a textbook Householder QR
// without blocks, and the errors of factors, in long double. It shares no code with the program.
#pragma once

#include <complex>
#include <random>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/report/ratios.hpp"

namespace qrtool::test {

/// Row-major, in long double.
struct ComplexMatrix {
  using Entry = std::complex<long double>;

  ComplexMatrix(index_t m, index_t n) : rows(m), cols(n), entries(m * n) {}
  template <class T>
  explicit ComplexMatrix(MatrixView<const std::complex<T>> a) : ComplexMatrix(a.rows, a.cols) {
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < cols; ++j) (*this)(i, j) = Entry(a(i, j).real(), a(i, j).imag());
  }
  Entry& operator()(index_t i, index_t j) { return entries[i * cols + j]; }
  const Entry& operator()(index_t i, index_t j) const { return entries[i * cols + j]; }

  index_t rows, cols;
  std::vector<Entry> entries;
};

/// A (m x n) = Q R by reflectors H = I - tau v v^H with LAPACK's choice (larfg): H_j^H zeroes
/// column j and makes the diagonal real, and Q = H_0 .. H_k-1.
struct ComplexReferenceQr {
  ComplexMatrix q, r;  // m x m, m x n
  std::vector<ComplexMatrix::Entry> tau;
};
ComplexReferenceQr complex_reference_qr(const ComplexMatrix& a);

/// The first `cols` columns of H_0 .. H_k-1 (LAPACK ungqr). The reflectors are below the diagonal
/// of `v`, tau is 1 x k.
ComplexMatrix q_of_reflectors(const ComplexMatrix& v, const ComplexMatrix& tau, index_t cols);

/// The residual and the orthogonality of factors, with complex norms, in parts of their bars
/// (core/report/ratios.hpp) for numbers of the type.
struct ComplexRatios {
  double residual, orthogonality;
};
ComplexRatios complex_ratios(const ComplexMatrix& a, const ComplexMatrix& q, const ComplexMatrix& r,
                             ElementType type);

/// The kinds of complex matrices that the tests draw, all of them finite.
const std::vector<std::string>& complex_kinds();
/// Fills `a` with a matrix of a kind.
template <class T>
void fill_complex(const std::string& kind, std::mt19937_64& generator,
                  MatrixView<std::complex<T>> a);

}  // namespace qrtool::test
