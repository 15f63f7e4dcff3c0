// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: every number of the variants and of the check that could be chosen differently.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qrtool::tuning {

// ---- results

/// Matrices in float32 with fewer rows are computed in float64, because the bar of m 2^-23 leaves
/// no room for rounding errors. The number does not concern speed: it is part of the promise and
/// the same in every backend.
inline constexpr std::int64_t few_rows = 16;
/// The same limit for `large` and `textbook`, which round more often. Among 15000 Gaussian 16 x 16
/// matrices in float32 the worst orthogonality of `large` was 1.1 of the bar, and that of `small`
/// was 0.8. NVIDIA H200, driver 580, 2026-11.
inline constexpr std::int64_t few_rows_large = 32;

// ---- checks

/// The host re-measures the first and the last matrix of a sub-chunk, and one in every
/// host_sample_step matrices between them. 1 .. 10^6.
inline constexpr std::int64_t host_sample_step = 1000;
/// The operations of the largest matrix that the host measures. 10^8 .. 10^11. One core does some
/// 33 in a nanosecond: R of one 1000000x32 float32, which a device has after 0.08 ms, took 62 ms.
inline constexpr double host_sample_largest = 1e9;
/// The operations of the host where a sample has shown that the device is not to be trusted, and of
/// all samples of least squares. 10^9 .. 10^11. They take about half a second of one core.
inline constexpr double host_sample_operations = 4e9;
/// When so many have been spent in one call, the host measures no more matrices, unless a device
/// was wrong; then it may spend those of the largest matrix. With 4e9 for all, they took 66 of the
/// 97 ms of 256 of 512 x 256 from host memory to host memory, with 16 threads.
inline constexpr double host_sample_usual_operations = 2.5e8;
/// The check sums the Gram matrix of Q over slabs of rows. A slab has at least check_slab_rows rows
/// (256 .. 4096), and there are at most check_slabs slabs (128 .. 4096), because each slab writes a
/// Gram matrix in float64. With 4096 rows a single 9000 x 70 matrix had 9 groups and took 0.134 ms
/// for Q'Q. A 4000000 x 64 matrix takes 1.43 ms with 1024 slabs and 1.41 ms with 2112. NVIDIA H200,
/// driver 580, 2026-11.
inline constexpr std::int64_t check_slab_rows = 1024;
inline constexpr std::int64_t check_slabs = 1024;
/// Entries of R that one work-group examines; it takes whole rows. 1024 .. 65536. A 512 x 512
/// matrix takes 10 us with 4096 and 19 us with 16384. NVIDIA H200, driver 580, 2026-11.
inline constexpr std::int64_t r_slab_entries = 4096;
/// Q with more columns is not summed in slabs: their Gram matrices would fill the memory, and there
/// are enough groups without slabs. 64 .. 1024. The number is chosen, not measured on any device.
inline constexpr int gram_slab_columns = 256;

/// Largest number of columns for which NVIDIA's float64 matrix units measure float32 in one pass
/// (check/check_rows.cl). Its sums fill the registers: it needs 162 with 64 columns. The second
/// number is the largest number of columns for which all other cases use the plain body: a tile of
/// 64 x 64 (check/check_units.clh) would be three quarters empty.
inline constexpr std::int64_t check_rows_columns = 64;
inline constexpr std::int64_t check_units_columns = 32;

/// Words of 32 bits that one group of sums.cl adds, and its work-items. 4096 .. 2^20; 32 .. 256. A
/// 64 x 64 matrix is one part, 16384 x 16384 are 4096. They are chosen, not measured on a device.
inline constexpr std::int64_t sum_words = 65536;
inline constexpr int sum_group = 256;

// ---- tiny (reflectors/tiny/tiny.cl). NVIDIA H200, driver 580, 2026-11.

/// Largest number of entries, which are in the registers of one work-item. NVIDIA has 255 registers
/// of 4 bytes per work-item. QR of some 30 million entries, here / in `small`, ms: 4 x 4 0.18 /
/// 0.71 (float64 0.23 / 1.2), 8 x 8 0.50 / 0.72 (0.53 / 0.77); 16 x 8 in float32 0.35 / 0.15.
inline constexpr std::int64_t tiny_entries = 64;
/// Largest number of rows: R of 1000000 of 16 x 4 takes 0.32 ms, and 0.19 in `small`.
inline constexpr std::int64_t tiny_rows = 8;
/// Work-items, and matrices, of a group. 32 .. 256; a group's matrices are in local memory.
inline constexpr int tiny_group = 64;

// ---- leading (composed/leading/leading.cl). NVIDIA H200, driver 580, 2026-11.

/// Rows at most: flagged blocks are then factored together.
inline constexpr std::int64_t leading_most_rows = 512;
/// Largest number of rows with which a work-item computes whole columns of R.
inline constexpr std::int64_t leading_strip_rows = 16;
/// Blocks of up to so many rows are factored by `small`, larger ones by the routes by A'A: up to
/// leading_gram_rows by `gram`, of which more rows were not measured.
inline constexpr std::int64_t leading_small_rows = 32, leading_gram_rows = 80;

// ---- reconstruct (composed/reconstruct/reconstruct.cl). NVIDIA H100, driver 580, 2026-11.

/// The variant that makes Q and R, by the table of rates. float32: `tall` from so many rows on,
/// with up to tall_max_columns; then `gram`, to gram_columns, and `gram_tiles`.
inline constexpr std::int64_t reconstruct_tall_rows = 1024;
/// float64: `gram` up to so many columns and rows, then `gram_group` up to so many rows, to
/// gram_group_most_columns; then `gram_twice`.
inline constexpr std::int64_t reconstruct_gram_columns = 64, reconstruct_gram_rows = 512;
inline constexpr std::int64_t reconstruct_group_rows = 1024;
/// Matrices with so many rows have groups of eight warps that divide rows, so that there are fewer
/// sums of squares to add: tau of 1000000x32 took 0.069 ms, and 0.011 since. H200.
inline constexpr std::int64_t reconstruct_many_rows = 1024;
/// Largest number of warps that divide the rows of a matrix; their groups have sums of squares of
/// their own for each column.
inline constexpr std::int64_t reconstruct_warps = 4224;

// ---- gram (gram/gram.cl). NVIDIA H200, driver 580, 2026-11.

/// Largest number of columns that 32 work-items can hold, in float32 and float64. The triangle of
/// 64 columns is in registers and takes 640 of 1024 of them in float64. With more columns some rows
/// of blocks are in local memory: 8 KB with 80 columns and 18 KB with 96, beside their pivots,
/// which leaves room for seven and five groups per multiprocessor (float64 with 80: 18 KB and
/// five).
inline constexpr std::int64_t gram_columns = 96, gram_twice_columns = 80;
/// Largest number of rows in float64. One warp adds all parts of a sum, and rows that are alike
/// make all of these additions round alike: 20000 x 33 had 1.6 times the bar of Q, 1000000 x 20 24
/// times.
inline constexpr std::int64_t gram_twice_rows = 4096;
/// g / sqrt(t), where g is the growth of rounding errors in sums of t products of float64 in the
/// first pass of gram_twice and gram (departure.clh), and of the measurement of gram_group.
inline constexpr double gram_guard_per_root = 2;
/// The part of the bar that a bound or a measurement of ||I - Q'Q|| may take in float32.
inline constexpr double gram_guard_share = 0.9;
/// p, the error of a product with an explicit inverse in units of 2^-53 (gram_guard.clh). In
/// simulations 4 was enough; what the guard stops without need is measured and costs little.
inline constexpr double gram_inverse_error = 64;
/// An estimate of ||I - Q'Q|| of the first pass of `gram` beyond which Q1 is not measured, because
/// reflectors will follow in any case.
inline constexpr double gram_first_pass_error = 0.25;
/// The largest m for which float64 sums of the diagonal of A'A are not in parts
/// (gram_tile_sums.clh).
/// Matrices of rows that repeat reach 0.97 of the bar at 64 x 64 and 0.80 at 128 x 64, but 1.3 at
/// 200 x 64 without parts (H100, 5000 matrices each, 2026-11-25). Parts take 11 % of the time of
/// 64 x 64 and 6 % of that of 128 x 64 where they are not needed.
inline constexpr std::int64_t gram_whole_sums = 128;
/// Number of slabs of 16 rows in local memory at a time, for 1 to 6 blocks of 16 columns. 1 .. 4,
/// and for 5 and 6 blocks at least 2. It is the largest number that leaves room for as many groups
/// as the registers allow, with 5 blocks for seven, with 6 for five.
inline constexpr int gram_stages[] = {4, 4, 3, 3, 2, 2};
/// The same in float64; and the smallest number of columns for which it is faster than `small`.
inline constexpr int gram_twice_stages[] = {4, 4, 3, 2, 1};
/// float64: the part of the bar that the error of one pass may take by its bound (departure.clh),
/// and the least m / n with which R alone of Gaussian matrices keeps to it.
inline constexpr double gram_twice_one_pass_share = 0.625;
inline constexpr double gram_twice_one_pass_ratio = 1.5;
/// Matrices of at most this size are copied as a whole if their size is not a multiple of the
/// blocks.
inline constexpr std::int64_t gram_whole_columns = 32;
inline constexpr std::int64_t gram_whole_rows = 64;
/// Up to so many columns a slab has so many rows and is alone in local memory: 10000 of 1000 x 3
/// take 0.188 ms, 0.262 with four slabs of 16 rows and 0.183 with one of 128 (float64 0.555, 0.667
/// and 0.592); 7500 of 2000 x 2 0.255.
inline constexpr std::int64_t gram_narrow_slab_columns = 4;
inline constexpr int gram_narrow_slab_rows = 64;
/// Largest number of rows for which `small` factors a flagged matrix. Taller ones are factored by
/// `blocked`, whose groups return early if there is nothing to do.
inline constexpr std::int64_t gram_small_rows = 256;

// ---- gram_group (gram/group/gram_group.cl). NVIDIA H200, driver 580, 2026-11.

/// Columns: the blocks of a group and a strip of Q fill the registers of its work-items.
inline constexpr std::int64_t gram_group_least_columns = 65, gram_group_most_columns = 160;
inline constexpr std::int64_t gram_group_most_rows = 4096;
/// The part of the bar that the measured error of the first pass may take.
inline constexpr double gram_group_share = 0.9;
/// To so many columns a work-item has so many registers: a quarter of a multiprocessor has 16,384,
/// so that three warps fit there instead of two with 255. 2640 of 96 x 96 0.65 -> 0.55 ms, in
/// float64 0.87 -> 0.85; 65 x 65 0.45 -> 0.33 and 0.62 -> 0.47; with 112 columns 0.86 -> 0.96
/// and 1.25 -> 1.5.
inline constexpr std::int64_t gram_group_spare_columns = 96;
inline constexpr int gram_group_spare_registers = 168;
/// Groups, each with work memory. An H200 runs four on each of its multiprocessors, or two.
inline constexpr std::int64_t gram_group_spare_groups = 528, gram_group_groups = 264;

// ---- gram_tiles (gram/tiles/gram_tiles.cl). NVIDIA H200, driver 580, 2026-11.

/// Number of columns of a tile.
inline constexpr std::int64_t gram_tiles_columns = 64;
/// Largest number of registers per work-item in the kernels with groups of 256. With 128 registers
/// two groups fit on a multiprocessor. For R of 5000 matrices of 256 x 128: 112 registers take 1.88
/// ms, 128 take 1.41, 168 take 1.82 (one group), and no limit (208 registers) takes 1.55.
inline constexpr int gram_tiles_registers = 128;
/// Largest number of columns: every 128 columns add two launches. 512 .. 8192.
inline constexpr std::int64_t gram_tiles_max_columns = 5120;
/// Bytes of the matrices that are factored at a time. R of 5000 matrices of 256 x 128 takes 2.23 ms
/// in seven waves, and 1.92 ms in two waves with 3.4 times the memory.
inline constexpr std::size_t gram_tiles_bytes = std::size_t{256} << 20;
/// From so many matrices on a group measures Q of a whole matrix, in one launch; an H200 has so
/// many multiprocessors. 2000 of 176 x 176, of which one in seven is measured, took 5 % longer with
/// two launches for each wave and a group for 16 rows. The present form was not measured.
inline constexpr std::int64_t gram_tiles_measured_batch = 132;
/// Of fewer matrices all are measured, and before the guard, which saves a launch, if they have
/// less than so many times as many rows as columns: the guard leaves Q of Gaussian ones in doubt.
inline constexpr std::int64_t gram_tiles_doubtful = 2;

// ---- gram_twice (gram/twice/gram_twice.cl). NVIDIA H200, driver 580, 2026-11.

/// Largest number of columns. 512 .. 16384.
inline constexpr std::int64_t gram_twice_max_columns = 8192;
/// Groups that a product should have, and the rows of a slab. The errors of a sum grow with its
/// terms.
inline constexpr std::int64_t gram_twice_groups = 528;
inline constexpr std::int64_t gram_twice_least_slab_rows = 512, gram_twice_most_slab_rows = 8192;
/// Groups of a wide product that an H200 runs at a time, the smallest number for which wide
/// products are faster, and how much faster they are with all multiprocessors busy.
inline constexpr std::int64_t gram_twice_wide_groups = 132;
inline constexpr std::int64_t gram_twice_least_wide_groups = 80;
inline constexpr double gram_twice_wide_gain = 1.4;
/// Largest number of registers per work-item in update_rows; with 128, two groups fit on a
/// multiprocessor. One 5000 x 5000 takes 23.9 ms with 128 and 27.5 without a limit.
inline constexpr int gram_twice_registers = 128;
/// Bytes of the matrices that are factored at a time.
inline constexpr std::size_t gram_twice_bytes = std::size_t{512} << 20;

// ---- further passes (gram/twice/further_passes.cl), for what a guard has refused.

/// The shift of a Gram matrix in units of 2^-53 times the roundings of an entry, m + n for one slab
/// of rows. 4 to 256 were right in a simulation, 1 failed for 4 of 915 matrices.
inline constexpr double further_shift = 16;
/// Passes at most. In a simulation float32 needed three, and float64 four.
inline constexpr int further_passes_single = 4, further_passes_double = 5;
/// Passes after which most matrices are finished: in float32 after A'A is shifted once, and in
/// float64 also where the condition is at most some 10^9.
inline constexpr int further_usual_single = 2, further_usual_double = 3;
/// Matrices with fewer columns or entries than the first two go to `small` and `blocked`, which
/// take many at once; where `tall` or `large` would come next, the last number of columns decides.
struct FurtherLeast {
  std::int64_t columns, entries, tall_columns;
};
/// ms by further passes and by reflectors. H100, driver 580, 2026-11: 2000 of 256x128 in
/// float64 10.2 and 9.9; of 32 of 512x512 in float32 two 0.9 and 1.7, all 2.6 and 2.4 to 2.9.
/// NVIDIA H200, of half the rank: in float64 200000x8 0.52 and 0.35, 200000x16 0.62 and 0.90, 200
/// of 6000x12 2.1 and 20, 500 of 1500x24 1.9 and 69.
inline constexpr FurtherLeast further_least{.columns = 33, .entries = 1 << 16, .tall_columns = 12};
/// narrow_passes.cl, H200, of half the rank: 200000x16 0.20 and 1.22, 200000x8 0.19 and 0.24, 200
/// of 6000x6 0.24 and 0.29, 500 of 1500x24 0.40 and 1.19; 2000 of 256x128 6.5 and 3.5.
inline constexpr FurtherLeast narrow_least{.columns = 33, .entries = 1 << 16, .tall_columns = 6};
/// group_passes.cl takes matrices of so many columns and more, and of so many rows at most; of more
/// rows only those that have fewer entries than narrow_least. A group takes a whole matrix, so that
/// few tall ones leave the device idle. To gram_small_rows `small` is faster in float32, and in
/// float64 below gram_group_least_columns. H200, ms of half the rank, by groups and by the next
/// way: float64 2000 of 256x128 6.6 and 8.5 (blocked), 5000 of 100x80 3.9 and 6.3, 2000 of
/// 128x128 5.0 and 4.7, 2000 of 500x64 4.2 and 6.2, 15000 of 64x64 8.1 and 3.9 (small); float32
/// 1000 of 512x128 3.4 and 4.4 (narrow_passes.cl), 1000 of 1000x40 1.2 and 5.2 (blocked), 2000 of
/// 256x128 4.4 and 3.5, 500 of 1000x100 2.3 and 2.2. With one such matrix in 32: float64 500 of
/// 1000x100 2.1 and 1.5, 1000 of 512x128 2.3 and 2.0.
inline constexpr std::int64_t group_passes_least_columns = 33, group_passes_most_rows = 512;
/// The kernels before the first pass read A in pieces: the least number of rows of a piece, and the
/// number of pieces that more rows are cut into, unless a slab has fewer rows. The kernels after
/// the last pass store so many entries of Q or R by a group. One 512x512 had 8 groups for each of
/// these four kernels, which took 0.17 ms and take 0.05. NVIDIA H200, driver 580, 2026-11.
inline constexpr std::int64_t further_least_piece_rows = 64, further_most_pieces = 64;
inline constexpr std::int64_t further_stored_entries = 4096;
/// The least rows that a group of narrow_passes.cl divides: it reads the whole of R^-1 first.
inline constexpr std::int64_t narrow_least_rows = 64;
/// Bytes of the matrices in flight: this much, and not more than this part of the device's memory.
inline constexpr std::size_t further_most_bytes = std::size_t{1} << 30;
inline constexpr std::size_t further_share_of_device = 16;

// ---- small (reflectors/small/). Tiles: NVIDIA H200, driver 580, 15000 matrices (5000 of 256 x
// 128) in float32, 2026-11. The kernels are limited by the rate at which instructions are issued.

/// Bytes of one work-item's tile, which is in registers. 128 .. 512. NVIDIA has 255 registers per
/// work-item, and the rest of the kernel takes about 80 of them. With 512 bytes, 64x64 compiles to
/// 205 registers (R) and 255 (Q) without a stack frame. With 640 bytes registers are spilled.
inline constexpr int small_tile_bytes = 512;
/// Largest matrix in bytes. The registers of a group, 256 KiB on NVIDIA, hold its tile and the same
/// amount of other values.
inline constexpr std::int64_t small_matrix_bytes = 128 << 10;
/// Number of groups whose matrices one group examines if `gram` has flagged some matrices. Most
/// groups find none, and a group that only examines its matrices takes 3 ns, which is 46 us for
/// 15000. 1 .. 16.
inline constexpr int small_flagged_share = 8;
/// Largest number of lanes for a flagged matrix.
inline constexpr int small_flagged_lanes = 256;
/// Largest number of columns, and of rows where there are more than small_max_columns columns, of a
/// flagged matrix of `gram_tiles`: 256 lanes hold 100 entries each. One of 129 x 129 takes 0.143
/// ms, and 0.43 in `blocked`.
inline constexpr std::int64_t small_flagged_columns = 160;
/// Columns per work-item. 1 .. 8. A matrix of up to 16 columns has 4 lanes across, and a wider one
/// has 8. 64x64 takes 0.82 ms with 8 columns and 0.91 ms with 4; 32x32 takes 0.14 ms with 4 columns
/// and 0.16 ms with 8.
inline constexpr int small_lane_columns = 8;
/// The same in float64, where it does not add columns to the tile. In float64 64x64 takes 2.09 ms
/// with 8 columns, 2.05 ms with 4 and 2.62 ms with 2; 128x64 takes 5.42 ms with 8 and 4.78 ms with
/// 4.
inline constexpr int small_wide_lane_columns = 4;
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
/// Largest tile: columns of A and Q (64 .. 256) and rows (64 .. 1024).
inline constexpr int small_max_columns = 128;
inline constexpr int small_max_rows = 512;
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
inline constexpr int small_wide_column_step = 8;
inline constexpr int small_wide_step_columns = 64;

// ---- blocked (reflectors/blocked/blocked.cl). NVIDIA H200, driver 580, 2026-11.

/// Rows. Fewer rows are not enough for the accuracy of a panel's W, T W and V T W. Registers limit
/// the largest number (in float64 half as many).
inline constexpr std::int64_t blocked_min_rows = 32;
inline constexpr std::int64_t blocked_max_row_bytes = 4096;
/// Largest number of columns: the kernels count the entries of 32 rows in 32 bits.
inline constexpr std::int64_t blocked_max_columns = 1 << 25;
/// Columns per work-item of a strip of 32: 2, 4, 8. 512 x 512 takes 1.15 ms with 4 and 1.56 ms with
/// 8; 1000 matrices of 512 x 256 take 14.0 and 14.6 ms. Work-items with short columns have
/// registers for 8 columns: in float64 2000 matrices of 256 x 128 take 7.6 ms with 4 and 6.4 ms
/// with 8, and 32 of 512 x 512 take 3.4 and 5.8 ms.
inline constexpr int blocked_lane_columns = 4;
inline constexpr int blocked_short_lane_columns = 8;
inline constexpr int blocked_short_lane_rows = 8;
/// Largest number of rows per work-item in float32 for which T stays in global memory (LEAN in
/// blocked.cl); in float64 it always does. In float64 32 matrices of 512 x 512 take 3.69 ms with T
/// in local memory and 3.40 ms without. In float32 15000 of 128 x 64 take 4.48 and 4.22 ms, but
/// 2000 of 256 x 128 take 3.10 and 3.19 ms.
inline constexpr int blocked_lean_lane_rows = 4;
/// Largest number of bytes of a panel's reflectors in local memory at a time. 4 .. 34 KiB. V'C and
/// T need another 12 KiB of NVIDIA's 48 KiB in float32, and V'C needs 8 KiB in float64. With 22 KiB
/// in float64, 2000 matrices of 256 x 128 take 8.1 instead of 7.6 ms.
inline constexpr int blocked_stage_bytes = 34 << 10;

// ---- tall (reflectors/tall/tall.cl). NVIDIA H200, driver 580, 2026-11.

/// Largest number of columns: the registers of a group hold two blocks with as many rows as
/// columns.
inline constexpr std::int64_t tall_max_columns = 128;
/// The same with LAPACK's signs, for which one group of a matrix factors the top of Q: 1000 of
/// 512x128 took 9.0 ms, and 1.24 in `reconstruct`; 1000000x64 0.44 and 0.57. NVIDIA H200.
inline constexpr std::int64_t tall_sign_columns = 64;
inline constexpr std::int64_t tall_max_wide_columns = 64;  // float64
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

// ---- large (reflectors/large/large.cl, products/gemm.cl)

/// Columns per panel: 32, 64. In float64, where a panel is factored one column at a time, a panel
/// has 32, because local memory holds the panel's dot products. Small matrices also have panels of
/// 32.
inline constexpr int large_panel = 64;
inline constexpr int large_narrow_panel = 32;
inline constexpr std::int64_t large_narrow_columns = 128;
/// In float64 the matrices up to so many rows have one launch more for each panel, which forms T
/// again from exact sums. Taller ones have a bar above the error of T from the triangles: up to
/// 0.78 of it from 50x50 to 130x100 (960 attack matrices, PoCL 3.1, 2026-11).
inline constexpr std::int64_t large_exact_t_rows = 48;
/// Matrices of up to so many rows go through the bodies of the products that add 16 terms of Z
/// plainly. The other bodies add 256 terms: where rows are alike, all of these additions round the
/// same way, and the bar of a matrix with few rows is too low for that.
inline constexpr std::int64_t large_short_sums_rows = 256;
/// Columns per block of panels, which is the number of terms of an update. 1 .. 4 panels. With
/// small blocks an update starts sooner; with large blocks the trailing matrix is read and written
/// less often. Matrices with large_long_block_columns columns or more use the larger blocks.
inline constexpr int large_block = 128;
inline constexpr int large_long_block = 256;
inline constexpr std::int64_t large_long_block_columns = 4000;
/// The smallest part of the size of A, Q and R that the reflectors of a block may take in float64.
inline constexpr std::int64_t large_v_share = 8;
/// The Gram matrix of a panel is summed over slabs: the smallest number of rows of a slab, the
/// largest number of slabs, and the smallest number of slabs for which the workspace has room.
inline constexpr std::int64_t large_gram_rows = 32;
inline constexpr std::int64_t large_gram_slabs = 128;
inline constexpr std::int64_t large_least_gram_slabs = 16;
/// Where panels go through the float64 matrix units, one group computes the whole Gram matrix of a
/// panel of so many matrices or more, with the same bits. 66 .. 1000. The number is that of an
/// H200's multiprocessors, which no measurement has compared with others.
inline constexpr std::int64_t large_whole_gram_matrices = 132;
/// The smallest number of rows of a slab of V'C, the largest number of slabs for a panel's V'C, and
/// the number of groups of a product that an H200 runs at a time.
inline constexpr std::int64_t large_product_rows = 128;
inline constexpr std::int64_t large_panel_slabs = 32;
inline constexpr std::int64_t large_product_groups = 264;
/// Cost of a slab of V'C as a share of its product of at most so many rows: its part of Z is
/// written and later summed. The number is an estimate, which no device has measured.
inline constexpr double large_slab_cost = 0.003;
inline constexpr std::int64_t large_slab_cost_depth = 16384;
/// The number of slabs of a block's Z for which its buffer has room: four for 16384 rows, within
/// these limits.
inline constexpr std::int64_t large_least_z_slabs = 8, large_most_z_slabs = 128;
/// The columns of A are scanned and scaled in slabs: the largest number of slabs, and the smallest
/// number of their rows. With all rows in one slab, 1000000 x 128 took 74 of 103 ms.
inline constexpr std::int64_t large_scan_slabs = 256, large_scan_rows = 1024;
/// Matrices of up to so many rows are read once for both: 8 .. large_scan_rows, a multiple of 8. A
/// work-item holds one entry in eight rows, and 64 of them leave room for two groups at a time.
inline constexpr int large_short_rows = 512;
/// Float32 panels of up to so many rows that are refused are factored in registers: 128 .. 512, a
/// multiple of 128. A work-item holds 128 entries of 512 rows, which leaves room for one group at a
/// time; a group keeps twice as many only in 512 work-items. 640 hard 512x512, raw, NVIDIA H200,
/// driver 580: 16.7 ms with none in registers, 7.5 with all.
inline constexpr int large_refused_rows = 512;
/// Slabs of Z, or of a Gram matrix, may take 1 / large_z_share of the size of a matrix. The second
/// number applies if V is packed too. From 2048 x 2048 on this is at most 15 % of A and R.
inline constexpr std::int64_t large_z_share = 8;
inline constexpr std::int64_t large_packed_z_share = 12;
/// Bound of the entries of T from which the scale for halves (16-bit floats) is chosen. Entries
/// above 8 times the bound overflow, and entries below 1 / 8 of its inverse lose bits. 2 .. 2^14. T
/// of Gaussian matrices has entries of up to 2.
inline constexpr double large_t_bound = 4096;
/// Columns of Z per group of apply_t and of apply_panel_t; a work-item has four rows of a panel.
inline constexpr int large_strip = 16;
inline constexpr int large_narrow_strip = 32;

// ---- vector (reflectors/vector/vector.cl). PoCL 3.1, two cores with AVX-512, 2026-11.

/// Bytes of a vector, whose entries belong to different matrices. 32 .. 64: OpenCL C has no wider
/// vectors for float64.
inline constexpr std::int64_t vector_bytes = 64;
/// Largest number of rows and of columns. Larger packs are much larger than the caches, and the
/// plain sums of 32 rows may have an error above the bar.
inline constexpr std::int64_t vector_max_rows = 1024, vector_max_columns = 128;
/// Number of work-groups, each with a slot, that process one pack after another. 1 .. 1024: more
/// than there are cores.
inline constexpr std::int64_t vector_groups = 64;

// ---- complex (reflectors/complex/complex.cl)

/// The largest complex matrices: what one group may take. They were chosen without a GPU.
inline constexpr std::int64_t complex_most_columns = 512;
inline constexpr std::int64_t complex_most_entries = 1 << 20;
/// Entries of 16 bytes that are kept in local memory, of which devices have 48 KiB for a group.
inline constexpr std::int64_t complex_local_entries = 1024;
/// A group has a work-item for so many entries of the matrix.
inline constexpr std::int64_t complex_entries_of_item = 16;
inline constexpr std::uint64_t complex_least_group = 32, complex_most_group = 256;
/// The rows of a work-item where a column has enough of them, and the work-items for a column.
inline constexpr std::int64_t complex_rows_of_item = 64;
inline constexpr std::uint64_t complex_most_team = 32;

// ---- textbook (reflectors/textbook/textbook.cl)

/// Largest number of columns: each work-item has one column, and n^4 operations are needed.
inline constexpr int textbook_max_columns = 64;

}  // namespace qrtool::tuning
