// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `gram` (gram.cl) that could be chosen differently. NVIDIA H200, driver
// 580, 2026-11.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

/// Largest number of rows in float64. One warp adds all parts of a sum, and rows that are alike
/// make all of these additions round alike: 20000 x 33 had 1.6 times the bar of Q, 1000000 x 20 24
/// times.
inline constexpr std::int64_t gram_twice_rows = 4096;
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
/// Matrices of at most this size are copied as a whole if their size is not a multiple of the
/// blocks.
inline constexpr std::int64_t gram_whole_columns = 32;
inline constexpr std::int64_t gram_whole_rows = 64;
/// Up to so many columns a slab has so many rows and is alone in local memory: 10000 of 1000 x 3
/// take 0.188 ms, 0.262 with four slabs of 16 rows and 0.183 with one of 128 (float64 0.555, 0.667
/// and 0.592); 7500 of 2000 x 2 0.255.
inline constexpr std::int64_t gram_narrow_slab_columns = 4;
inline constexpr int gram_narrow_slab_rows = 64;

}  // namespace qrtool::tuning
