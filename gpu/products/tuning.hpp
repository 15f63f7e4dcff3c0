// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of matrix products, and of sums over tall ones, that could be chosen
// differently.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

// ---- gemm (products/gemm.cl)

/// The tile of a work-group, the tile of 32 work-items, the terms of a stage in local memory, and
/// the number of such stages.
struct ProductTile {
  int rows, cols, warp_rows, warp_cols, depth, buffers;
};
/// Tiles of the large products: with fma in float32, with fma in float64, and with halves on the
/// matrix units. For halves the numbers of warp, depth and buffers belong to the narrow products;
/// the packed products use 64 x 64 per warp and two stages of 16 terms (products/packed_tile.clh).
/// With 3 products of halves and 8192 x 8192 x 256, C -= A B and Z = A'C run at 92 and 101 TFLOP/s.
/// They ran at 80 and 90 with 64 x 32 per warp and one group of 256, because 130 registers leave no
/// room for two groups, and at 64 and 87 before the operands were packed. NVIDIA H200, driver 580,
/// 2026-11.
inline constexpr ProductTile product_tile{128, 128, 32, 64, 16, 2};
/// Tile of float32 fma whose copies to local memory need no registers. With the limit of 128
/// registers two groups fit on a multiprocessor. With 16384 x 16384 x 256 the kernels alone run C
/// -= A B and Z = A'C at 47.0 and 45.6 TFLOP/s. They run at 48.2 and 43.5 with 4 stages of 8 terms,
/// and at 46.2 and 39.3 without the limit. NVIDIA H200, driver 580, 2026-11.
inline constexpr ProductTile product_floats_tile{128, 128, 32, 64, 16, 2};
inline constexpr int product_floats_registers = 128;
inline constexpr ProductTile product_double_tile{64, 64, 16, 32, 16, 2};
inline constexpr ProductTile product_halves_tile{128, 128, 64, 32, 32, 1};
/// Tile of float64 products on the matrix units: 4 terms (double_tile.clh), 3 .. 7 stages. The sums
/// of 64 x 32 entries per warp take half of the registers, so that two groups of four warps fit on
/// a multiprocessor. R of 12288 x 12288: C -= A B and Z = A'C run at 41.4 and 43.5 TFLOP/s, and at
/// 40.3 and 44.2 with {128, 128, 64, 32, 4, 5}; with 7 stages, or 3 of 8 terms, they are not
/// faster. With 32 x 32 per warp and eight warps they take a quarter longer.
inline constexpr ProductTile product_double_units_tile{128, 64, 64, 32, 4, 5};

// ---- tall sums (tall_sums.cpp). NVIDIA H200, driver 580, 2026-11.

/// A'A is summed over slabs of rows. The first two numbers are how many slabs there are. 264 gives
/// two groups per multiprocessor of an H200, and their sums take most of its registers. With few
/// columns there is room for four groups, and 528 slabs are used. With 264 and 528 slabs, 1000000 x
/// 32 takes 0.0435 and 0.0462 ms, and 1000000 x 16 takes 0.0297 and 0.0248 ms.
inline constexpr std::int64_t tall_slabs = 264;
inline constexpr std::int64_t tall_thin_slabs = 528;
inline constexpr std::int64_t tall_thin_columns = 16;
/// Largest number of columns for which the groups that sum A'A have 256 work-items instead of 128.
/// The second number is the smallest number of rows of a slab.
inline constexpr std::int64_t tall_narrow_columns = 32;
inline constexpr std::int64_t tall_slab_rows = 1024;

}  // namespace qrtool::tuning
