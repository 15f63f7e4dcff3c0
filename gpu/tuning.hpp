// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: every number of the OpenCL backend that could be another one.
//
// Each states its range, its reason, and where and when it was measured.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qrtool::tuning {

// ---- results

/// float32 with fewer rows is computed in float64: the bar of m 2^-23 leaves no room for rounding.
/// Not a matter of speed: part of the promise, the same in every backend.
inline constexpr std::int64_t few_rows = 16;
/// The same for `blocked` and `textbook`, which round more often: of 15000 Gaussian 16 x 16
/// matrices in float32 the worst orthogonality of `blocked` was 1.1 of the bar, of `small` 0.8.
/// NVIDIA H200, driver 580, 2026-11.
inline constexpr std::int64_t few_rows_blocked = 32;

// ---- memory and overlap (opencl_backend, buffers)

/// Bytes of input and output that travel together. 1 MiB .. 1 GiB. Small enough that a chunk of the
/// pipeline (64 MiB) is cut into several, so that upload, compute and download overlap; large
/// enough to hide some 10 us of latency each. Not yet measured.
inline constexpr std::size_t sub_chunk_bytes = std::size_t{16} << 20;
/// Sub-chunks on the device at once. 1 .. 4. One each in upload, compute and download.
inline constexpr int buffer_sets = 3;
/// Part of the device's memory that is used, in percent. 50 .. 95. The driver needs some for
/// itself, and other programs may hold some; running short is not fatal. Not yet measured.
inline constexpr std::size_t device_memory_percent = 85;

// ---- checks

/// The host re-measures the first and the last matrix of a sub-chunk and one in so many between.
/// 1 .. 10^6.
inline constexpr std::int64_t host_sample_step = 1000;
/// Operations that the host may spend on these for one call; beyond, matrices are left out. About
/// half a second of one core. Not yet measured.
inline constexpr double host_sample_operations = 4e9;
/// Rows of Q that one work-group sums for its Gram matrix; more are summed in slabs. 1024 .. 65536.
/// Not yet measured.
inline constexpr int gram_slab_rows = 4096;
/// Columns of Q beyond which slabs are not used: their Gram matrices would fill the memory, and
/// there are groups enough. 64 .. 1024. Not yet measured.
inline constexpr int gram_slab_columns = 256;

// ---- small (kernels/small.cl)

/// Bytes of one work-item's tile, in registers. 128 .. 512. NVIDIA has 255 registers per work-item,
/// of which the rest of the kernel takes some 80: 64x64 float32 with 512 bytes compiles to 209
/// (R), 248 (Q) and no stack frame. NVIDIA H200, driver 580, 2026-11.
inline constexpr int small_tile_bytes = 512;
/// Columns per work-item for narrow matrices; from `small_wide_columns` columns on 2, so that tall
/// tiles have fewer row splits. 1 .. 8. Not yet measured.
inline constexpr int small_columns_per_lane = 4;
inline constexpr int small_wide_columns = 64;
/// Largest tile: columns of A and Q, rows. 64 .. 256, 64 .. 1024. Not yet measured.
inline constexpr int small_max_columns = 128;
inline constexpr int small_max_rows = 512;
/// Row splits of a column: lanes of one sub-group. 1 .. 32.
inline constexpr int small_max_row_splits = 32;
/// Work-items per group: several matrices share one when they have fewer lanes. 32 .. 512. Not yet
/// measured.
inline constexpr int small_group_size = 128;
inline constexpr int small_max_group_size = 512;
/// Columns that are worked on with the same first row; the tile's rows above are left out. 4 .. 32.
/// Not yet measured.
inline constexpr int small_column_step = 16;
/// Local memory per group, bytes. NVIDIA gives 47 KiB at the most; a third leaves room for three
/// groups. 8 .. 47 KiB. Not yet measured.
inline constexpr int small_local_bytes = 16 << 10;

// ---- blocked (kernels/blocked.cl)

/// Columns per panel: narrow ones cost less while they are latency-bound, wide ones touch the
/// trailing matrix less often. 8, 16, 32. Not yet measured.
inline constexpr int blocked_panel_width = 16;
inline constexpr int blocked_wide_panel_width = 32;
/// With few rows panels are narrow for accuracy: W, T W and V T W round once each, in proportion to
/// the panel's width. float64 16 x 16, 3000 matrices of each kind: worst orthogonality 1.19 of the
/// bar with 16 columns. PoCL, 2026-11.
inline constexpr int blocked_narrow_panel_width = 8;
inline constexpr std::int64_t blocked_narrow_rows = 32;
/// Rows from which panels are wide. Not yet measured.
inline constexpr std::int64_t blocked_wide_rows = 1024;
/// Work-items per group. 64 .. 256, a power of two. Not yet measured.
inline constexpr int blocked_group_size = 256;
/// Trailing columns per work-group. 16, 32. Not yet measured.
inline constexpr int blocked_strip_columns = 32;
/// Rows of V and C in local memory at a time. 8 .. 64. Not yet measured.
inline constexpr int blocked_tile_rows = 32;
/// Operations per launch of form_q: display devices kill a kernel that runs for seconds. Not yet
/// measured.
inline constexpr double blocked_launch_operations = 2e11;

// ---- textbook (kernels/textbook.cl)

/// Largest matrix: one work-item per column, n^4 operations.
inline constexpr int textbook_max_columns = 64;

}  // namespace qrtool::tuning
