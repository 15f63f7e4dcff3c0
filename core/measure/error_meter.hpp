// SPDX-License-Identifier: Apache-2.0
// error_meter.hpp: measures the errors of a factorization. Definitions: core/report/ratios.hpp.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {

/// Measures matrices of one shape, one after another. It reads a few rows of A and Q at a time, so
/// that a matrix larger than memory can be measured. For a wide matrix without Q it keeps all rows;
/// those of a very wide one (core/measure/wide_residual.hpp) come in one call, and R stays where it
/// is until then. The sums do not depend on how many rows each call brings. Their rounding errors
/// are bounded in core/measure/error_meter.cpp. Workspace: workspace_bytes(). Not thread-safe: each
/// thread needs its own meter.
class ErrorMeter {
 public:
  /// q_cols = 0 means that there is no Q. r_rows is k, or m for a complete factorization. With
  /// `is_complex` matrices are complex, and all sizes count complex numbers.
  ErrorMeter(index_t m, index_t n, index_t q_cols, index_t r_rows, int most_threads = 1,
             bool is_complex = false);
  ~ErrorMeter();
  ErrorMeter(ErrorMeter&&) noexcept;

  /// Each call of add_rows brings a multiple of this many rows; only the last call for a matrix may
  /// bring another number.
  static index_t tile_rows();
  static std::size_t workspace_bytes(index_t m, index_t n, index_t q_cols, index_t r_rows,
                                     int most_threads = 1, bool is_complex = false);

  /// The threads that share a matrix from now on, at most most_threads. Errors do not depend on
  /// them.
  void use_threads(int threads);

  /// Begins a matrix, given R (r_rows x n) and the scale of A (Magnitude::scale).
  template <class T>
  void start(MatrixView<const T> r, int scale);
  /// Adds the next rows of A (rows x n) and of Q (rows x q_cols; ignored if there is no Q).
  template <class T>
  void add_rows(MatrixView<const T> a, MatrixView<const T> q);
  /// Returns the errors of the matrix, once all its rows were added.
  Errors finish();

  int scale() const;
  /// Rows can be measured in parts by several meters of the same shape, scale and R: sums() returns
  /// the sums of all rows since start(), and add_sums() adds the sums of another meter. The result
  /// depends on the order in which they are added. Not for wide matrices without Q.
  std::vector<double> sums() const;
  static std::size_t number_of_sums(index_t m, index_t n, index_t q_cols, bool is_complex);
  void add_sums(std::span<const double> sums);

  /// Measures a matrix that is in memory: start, add_rows and finish in one call.
  template <class T>
  Errors measure(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r, int scale) {
    start(r, scale);
    add_rows(a, q);
    return finish();
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qrtool
