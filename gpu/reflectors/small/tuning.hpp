// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `small` that could be chosen differently. Tiles: NVIDIA H200, driver
// 580, 15000 matrices (5000 of 256 x 128) in float32, 2026-11. The kernels are limited by the rate
// at which instructions are issued.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

namespace qrtool::tuning {

/// Bytes of one work-item's tile, which is in registers. 128 .. 512. NVIDIA has 255 registers per
/// work-item, and the rest of the kernel takes about 80 of them. With 512 bytes, 64x64 compiles to
/// 205 registers (R) and 255 (Q) without a stack frame. With 640 bytes registers are spilled.
inline constexpr int small_tile_bytes = 512;
/// Number of groups whose matrices one group examines if `gram` has flagged some matrices. Most
/// groups find none, and a group that only examines its matrices takes 3 ns, which is 46 us for
/// 15000. 1 .. 16.
inline constexpr int small_flagged_share = 8;
/// Largest number of lanes for a flagged matrix.
inline constexpr int small_flagged_lanes = 256;
/// Columns per work-item. 1 .. 8. A matrix of up to 16 columns has 4 lanes across, and a wider one
/// has 8. 64x64 takes 0.82 ms with 8 columns and 0.91 ms with 4; 32x32 takes 0.14 ms with 4 columns
/// and 0.16 ms with 8.
inline constexpr int small_lane_columns = 8;
/// The same in float64, where it does not add columns to the tile. In float64 64x64 takes 2.09 ms
/// with 8 columns, 2.05 ms with 4 and 2.62 ms with 2; 128x64 takes 5.42 ms with 8 and 4.78 ms with
/// 4.
inline constexpr int small_double_lane_columns = 4;
/// Narrow matrices have at most so many columns per work-item, or up to 6 with so many lanes
/// across. 60000 of 10 x 10 take 0.088 ms with 5 columns and 0.101 with 3, of 17 x 17 0.179 and
/// 0.282; in float64 17 x 17 takes 0.353 and 0.450. With up to 16 columns and more rows it is the
/// second number: 20 x 10 takes 0.088 ms with 3 columns and 0.112 with 5.
inline constexpr int small_narrow_lane_columns = 5, small_narrow_tall_lane_columns = 4;
inline constexpr int small_narrow_most_lanes_across = 4;
/// Smallest number of lanes across for matrices that are not narrow, a power of two.
inline constexpr int small_least_lanes_across = 8;
/// Rows per work-item. 4 .. 32. Narrow matrices have short columns and get fewer rows per
/// work-item. 16x16 takes 0.035 ms with 8 rows and 0.077 ms with 16; 64x64 takes 0.82 ms with 16
/// rows and 0.91 ms with 32.
inline constexpr int small_lane_rows = 16;
inline constexpr int small_narrow_lane_rows = 8;
inline constexpr int small_narrow_columns = 24;
/// With at most small_narrow_lane_rows rows, so many. A lane that has all rows of its columns is
/// slow: 460000 of 8 x 8 take 0.27 ms with 4 rows and 0.74 with 8; 208000 of 12 x 12 take 0.36 ms
/// with 8 rows and 0.73 with 12.
inline constexpr int small_narrow_few_lane_rows = 4;
/// Largest number of lanes that share a column; they belong to one sub-group. 1 .. 32.
inline constexpr int small_max_row_splits = 32;
/// Work-items per group. 32 .. 512. Several matrices share a group if they have fewer lanes. A
/// group size of 128 gives the same time.
inline constexpr int small_group_size = 32;
inline constexpr int small_max_group_size = 512;
/// Number of columns that are processed with the same first row; the rows of the tile above it are
/// skipped. 4 .. 32. Narrow matrices use a smaller step. 32x32 takes 0.140 ms with 4 and 0.155 ms
/// with 8. With a step of 4, 64x64 takes 0.47 ms for R but 1.47 ms with Q, because the code does
/// not fit in the instruction cache.
inline constexpr int small_column_step = 16;
inline constexpr int small_narrow_column_step = 4;
inline constexpr int small_narrow_step_columns = 32;
/// The step in float64, and the largest number of columns to which it applies: with more columns
/// the code would be twice as long. 64x64 takes 1.83 ms with 8 and 2.05 ms with 16; 128x64 takes
/// 4.70 and 4.78 ms.
inline constexpr int small_double_column_step = 8;
inline constexpr int small_double_step_columns = 64;

}  // namespace qrtool::tuning
