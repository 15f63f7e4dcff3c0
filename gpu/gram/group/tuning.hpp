// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `gram_group` (gram_group.cl) that could be chosen differently. NVIDIA
// H200, driver 580, 2026-11.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

/// To so many columns a work-item has so many registers: a quarter of a multiprocessor has 16,384,
/// so that three warps fit there instead of two with 255. 2640 of 96 x 96 0.65 -> 0.55 ms, in
/// float64 0.87 -> 0.85; 65 x 65 0.45 -> 0.33 and 0.62 -> 0.47; with 112 columns 0.86 -> 0.96
/// and 1.25 -> 1.5.
inline constexpr std::int64_t gram_group_spare_columns = 96;
inline constexpr int gram_group_spare_registers = 168;
/// Groups, each with work memory. An H200 runs four on each of its multiprocessors, or two.
inline constexpr std::int64_t gram_group_spare_groups = 528, gram_group_groups = 264;

}  // namespace qrtool::tuning
