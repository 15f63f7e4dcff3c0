// SPDX-License-Identifier: Apache-2.0
// arrays.hpp: the caller's arrays as views of core where their order allows, and as copies where it
// does not.
#pragma once

#include "app/capi/qrtool.h"
#include "core/batch.hpp"
#include "core/problem/problem.hpp"

namespace qrtool::capi {

/// Matrices with any strides, which count elements of T.
template <class T>
struct Strided {
  T* data = nullptr;
  index_t count = 0, rows = 0, cols = 0;
  index_t row_stride = 0, col_stride = 0, stride = 0;

  T& at(index_t b, index_t i, index_t j) const {
    return data[b * stride + i * row_stride + j * col_stride];
  }
  operator Strided<const T>() const requires(!std::is_const_v<T>) {
    return {data, count, rows, cols, row_stride, col_stride, stride};
  }
  bool is_there() const { return data != nullptr; }
  /// Whether core can use the arrays without a copy.
  bool is_by_rows() const {
    const bool has_rows = (cols <= 1 || col_stride == 1) && (rows <= 1 || row_stride >= cols);
    return has_rows && (count <= 1 || stride >= rows * ld());
  }
  /// Returns the arrays as a batch. They must be is_by_rows().
  BatchView<T> view() const { return {data, count, rows, cols, ld(), batch_stride()}; }
  Strided slice(index_t first, index_t number) const {
    Strided part = *this;
    part.data += first * stride;
    part.count = number;
    return part;
  }

 private:
  // Returns the distance of rows. One row may have any stride, but core needs room for it.
  index_t ld() const { return rows <= 1 && row_stride < cols ? cols : row_stride; }
  index_t batch_stride() const { return count <= 1 ? rows * ld() : stride; }
};

/// Returns the element type of the caller's matrices, after checking it.
ElementType type_of(const qrtool_matrices& given, const char* name);
/// Checks the caller's matrices. Errors: UsageError, which names them, if counts are negative or
/// too large, data is missing or not aligned, or reserved members are not 0.
void require_valid(const qrtool_matrices& given, const char* name);
/// The same for matrices without data.
void require_valid_shape(const qrtool_matrices& given, const char* name);

/// Returns valid matrices of type T.
template <class T>
Strided<const T> strided(const qrtool_matrices& given) {
  const bool is_packed = given.row_stride == 0 && given.column_stride == 0;
  return {static_cast<const T*>(given.data),
          given.count,
          given.rows,
          given.columns,
          is_packed ? given.columns : given.row_stride,
          is_packed ? 1 : given.column_stride,
          is_packed ? given.rows * given.columns : given.matrix_stride};
}

/// Returns a place for count matrices of rows x cols. Errors: UsageError if entries would share
/// memory, as far as the strides alone show it, or if data is not aligned.
template <class T>
Strided<T> place_for(const qrtool_place& place, const char* name, index_t count, index_t rows,
                     index_t cols);

/// to := from, for matrices of one shape. T is U, or a real or complex type of another precision.
template <class T, class U>
void copy(const Strided<const T>& from, const Strided<U>& to, int threads);

/// Packed memory for count matrices.
template <class T>
Strided<T> packed_in(const Batch<T>& batch) {
  const BatchView<T> v = batch.view();
  return {v.data, v.count, v.rows, v.cols, v.cols, 1, v.rows * v.cols};
}

}  // namespace qrtool::capi
