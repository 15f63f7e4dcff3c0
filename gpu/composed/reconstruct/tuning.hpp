// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `reconstruct` (reconstruct.cl) that could be chosen differently.
// NVIDIA H100, driver 580, 2026-11.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

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

}  // namespace qrtool::tuning
