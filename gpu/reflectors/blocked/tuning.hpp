// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `blocked` (blocked.cl) that could be chosen differently. NVIDIA H200,
// driver 580, 2026-11.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

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

}  // namespace qrtool::tuning
