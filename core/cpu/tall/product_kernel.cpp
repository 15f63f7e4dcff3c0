// SPDX-License-Identifier: Apache-2.0
// product_kernel.cpp: multiplies rows of Q by a small Z, compiled once for every instruction set.
//
// A vector holds entries of one row of the product. A tile of rows x vectors stays in registers
// while the loop goes down the rows of Z:
//
//     q q q q ..     z z z z     c c c c        c[i][v] += q[i][p] z[p][v]
//     q q q q ..  x  z z z z  =  c c c c
//                    ..
#include "core/cpu/tall/product_kernel.hpp"

#include "core/simd/simd.hpp"

namespace qrtool::tall_product {
namespace {

/// The number of sums: 16 take half of the registers of AVX-512 and ARM, and 8 half of the others'.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int tile = 16;
#else
constexpr int tile = 8;
#endif

template <class T>
class Product {
 public:
  static void multiply(const Operands<T>& o) { Product(o).run(); }

 private:
  static constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));
  using V = typename VectorOf<T, lanes>::type;

  explicit Product(const Operands<T>& o) : o_(o), vectors_((o.cols + lanes - 1) / lanes) {}

  void run() {
    pad_z();
    if (vectors_ == 1) {
      by_rows<1>();
    } else if (vectors_ == 2) {
      by_rows<2>();
    } else {
      by_rows<4>();
    }
  }

  void pad_z() {
    for (index_t p = 0; p < o_.inner; ++p) {
      T* row = o_.z_padded + p * vectors_ * lanes;
      for (index_t j = 0; j < o_.cols; ++j) row[j] = o_.z[p * o_.z_ld + j];
      for (index_t j = o_.cols; j < vectors_ * lanes; ++j) row[j] = 0;
    }
  }

  /// Multiplies in tiles of at most `columns` vectors.
  template <int columns>
  void by_rows() {
    constexpr int height = tile / columns < most_rows ? tile / columns : most_rows;
    index_t i = 0;
    for (; i + height <= o_.rows; i += height) row_tile<height, columns>(i);
    for (; i < o_.rows; ++i) row_tile<1, columns>(i);
  }

  /// Computes a tile. The product overwrites the rows of Q, so they are copied first.
  template <int height, int columns>
  void row_tile(index_t first) {
    for (int r = 0; r < height; ++r)
      __builtin_memcpy(o_.q_rows + r * o_.inner, o_.q + (first + r) * o_.ld,
                       static_cast<std::size_t>(o_.inner) * sizeof(T));
    index_t v = 0;
    for (; v + columns <= vectors_; v += columns) one_tile<height, columns>(first, v);
    for (; v < vectors_; ++v) one_tile<height, 1>(first, v);
  }

  template <int height, int columns>
  [[gnu::always_inline]] inline void one_tile(index_t first, index_t v) {
    V c[height][columns] = {};
    const T* z = o_.z_padded + v * lanes;
    for (index_t p = 0; p < o_.inner; ++p, z += vectors_ * lanes) {
      V row[columns];
#pragma GCC unroll 4
      for (int x = 0; x < columns; ++x) __builtin_memcpy(&row[x], z + x * lanes, sizeof(V));
#pragma GCC unroll 8
      for (int r = 0; r < height; ++r) {
        const T q = o_.q_rows[r * o_.inner + p];
#pragma GCC unroll 4
        for (int x = 0; x < columns; ++x) c[r][x] += q * row[x];
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < height; ++r) {
#pragma GCC unroll 4
      for (int x = 0; x < columns; ++x) {
        const index_t at = (v + x) * lanes;
        T* to = o_.q + (first + r) * o_.ld + at;
        if (at + lanes <= o_.cols) {
          __builtin_memcpy(to, &c[r][x], sizeof(V));
        } else {
          for (index_t j = 0; j < o_.cols - at; ++j) to[j] = c[r][x][j];
        }
      }
    }
  }

  const Operands<T>& o_;
  index_t vectors_;  // in a row of Z
};

}  // namespace

#define QRTOOL_PRODUCTS(target) QRTOOL_JOIN(target, _products)

extern const Kernels QRTOOL_PRODUCTS(QRTOOL_TARGET){Product<float>::multiply,
                                                    Product<double>::multiply};

}  // namespace qrtool::tall_product
