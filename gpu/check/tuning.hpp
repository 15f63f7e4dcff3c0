// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of the check that could be chosen differently.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

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

}  // namespace qrtool::tuning
