// SPDX-License-Identifier: Apache-2.0
// row_sum.hpp: sums of products over many rows, which lose nothing where rows are alike.
#pragma once

#include <Eigen/Core>
#include <algorithm>

#include "core/batch.hpp"

namespace qrtool {

template <class S>
using RowMajor = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// A matrix of row-major memory for Eigen.
template <class S>
Eigen::Map<RowMajor<S>, 0, Eigen::OuterStride<>> mapped(const MatrixView<S>& a) {
  return {a.data, a.rows, a.cols, Eigen::OuterStride<>(a.ld)};
}
template <class S>
Eigen::Map<const RowMajor<S>, 0, Eigen::OuterStride<>> mapped(const MatrixView<const S>& a) {
  return {a.data, a.rows, a.cols, Eigen::OuterStride<>(a.ld)};
}

template <class S>
MatrixView<S> view_of(RowMajor<S>& a) {
  return {a.data(), a.rows(), a.cols(), a.cols()};
}

// Eigen's products take long to compile: row_sum.cpp has these for float64 and complex128.

/// sum += A B, and sum += A^H B.
template <class S>
void add_product(std::type_identity_t<MatrixView<const S>> a,
                 std::type_identity_t<MatrixView<const S>> b, MatrixView<S> sum);
template <class S>
void add_adjoint_product(std::type_identity_t<MatrixView<const S>> a,
                         std::type_identity_t<MatrixView<const S>> b, MatrixView<S> sum);

template <class S>
using ColumnMajor = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
/// C := R C, where R is upper triangular. `solves`: C := R^-1 C. `is_adjoint`: R^H takes the place
/// of R.
template <class S>
void apply_upper(const ColumnMajor<S>& r, bool is_adjoint, bool solves, ColumnMajor<S>& c);

/// The terms of a plain sum, and of a tile. If rows are alike, every addition may round the same
/// way.
inline constexpr index_t rows_of_run = 32, rows_of_tile = 256;

/// A sum over rows: runs are added to the sum of a tile, and tiles by Kahan's method.
template <class S>
struct RowSum {
  RowSum(index_t rows, index_t cols) : sum(RowMajor<S>::Zero(rows, cols)), lost(sum), tile(sum) {}
  /// Calls add_run(first, count) for each run of rows; it adds to `tile`.
  template <class Add>
  void add(index_t rows, Add add_run) {
    for (index_t i = 0; i < rows; i += rows_of_run) {
      add_run(i, std::min(rows_of_run, rows - i));
      if ((i + rows_of_run) % rows_of_tile == 0 || i + rows_of_run >= rows) end_tile();
    }
  }
  void end_tile() {
    tile -= lost;
    lost = sum + tile;  // the next sum
    sum = (lost - sum) - tile;
    sum.swap(lost);
    tile.setZero();
  }
  RowMajor<S> sum, lost, tile;
};

}  // namespace qrtool
