// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `tiny` (tiny.cl) that could be chosen differently. NVIDIA H200, driver
// 580, 2026-11.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

/// Largest number of entries, which are in the registers of one work-item. NVIDIA has 255 registers
/// of 4 bytes per work-item. QR of some 30 million entries, here / in `small`, ms: 4 x 4 0.18 /
/// 0.71 (float64 0.23 / 1.2), 8 x 8 0.50 / 0.72 (0.53 / 0.77); 16 x 8 in float32 0.35 / 0.15.
inline constexpr std::int64_t tiny_entries = 64;
/// Largest number of rows: R of 1000000 of 16 x 4 takes 0.32 ms, and 0.19 in `small`.
inline constexpr std::int64_t tiny_rows = 8;
/// Work-items, and matrices, of a group. 32 .. 256; a group's matrices are in local memory.
inline constexpr int tiny_group = 64;

}  // namespace qrtool::tuning
