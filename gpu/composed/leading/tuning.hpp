// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `leading` (leading.cl) that could be chosen differently. NVIDIA H200,
// driver 580, 2026-11.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

/// Rows at most: flagged blocks are then factored together.
inline constexpr std::int64_t leading_most_rows = 512;
/// Largest number of rows with which a work-item computes whole columns of R.
inline constexpr std::int64_t leading_strip_rows = 16;
/// Blocks of up to so many rows are factored by `small`, larger ones by the routes by A'A: up to
/// leading_gram_rows by `gram`, of which more rows were not measured.
inline constexpr std::int64_t leading_small_rows = 32, leading_gram_rows = 80;

}  // namespace qrtool::tuning
