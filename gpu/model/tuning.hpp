// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers that could be chosen differently and that several folders or this one
// use. Those of one variant, or of the check, are in tuning.hpp of its folder.
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

// ---- gram (gram/gram.cl). NVIDIA H200, driver 580, 2026-11.

/// Largest number of columns that 32 work-items can hold, in float32 and float64. The triangle of
/// 64 columns is in registers and takes 640 of 1024 of them in float64. With more columns some rows
/// of blocks are in local memory: 8 KB with 80 columns and 18 KB with 96, beside their pivots,
/// which leaves room for seven and five groups per multiprocessor (float64 with 80: 18 KB and
/// five).
inline constexpr std::int64_t gram_columns = 96, gram_twice_columns = 80;
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
/// float64: the part of the bar that the error of one pass may take by its bound (departure.clh),
/// and the least m / n with which R alone of Gaussian matrices keeps to it.
inline constexpr double gram_twice_one_pass_share = 0.625;
inline constexpr double gram_twice_one_pass_ratio = 1.5;
/// Largest number of rows for which `small` factors a flagged matrix. Taller ones are factored by
/// `blocked`, whose groups return early if there is nothing to do.
inline constexpr std::int64_t gram_small_rows = 256;

// ---- gram_group (gram/group/gram_group.cl). NVIDIA H200, driver 580, 2026-11.

/// Columns: the blocks of a group and a strip of Q fill the registers of its work-items.
inline constexpr std::int64_t gram_group_least_columns = 65, gram_group_most_columns = 160;
inline constexpr std::int64_t gram_group_most_rows = 4096;

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
/// A warp (gram.cl, to 80 columns) or a group (gram_group.cl, from group_passes_least_columns on)
/// takes all passes of a refused matrix. Such a matrix has at most so many rows, or fewer entries
/// than narrow_least: few tall ones would leave the device idle.
inline constexpr std::int64_t whole_passes_most_rows = 512, group_passes_least_columns = 33;
/// They are taken where so many times the time of `gram` or of gram_group, in the table of times,
/// is at most that of the next variant. The table has Gaussian matrices. For half the rank `small`
/// takes up to twice as long; passes by a warp take 1.6 to 2.8 times as long as `gram` in float64,
/// 2.8 to 4.2 times in float32; those by a group 2.9 to 4.3 times in float64, 1.9 to 3.9 in
/// float32. H200, ms of half the rank by a warp and by `small`: float64 2000 of 48x48 0.18 and
/// 0.32, of 80x80 0.91 and 1.45, of 100x80 1.44 and 1.67, 15000 of 64x64 2.8 and 2.6; float32 2000
/// of 256x64 0.48 and 0.72, of 100x80 0.84 and 0.65, 15000 of 64x64 1.9 and 1.5. To gram_small_rows
/// `small` is faster than groups in float32, and in float64 below gram_group_least_columns.
inline constexpr double warp_passes_cost_single = 2.5, warp_passes_cost_double = 1.25;
inline constexpr double group_passes_cost = 3.3;
inline constexpr std::int64_t whole_passes_batch = 1 << 14;  // for which times are compared
/// Bytes of the matrices in flight: this much, and not more than this part of the device's memory.
inline constexpr std::size_t further_most_bytes = std::size_t{1} << 30;
inline constexpr std::size_t further_share_of_device = 16;

// ---- small (reflectors/small/). Tiles: NVIDIA H200, driver 580, 15000 matrices (5000 of 256 x
// 128) in float32, 2026-11. The kernels are limited by the rate at which instructions are issued.

/// Largest matrix in bytes. The registers of a group, 256 KiB on NVIDIA, hold its tile and the same
/// amount of other values.
inline constexpr std::int64_t small_matrix_bytes = 128 << 10;
/// Largest number of columns, and of rows where there are more than small_max_columns columns, of a
/// flagged matrix of `gram_tiles`: 256 lanes hold 100 entries each. One of 129 x 129 takes 0.143
/// ms, and 0.43 in `blocked`.
inline constexpr std::int64_t small_flagged_columns = 160;
/// Largest tile: columns of A and Q (64 .. 256) and rows (64 .. 1024).
inline constexpr int small_max_columns = 128;
inline constexpr int small_max_rows = 512;

// ---- blocked (reflectors/blocked/blocked.cl). NVIDIA H200, driver 580, 2026-11.

/// Rows. Fewer rows are not enough for the accuracy of a panel's W, T W and V T W. Registers limit
/// the largest number (in float64 half as many).
inline constexpr std::int64_t blocked_min_rows = 32;
inline constexpr std::int64_t blocked_max_row_bytes = 4096;

// ---- tall (reflectors/tall/tall.cl). NVIDIA H200, driver 580, 2026-11.

/// Largest number of columns: the registers of a group hold two blocks with as many rows as
/// columns.
inline constexpr std::int64_t tall_max_columns = 128;

}  // namespace qrtool::tuning
