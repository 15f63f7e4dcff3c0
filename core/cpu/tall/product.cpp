// SPDX-License-Identifier: Apache-2.0
// product.cpp: chooses the product's kernels for this processor.
#include <string_view>

#include "core/cpu/batched/batched_qr.hpp"
#include "core/cpu/tall/product_kernel.hpp"

namespace qrtool {
namespace {

const product::Kernels& product_kernels() {
#ifdef QRTOOL_X86_KERNELS
  const std::string_view target = batched_kernels().front()->target;
  if (target == "avx512") return product::avx512_products;
  if (target == "avx2") return product::avx2_products;
#endif
  return product::generic_products;
}

}  // namespace

template <>
void multiply_rows<float>(MatrixView<float> q, MatrixView<const float> z, float* z_scratch,
                          float* row_scratch) {
  product_kernels().in_float({.q = q.data,
                              .rows = q.rows,
                              .inner = z.rows,
                              .cols = z.cols,
                              .ld = q.ld,
                              .z = z.data,
                              .z_ld = z.ld,
                              .z_padded = z_scratch,
                              .q_rows = row_scratch});
}

template <>
void multiply_rows<double>(MatrixView<double> q, MatrixView<const double> z, double* z_scratch,
                           double* row_scratch) {
  product_kernels().in_double({.q = q.data,
                               .rows = q.rows,
                               .inner = z.rows,
                               .cols = z.cols,
                               .ld = q.ld,
                               .z = z.data,
                               .z_ld = z.ld,
                               .z_padded = z_scratch,
                               .q_rows = row_scratch});
}

}  // namespace qrtool
