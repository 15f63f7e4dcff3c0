// SPDX-License-Identifier: Apache-2.0
// product.hpp: the build parameters of the kernels of gemm.cl, and their launches. Private to gpu.
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// The bodies of the products (gemm.cl). A device runs one of them.
enum class ProductBody {
  fma = 0,
  three_halves = 1,
  half = 2,
  stored_halves = 3,
  doubles = 4,
  floats = 5
};

/// Tile sizes and depth for the -D defines. `alignment`: 1, 2 or 4 entries; every row of B, C and Z
/// begins at a multiple of it. `narrow`: side of the narrow tile, 32 or 64. `is_nvidia` is used by
/// body floats.
Params product_params(ElementType real, ProductBody body, int alignment, int narrow,
                      bool is_nvidia);

/// Lets sums of so many terms stay in registers with body doubles. A long plain sum of equal terms
/// is biased.
void settle_after(Params& params, std::int64_t terms);

/// Bytes of local memory of the work-group of gemm.cl that needs most.
std::size_t product_local_bytes(ElementType real, const Params& params);

enum class ProductKind { wide, narrow };

/// Returns how many tiles a rows x cols product has.
index_t product_tiles(const Params& params, ProductKind kind, index_t rows, index_t cols);

/// Powers of two that scale A and B to the range where halves are normal numbers; 1 with fma.
struct ProductScales {
  float a = 1, b = 1;
};
/// The scales for |a_ij| <= a_bound and |b_ij| <= b_bound.
ProductScales product_scales(const Params& params, double a_bound, double b_bound);

/// Whether wide products need A, and B of C -= A B, in the form that pack_operand writes. Their
/// first entry, strides, lda and ldb are then counted in blocks of 16 x 16, and slab_depth is a
/// multiple of 16.
bool takes_packed(const Params& params);
/// Whether a wide C -= A B needs A transposed, in the form that transpose_operand writes.
bool takes_transposed(const Params& params);

/// Returns how many blocks a packed operand has, padded to whole tiles. A block has
/// packed_block_bytes bytes.
index_t packed_blocks(index_t entries);
inline constexpr index_t packed_block_bytes = 1024;

/// The operand that is packed: A as it is, a block's reflectors from V\R with their unit diagonal,
/// or B of C -= A B.
enum class Packing { terms = 0, reflectors = 1, products = 2 };

/// to := scale X as halves, and for three products also the remainders, for shape.count adjacent
/// matrices.
void pack_operand(Launcher& launch, const PackShape& shape, Packing kind, float scale,
                  const Buffer& x, const Buffer& to);

/// to := X' in float32, for shape.count adjacent matrices of 16 col_blocks rows. Packing::products
/// is not allowed.
void transpose_operand(Launcher& launch, const PackShape& shape, Packing kind, const Buffer& x,
                       const Buffer& to);

/// C -= A B for shape.count matrices.
void enqueue_subtract(Launcher& launch, const Params& params, ProductKind kind,
                      const ProductShape& shape, ProductScales scales, const Buffer& a,
                      const Buffer& b, const Buffer& c);

/// Z_s = A'B over shape.slabs slabs; the first shape.left_cols columns of B are in `left`.
void enqueue_transposed(Launcher& launch, const Params& params, ProductKind kind,
                        const ProductShape& shape, ProductScales scales, const Buffer& a,
                        const Buffer& left, const Buffer& b, const Buffer& z);

/// Z = scale_of_z A'B in one slab. A is packed, and Z is packed as B of C -= A B; its rows are
/// padded to a multiple of 16.
void enqueue_transposed_packed(Launcher& launch, const Params& params, const ProductShape& shape,
                               ProductScales scales, float scale_of_z, const Buffer& a,
                               const Buffer& b, const Buffer& z);

}  // namespace qrtool
