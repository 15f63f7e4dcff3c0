// SPDX-License-Identifier: Apache-2.0
// product_kernel.hpp: Q := Q Z, a few rows at a time in place. Private to core/cpu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/batch.hpp"

namespace qrtool {

namespace product {

/// Q (rows x inner) times Z (inner x cols) into the same rows; ld elements from a row to the next.
template <class T>
struct Operands {
  T* q = nullptr;
  std::int64_t rows = 0, inner = 0, cols = 0, ld = 0;
  const T* z = nullptr;
  std::int64_t z_ld = 0;
  T* z_padded = nullptr;  // inner x cols rounded up to whole vectors
  T* q_rows = nullptr;    // most_rows x inner
};

struct Kernels {
  void (*in_float)(const Operands<float>&);
  void (*in_double)(const Operands<double>&);
};

extern const Kernels generic_products;
extern const Kernels avx2_products, avx512_products;  // x86-64

/// Rows that are multiplied at once, and bytes of the widest vector, at the most.
inline constexpr std::int64_t most_rows = 8, most_vector_bytes = 64;

}  // namespace product

/// Bytes of the scratch for Z and for rows of Q; `inner` is the most columns of Q.
template <class T>
std::size_t product_z_bytes(index_t inner, index_t cols) {
  return static_cast<std::size_t>(inner) *
         (static_cast<std::size_t>(cols) * sizeof(T) + product::most_vector_bytes);
}
template <class T>
std::size_t product_rows_bytes(index_t inner) {
  return static_cast<std::size_t>(inner * product::most_rows) * sizeof(T);
}

/// The first z.rows columns of q times z into the first z.cols columns of q. An entry is summed in
/// the same order whatever rows are beside it.
template <class T>
void multiply_rows(MatrixView<T> q, MatrixView<const T> z, T* z_scratch, T* row_scratch);

}  // namespace qrtool
