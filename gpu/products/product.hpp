// SPDX-License-Identifier: Apache-2.0
// product.hpp: how the kernels of gemm.cl are built and launched. Private to gpu.
#pragma once

#include "gpu/gpu_variant.hpp"

namespace qrtool {

/// Which body the products of a device run (gemm.cl).
enum class ProductBody {
  fma = 0,
  three_halves = 1,
  half = 2,
  stored_halves = 3,
  doubles = 4,
  floats = 5
};

/// Tile sizes and depth, for the -D defines. `alignment`: 1, 2 or 4 entries, what every row of B, C
/// and Z begins at. `narrow`: side of the narrow tile, 32 or 64. Body floats wants to know whether
/// the device is NVIDIA's.
Params product_params(ElementType real, ProductBody body, int alignment, int narrow,
                      bool is_nvidia);

/// Local memory of the work-group of gemm.cl that takes most, bytes.
std::size_t product_local_bytes(ElementType real, const Params& params);

enum class ProductKind { wide, narrow };

/// Tiles of a rows x cols product.
index_t product_tiles(const Params& params, ProductKind kind, index_t rows, index_t cols);

/// Powers of two that bring A and B to where halves are normal numbers; 1 with fma.
struct ProductScales {
  float a = 1, b = 1;
};
/// |a_ij| <= a_bound, |b_ij| <= b_bound.
ProductScales product_scales(const Params& params, double a_bound, double b_bound);

/// Whether wide products take A, and B of C -= A B, as pack_operand leaves them: their first entry,
/// strides and lda, ldb then count blocks of 16 x 16, and slab_depth is a multiple of 16.
bool takes_packed(const Params& params);
/// Whether A of a wide C -= A B comes transposed, as transpose_operand leaves it.
bool takes_transposed(const Params& params);

/// Blocks of a packed operand that whole tiles are made of, and the bytes of one.
index_t packed_blocks(index_t entries);
inline constexpr index_t packed_block_bytes = 1024;

/// A as it is, a block's reflectors of V\R with their unit diagonal, B of C -= A B.
enum class Packing { terms = 0, reflectors = 1, products = 2 };

/// to := scale X, halves and the halves of the rest, shape.count matrices one after the other.
void pack_operand(Launcher& launch, const PackShape& shape, Packing kind, float scale,
                  const cl::Buffer& x, const cl::Buffer& to);

/// to := X', float32, shape.count matrices of 16 col_blocks rows one after the other. Not
/// Packing::products.
void transpose_operand(Launcher& launch, const PackShape& shape, Packing kind, const cl::Buffer& x,
                       const cl::Buffer& to);

/// C -= A B for shape.count matrices.
void enqueue_subtract(Launcher& launch, const Params& params, ProductKind kind,
                      const ProductShape& shape, ProductScales scales, const cl::Buffer& a,
                      const cl::Buffer& b, const cl::Buffer& c);

/// Z_s = A'B over shape.slabs slabs; the first shape.left_cols columns of B lie in `left`.
void enqueue_transposed(Launcher& launch, const Params& params, ProductKind kind,
                        const ProductShape& shape, ProductScales scales, const cl::Buffer& a,
                        const cl::Buffer& left, const cl::Buffer& b, const cl::Buffer& z);

/// Z = scale_of_z A'B in one slab, A packed and Z packed as B of C -= A B, its rows to a multiple
/// of 16.
void enqueue_transposed_packed(Launcher& launch, const Params& params, const ProductShape& shape,
                               ProductScales scales, float scale_of_z, const cl::Buffer& a,
                               const cl::Buffer& b, const cl::Buffer& z);

}  // namespace qrtool
