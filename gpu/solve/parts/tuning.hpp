// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: every number of least squares on a device that could be chosen differently.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qrtool::tuning {

// ---- least squares by normal equations (solve/normal/normal.cl). NVIDIA H200, driver 580,
// 2026-11; the numbers are in NOTES.md.

/// Largest number of columns. Up to normal_small_columns blocks have 4 columns, up to
/// normal_middle_columns 8, and beyond 6.
inline constexpr std::int64_t normal_most_columns = 128, normal_small_columns = 32,
                              normal_middle_columns = 64;
/// Rows of A in local memory.
inline constexpr int normal_team_rows = 8;
/// Work-items of a group, unless a system needs more, and the share of the work-items of its warps
/// that is enough.
inline constexpr int normal_least_group = 56, normal_most_group = 128;
inline constexpr double normal_share = 0.9;
/// float64: below this the Gram matrix does not tell the smallest singular value (columns scaled to
/// norm 1), whose square has an error of about n u.
inline constexpr double normal_least_value = 1e-6;

/// Largest number of columns with which a work-item solves a system (solve/normal/normal_lane.cl),
/// whose registers hold R.
inline constexpr std::int64_t normal_lane_most_columns = 4;
/// The entries of A in float64 that each work-item keeps at most, and the work-items of a group.
inline constexpr std::int64_t normal_lane_most_kept = 64;
inline constexpr int normal_lane_group = 128;
/// Largest number of columns with which a warp solves a system (solve/normal/normal_tile.cl).
inline constexpr std::int64_t normal_tile_most_columns = 80;
/// The slabs of 16 rows in local memory at a time, for 1 to 5 blocks of 16 columns. 1 .. 4. With 1,
/// 2, 3 and 4, ms: 20,000 of 100 x 48 in float64 1.13, 1.06, 1.10, 1.15, of 65 x 33 0.53, 0.48,
/// 0.54, 0.57; 10,000 of 81 x 80 1.34, 1.62, 2.02, 2.01; in float32 0.68, 0.65, 0.68, 0.69, and of
/// 128 x 64 0.346, 0.306, 0.304, 0.332.
inline constexpr int normal_tile_stages[] = {4, 4, 3, 3, 2};
inline constexpr int normal_tile_double_stages[] = {4, 2, 2, 2, 1};
/// float64: the same as normal_least_value. L by corners of 4 x 4 (quads.clh) has an error of about
/// 10 cond u in A'A: 2e-12 with a condition of 10^5, where the square of the singular value is
/// 1e-10.
inline constexpr double normal_tile_least_value = 1e-5;
/// Systems of more than normal_tile_most_columns are solved by groups of warps
/// (solve/normal/normal_group.cl), whose registers hold A'A of at most this many columns.
inline constexpr std::int64_t normal_group_most_columns = 160;
/// Registers of a work-item to normal_group_spare_columns: a multiprocessor then runs 12 warps at a
/// time instead of eight. 20,000 of 120 x 96 take 2.59 ms, 3.34 without a limit and 3.95 with 128
/// (float64 3.64, 4.20, 5.23); 65,536 of 288 x 97 18.0, 17.1 and 27.3 (24.2, 23.2, 32.3).
inline constexpr std::int64_t normal_group_spare_columns = 96;
inline constexpr int normal_group_spare_registers = 168;
/// The same where the sums are given (solve/normal/pairs.cl), which needs fewer registers: x of
/// 262,144 of 288 x 97 takes 57.3 ms with the limit and 59.1 without (float64 80.5 and 84.3), of
/// 20,000 of 200 x 112 4.2 and 4.5, and of 200 x 128 6.4 and 5.8 (NVIDIA H100).
inline constexpr std::int64_t weighed_group_spare_columns = 112;

// ---- least squares (solve/). NVIDIA H200, with whole solves (gpu/NOTES.md).

/// Bytes of A, b and x that are transferred together.
inline constexpr std::size_t solve_sub_chunk_bytes = std::size_t{64} << 20;
/// The same where the device makes A of each system from one A, so that b and the weights alone are
/// transferred: some 10,000 systems of 288x97 in float32, with which the device is full.
inline constexpr std::size_t solve_made_sub_chunk_bytes = std::size_t{1} << 30;
/// Bytes of A of the systems that are copied to be solved again by factors.
inline constexpr std::size_t solve_again_bytes = std::size_t{16} << 20;
/// A device answers for solutions up to this part of their bar, the CPU for all others. 0.5 .. 1.
/// The sums of b - A x have rounding errors, which depend on the order of the terms: for a float64
/// system of 16x16 with a condition of 2e13 the device measured 0.9972 of the bar, the CPU 1.0118.
inline constexpr double solve_most_of_bar = 0.875;
/// Largest number of columns of a system, and of rows that one work-group takes alone.
inline constexpr std::int64_t solve_most_columns = 512, solve_group_rows = 4096;
/// Right sides of one A with weights of their own get their Gram matrices by one product
/// (solve/normal/pairs.cl), unless A has so many columns. NVIDIA's compiler (driver 580) makes
/// wrong code of solve_weighed_group for two and three blocks of 16 columns: the check refuses
/// every x. Without its optimiser x is right. A copy of A for each right side is about as fast
/// there.
inline constexpr std::int64_t pairs_gap_first = 17, pairs_gap_last = 48;
/// The rows of a system with more rows than that are cut into slabs. A slab has solve_slab_rows
/// rows, but at most solve_slab_entries entries, unless there would be more than solve_most_slabs
/// slabs: some 2000 groups fill any device, and their sums are few. Then the work-items of a slab,
/// at least, and the rows of its tiles, at most.
inline constexpr std::int64_t solve_slab_rows = 2048, solve_slab_entries = 65536,
                              solve_most_slabs = 2048;
inline constexpr int solve_slab_team = 128, solve_most_tile_rows = 256;
/// A system of up to this many columns has as many work-items as columns, rounded up to a power of
/// two, but at most those of a warp, which need no barrier; up to twice as many columns 128, and
/// beyond 256. A work-group has at least solve_least_group: teams of few work-items share it.
inline constexpr std::int64_t solve_team_columns = 128;
inline constexpr int solve_most_team = 32;
inline constexpr int solve_least_group = 64;
/// Rows of a tile of A in local memory, a power of two, and the bytes that it may take: several
/// groups share the local memory of a multiprocessor.
inline constexpr int solve_tile_rows = 32;
inline constexpr std::size_t solve_tile_bytes = 16 << 10;
/// The first step and the corrections of a solution. The fourth is rarely reached: each one makes
/// the error smaller by cond(A) times the rounding error of R.
inline constexpr int solve_most_steps = 4;
/// Corrections stop when the last one was at most this times sqrt(u), relative to x. The error that
/// is left is about the square of the last correction's.
inline constexpr double solve_enough = 0.125;
/// The estimate of the smallest singular value, with columns of norm 1/2 to 1, must be this many
/// times the tolerance of the rank; otherwise the host decides by pivoting. The estimate is never
/// below the true value, and usually agrees to a few percent.
inline constexpr double solve_rank_margin = 4;
/// Columns up to which a work-item measures R, and rows up to which it also checks a solution
/// (system_lanes.cl); the work-items of a group.
inline constexpr std::int64_t solve_lane_columns = 8, solve_lane_rows = 512;
inline constexpr int solve_lane_group = 128;
/// Columns of R that a work-item of measures.cl has at the most, and the work-items of a group at
/// least: a pass over R has a step for each column, in which all items of a team wait for one.
inline constexpr std::int64_t measure_owned_columns = 4;
inline constexpr int measure_least_group = 64;
/// Work-groups of measure_factors for each compute unit: each team has n^2 numbers of its own.
inline constexpr std::int64_t solve_factor_groups = 8;

// ---- systems with weights or missing rows (solve/input/weigh.cl). NVIDIA H200, with whole solves
// (gpu/NOTES.md).

/// Work-items of a group, and of a row at the most.
inline constexpr int weigh_group = 128;
inline constexpr std::int64_t weigh_most_row_items = 32;

// ---- systems with a ridge (solve/input/ridge.cl)

/// Work-items of a group.
inline constexpr int ridge_group = 128;

// ---- many right sides of one matrix (solve/shared/shared.cl, solve/shared/masked.cl)

/// Largest number of columns, and of columns where each right side has a Gram matrix in registers.
inline constexpr std::int64_t shared_most_columns = 128, masked_most_columns = 8;
/// Columns up to which a work-item takes two of these right sides.
inline constexpr std::int64_t masked_pair_columns = 4;
/// Rows of A beyond which plain sums would err by more than a small part of the bar.
inline constexpr std::int64_t shared_most_rows = 4096;
/// Columns that are taken at a time, even: B is read once for each block.
inline constexpr int shared_block = 16;
/// Work-items of a group, also where right sides are rows in memory; on a CPU device their private
/// arrays lie in its caches.
inline constexpr int shared_group = 128, shared_rows_group = 64, shared_group_on_cpu = 32;
/// Bytes of a right side that are copied to local memory at a time where it is a row in memory (of
/// 10,000,000 of 120 rows 1.29 ms for x with 4 columns, 1.52 with 128 bytes; float64 2.54
/// and 2.84), and rows that are taken at a time.
inline constexpr int shared_fetched_bytes = 256, shared_rows = 8;
/// Bytes of the slab of A or Q in local memory.
inline constexpr int shared_slab_bytes = 8 << 10;
/// Right sides of a column layout from which a copy of some of them moves long rows.
inline constexpr std::int64_t shared_least_side_by_side = 4096;
/// The largest condition, with scaled columns, of the matrices with masks that float64 Gram
/// matrices and one correction solve as well as reflectors.
inline constexpr double masked_most_condition = 1e4;

}  // namespace qrtool::tuning
