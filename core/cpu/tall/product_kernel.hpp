// SPDX-License-Identifier: Apache-2.0
// product_kernel.hpp: computes Q := Q Z in place, a few rows at a time. Private to core/cpu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/batch.hpp"

namespace qrtool {

namespace tall_product {

/// Describes the product of Q (rows x inner) and Z (inner x cols), which overwrites Q's rows. A row
/// of Q begins ld elements after the row before it.
template <class T>
struct Operands {
  T* q = nullptr;
  std::int64_t rows = 0, inner = 0, cols = 0, ld = 0;
  const T* z = nullptr;
  std::int64_t z_ld = 0;
  T* z_padded = nullptr;  // inner x (cols rounded up to whole vectors)
  T* q_rows = nullptr;    // most_rows x inner
};

struct Kernels {
  void (*in_float)(const Operands<float>&);
  void (*in_double)(const Operands<double>&);
};

extern const Kernels generic_products;
extern const Kernels avx2_products, avx512_products;  // x86-64

/// The most rows that are multiplied at once, and the bytes of the widest vector.
inline constexpr std::int64_t most_rows = 8, most_vector_bytes = 64;

}  // namespace tall_product

/// The bytes of the scratch memory for Z and for rows of Q, which has at most `inner` columns.
template <class T>
std::size_t product_z_bytes(index_t inner, index_t cols) {
  return static_cast<std::size_t>(inner) *
         (static_cast<std::size_t>(cols) * sizeof(T) + tall_product::most_vector_bytes);
}
template <class T>
std::size_t product_rows_bytes(index_t inner) {
  return static_cast<std::size_t>(inner * tall_product::most_rows) * sizeof(T);
}

/// Replaces the first z.cols columns of q by the product of its first z.rows columns and z. The
/// order in which an entry is summed does not depend on the number of rows.
template <class T>
void multiply_rows(MatrixView<T> q, MatrixView<const T> z, T* z_scratch, T* row_scratch);

}  // namespace qrtool
