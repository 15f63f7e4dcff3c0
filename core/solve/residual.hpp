// SPDX-License-Identifier: Apache-2.0
// residual.hpp: r = b - A x and g = A^H r in one pass over the rows of A.
#pragma once

#include <vector>

#include "core/matrix/complex_arithmetic.hpp"

namespace qrtool {

/// Sums over some rows: for each of the p right sides r^H r and b^H b, and the gradient g = A^H r
/// (n x p, row-major). The rows below `data_rows` are not data but terms of a penalty;
/// `data_squares` holds r^H r without them.
template <class S>
struct ResidualSums {
  ResidualSums() = default;
  ResidualSums(index_t n, index_t p)
      : r_squares(p), data_squares(p), b_squares(p), gradient(n * p) {}
  void clear();
  void add(const ResidualSums& other);

  std::vector<double> r_squares, data_squares, b_squares;
  std::vector<S> gradient;
};

/// Adds rows of A (rows x n) and B (rows x p) for X (n x p, packed) in float64 or complex128. The
/// first data_rows of them are data. Sums are taken over blocks of rows first, so that they stay
/// accurate for many rows.
template <class T>
void add_residual(MatrixView<const T> a, MatrixView<const T> b, MatrixView<const Wide<T>> x,
                  index_t data_rows, ResidualSums<Wide<T>>& sums);

/// Adds rows for one right side in twice the precision of float64, rounded at the end: r is
/// accurate to the last bit even if b and A x nearly agree. A null b means zeros.
template <class S>
void add_precise_residual(MatrixView<const S> a, const S* b, index_t b_step, const S* x,
                          std::vector<S>& gradient, double& r_squares);

}  // namespace qrtool
