// SPDX-License-Identifier: Apache-2.0
// batch.hpp: row-major matrices and batches of them, owned and viewed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace qrtool {

using index_t = std::int64_t;

/// A view of a row-major matrix: A(i, j) = data[i * ld + j], ld >= cols.
template <class T>
struct MatrixView {
  T* data = nullptr;
  index_t rows = 0, cols = 0, ld = 0;

  T& operator()(index_t i, index_t j) const { return data[i * ld + j]; }

  /// Returns the view of `count` rows, beginning with row `first`.
  MatrixView row_block(index_t first, index_t count) const {
    return {data + first * ld, count, cols, ld};
  }

  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data, rows, cols, ld};
  }
};

/// `count` row-major matrices of one shape: A_b(i, j) = data[b * stride + i * ld + j],
/// stride >= rows * ld. All sizes are elements.
template <class T>
struct BatchView {
  T* data = nullptr;
  index_t count = 0, rows = 0, cols = 0, ld = 0, stride = 0;

  MatrixView<T> operator[](index_t b) const { return {data + b * stride, rows, cols, ld}; }

  /// Returns a view of `matrices` matrices, beginning with matrix `first`.
  BatchView slice(index_t first, index_t matrices) const {
    return {data + first * stride, matrices, rows, cols, ld, stride};
  }

  bool is_packed() const { return ld == cols && stride == rows * cols; }

  operator BatchView<const T>() const requires(!std::is_const_v<T>) {
    return {data, count, rows, cols, ld, stride};
  }
};

/// Views `data` as a batch without gaps: ld = cols, stride = rows * cols.
template <class T>
BatchView<T> packed(T* data, index_t count, index_t rows, index_t cols) {
  return {data, count, rows, cols, cols, rows * cols};
}

/// Host memory with the function that frees it, so that a backend can also give pinned memory.
using HostMemory = std::shared_ptr<std::byte>;

/// Allocates ordinary host memory, aligned to a cache line and not cleared. The result is never
/// null, not even for 0 bytes.
HostMemory allocate_host(std::size_t bytes);

/// A packed batch that owns its memory. Its elements are not initialised.
template <class T>
class Batch {
 public:
  Batch() = default;
  Batch(index_t count, index_t rows, index_t cols)
      : Batch(allocate_host(static_cast<std::size_t>(count * rows * cols) * sizeof(T)), count, rows,
              cols) {}
  Batch(HostMemory memory, index_t count, index_t rows, index_t cols)
      : memory_(std::move(memory)),
        view_(packed(reinterpret_cast<T*>(memory_.get()), count, rows, cols)) {}

  BatchView<T> view() const { return view_; }

 private:
  HostMemory memory_;
  BatchView<T> view_;
};

}  // namespace qrtool
