// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of the files of this folder that could be chosen differently.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qrtool::tuning {

// ---- gram_twice (gram/twice/gram_twice.cl). NVIDIA H200, driver 580, 2026-11.

/// Largest number of columns. 512 .. 16384.
inline constexpr std::int64_t gram_twice_max_columns = 8192;
/// Groups that a product should have, and the rows of a slab. The errors of a sum grow with its
/// terms.
inline constexpr std::int64_t gram_twice_groups = 528;
inline constexpr std::int64_t gram_twice_least_slab_rows = 512, gram_twice_most_slab_rows = 8192;
/// Groups of sixteen warps that an H200 runs at a time, the smallest number of them with which
/// products are faster, and how much faster they are with all multiprocessors busy.
inline constexpr std::int64_t gram_twice_big_groups = 132;
inline constexpr std::int64_t gram_twice_least_big_groups = 80;
inline constexpr double gram_twice_big_gain = 1.4;
/// Largest number of registers per work-item in update_rows; with 128, two groups fit on a
/// multiprocessor. One 5000 x 5000 takes 23.9 ms with 128 and 27.5 without a limit.
inline constexpr int gram_twice_registers = 128;
/// Bytes of the matrices that are factored at a time.
inline constexpr std::size_t gram_twice_bytes = std::size_t{512} << 20;

// ---- further passes (gram/twice/further_passes.cl), for what a guard has refused.

/// The kernels before the first pass read A in pieces of at least so many rows, and in at most so
/// many pieces, unless a slab has fewer rows than such a piece. In the kernels after the last pass
/// a group stores so many entries of Q or R. One 512x512 had 8 groups for each of these four
/// kernels, which took 0.17 ms and take 0.05. NVIDIA H200, driver 580, 2026-11.
inline constexpr std::int64_t further_least_piece_rows = 64, further_most_pieces = 64;
inline constexpr std::int64_t further_stored_entries = 4096;

}  // namespace qrtool::tuning
