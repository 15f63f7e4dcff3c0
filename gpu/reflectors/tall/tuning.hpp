// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `tall` (tall.cl, narrow_passes.cl) that could be chosen
// differently. NVIDIA H200, driver 580, 2026-11.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

/// Largest number of columns, instead of tall_max_columns, with LAPACK's signs, for which one group
/// of a matrix factors the top of Q, and in float64. With these signs 1000 of 512x128 took 9.0 ms,
/// and 1.24 in `reconstruct`; 1000000x64 0.44 and 0.57.
inline constexpr std::int64_t tall_sign_columns = 64;
inline constexpr std::int64_t tall_double_columns = 64;  // float64
/// Matrices in float32 with at most this many columns are factored by the tree in float64: the bar
/// is 30 u per column, and a sum over 512 equal rows makes the norms biased. In float32 a constant
/// 5000 x 3 matrix had 1.006 of the bar.
inline constexpr std::int64_t tall_few_columns = 8;
/// Bytes of a block in registers, and its largest number of rows. Rows: 128 .. 512, 16 per lane.
inline constexpr std::int64_t tall_block_bytes = 128 << 10;
inline constexpr std::int64_t tall_max_block_rows = 512;
inline constexpr int tall_lane_rows = 16;
/// Bytes of one work-item's tile, which is in registers, as in `small`.
inline constexpr int tall_tile_bytes = 512;
/// Number of lanes that share a column on a CPU, where a group's work-items run in a loop.
inline constexpr int tall_cpu_row_splits = 8;
/// Work-groups per matrix in the kernels that loop over blocks of the matrix. 132 .. 2112.
inline constexpr std::int64_t tall_groups = 264;
inline constexpr std::int64_t tall_product_groups = 1056;
/// Number of blocks in the last levels of the tree that one group processes in one launch. 1 .. 32.
/// If the tree is not needed, each launch still costs 3.6 us. If it is needed, each of these blocks
/// costs 40 to 200 us.
inline constexpr std::int64_t tall_joined_blocks = 32;
/// Number of blocks of a level that one group processes so that it can go on with the next levels,
/// for the same reason. 1 .. 64. For 1000000 x 128, 9 launches become 3; for 4000000 x 64, 4
/// launches become 3.
inline constexpr std::int64_t tall_subtree_blocks = 16;
/// Bytes of A in one leaf if a matrix is factored in parts of its rows. 8 .. 128 MiB.
inline constexpr std::int64_t tall_leaf_bytes = 32 << 20;
/// The least rows that a group of narrow_passes.cl divides: it reads the whole of R^-1 first.
inline constexpr std::int64_t narrow_least_rows = 64;

}  // namespace qrtool::tuning
