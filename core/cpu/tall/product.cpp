// SPDX-License-Identifier: Apache-2.0
// product.cpp: chooses the product's kernels for this processor.
#include <array>

#include "core/cpu/tall/product_kernel.hpp"
#include "core/simd/instruction_sets.hpp"

namespace qrtool {
namespace {

const tall_product::Kernels& product_kernels() {
  static constexpr std::array all{QRTOOL_EACH_SET(tall_product, products)};
  return *supported(all).front();
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
