// SPDX-License-Identifier: Apache-2.0
// product.hpp: how the kernels of gemm.cl are built and launched. Private to gpu.
#pragma once

#include "gpu/gpu_variant.hpp"

namespace qrtool {

/// Which body the products of a device run (kernels/gemm.cl).
enum class ProductBody { fma = 0, three_halves = 1, half = 2, stored_halves = 3, doubles = 4 };

/// Tile sizes and depth, for the -D defines. `alignment`: 1, 2 or 4 entries, what every row of B, C
/// and Z begins at. `narrow`: side of the narrow tile, 32 or 64.
Params product_params(ElementType real, ProductBody body, int alignment, int narrow);

enum class ProductKind { wide, narrow };

/// Tiles of a rows x cols product.
index_t product_tiles(const Params& params, ProductKind kind, index_t rows, index_t cols);

/// Powers of two that bring A and B to where halves are normal numbers; 1 with fma.
struct ProductScales {
  float a = 1, b = 1;
};
/// |a_ij| <= a_bound, |b_ij| <= b_bound.
ProductScales product_scales(const Params& params, double a_bound, double b_bound);

/// C -= A B for shape.count matrices.
void enqueue_subtract(Launcher& launch, const Params& params, ProductKind kind,
                      const ProductShape& shape, ProductScales scales, const cl::Buffer& a,
                      const cl::Buffer& b, const cl::Buffer& c);

/// Z_s = A'B over shape.slabs slabs; the first shape.left_cols columns of B lie in `left`.
void enqueue_transposed(Launcher& launch, const Params& params, ProductKind kind,
                        const ProductShape& shape, ProductScales scales, const cl::Buffer& a,
                        const cl::Buffer& left, const cl::Buffer& b, const cl::Buffer& z);

}  // namespace qrtool
