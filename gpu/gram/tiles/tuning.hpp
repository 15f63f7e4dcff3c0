// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `gram_tiles` (gram_tiles.cl) that could be chosen differently. NVIDIA
// H200, driver 580, 2026-11.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qrtool::tuning {

/// Columns of a tile.
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

}  // namespace qrtool::tuning
