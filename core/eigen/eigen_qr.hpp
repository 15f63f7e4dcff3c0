// SPDX-License-Identifier: Apache-2.0
// eigen_qr.hpp: factors one row-major matrix on one thread, in the steps load and scale, factor,
// form Q, set signs, store.
#pragma once

#include <cstddef>
#include <memory>

#include "core/batch.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// The arrays for the factors of one matrix. Factors (core/backend/backend.hpp) has the arrays of a
/// chunk.
template <class T>
struct MatrixFactors {
  MatrixView<T> q, r, v, tau;
};

/// Factors matrices of one shape, one after another. Not thread-safe: each thread needs its own
/// object.
///
/// Every column is scaled by a power of two to a largest entry in [1/2, 1), and R's columns are
/// scaled back. Both steps are exact, so that factor(2^p A) = (Q, 2^p R) bit for bit, and each
/// column keeps its relative accuracy beside columns of very different size. float32 with fewer
/// than 16 rows is computed in float64 and rounded once, and complex64 in complex128.
template <class T>
class EigenQr {
 public:
  explicit EigenQr(const Problem& problem);
  ~EigenQr();
  EigenQr(EigenQr&&) noexcept;

  /// `a` is m x n and finite. Returns false if R exceeds the range of T; R then holds infinities.
  bool factor(MatrixView<const T> a, const MatrixFactors<T>& out);

  class Worker;

 private:
  std::unique_ptr<Worker> worker_;
};

/// Whether a problem of T is computed in float64.
bool computes_in_float64(const Problem& problem);
std::size_t eigen_qr_workspace_bytes(const Problem& problem);

}  // namespace qrtool
