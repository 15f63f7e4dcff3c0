// SPDX-License-Identifier: Apache-2.0
// wide_least_norm.hpp: the x of least norm with T D x = c, where T (rank x n) has rows of full rank
// and columns of norm 1, and D, the sizes of columns, holds any powers of two. S is float64 or
// complex128.
//
//   D T^H P = Q [R; 0]      x = Q [R^-H P'c; 0]
//
// The rows of D T^H are sorted, the largest first, and the longest column that is left is taken:
// then errors of a row are relative to this row, so that x is that of a T whose columns have
// changed by rounding errors of their own size. Source: Cox, Higham, "Stability of Householder QR
// factorization for weighted least squares problems" (1998).
//
// D is kept apart, because its squares may leave the range: a reflector I - v v^H / h of D T^H is
// stored as u = D^-1 v and D^2 u, both divided by the largest size that is left.
#pragma once

#include <span>
#include <vector>

#include "core/solve/ranked/truncated_qr.hpp"

namespace qrtool {

template <class S>
class WideLeastNorm {
 public:
  using Matrix = typename TruncatedQr<S>::Matrix;
  using Vector = typename TruncatedQr<S>::Vector;

  /// adjoint: T^H (n x rank). sizes: the exponents of D.
  WideLeastNorm(const Matrix& adjoint, std::span<const int> sizes);

  /// Returns D x for c.
  std::vector<S> solution(const std::vector<S>& c) const;

 private:
  void factor(std::vector<int> sizes);
  bool clear_small_row(index_t k);

  index_t rank_;
  Matrix t_;                     // R, and below it u of each reflector
  Matrix weighted_;              // D^2 u
  Vector diagonal_;              // of R
  std::vector<double> factors_;  // 1 / h
  std::vector<index_t> rows_;    // row i is column rows_[i] of T
  std::vector<index_t> columns_;
};

}  // namespace qrtool
