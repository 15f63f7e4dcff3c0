// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of `large` (large.cl, products/gemm.cl) that could be chosen differently.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstdint>

namespace qrtool::tuning {

/// Columns per panel: 32, 64. In float64, where a panel is factored one column at a time, a panel
/// has 32, because local memory holds the panel's dot products. Small matrices also have panels of
/// 32.
inline constexpr int large_panel = 64;
inline constexpr int large_narrow_panel = 32;
inline constexpr std::int64_t large_narrow_columns = 128;
/// In float64 the matrices up to so many rows have one launch more for each panel, which forms T
/// again from exact sums. Taller ones have a bar above the error of T from the triangles: up to
/// 0.78 of it from 50x50 to 130x100 (960 attack matrices, PoCL 3.1, 2026-11).
inline constexpr std::int64_t large_exact_t_rows = 48;
/// Matrices of up to so many rows go through the bodies of the products that add 16 terms of Z
/// plainly. The other bodies add 256 terms: where rows are alike, all of these additions round the
/// same way, and the bar of a matrix with few rows is too low for that.
inline constexpr std::int64_t large_short_sums_rows = 256;
/// Columns per block of panels, which is the number of terms of an update. 1 .. 4 panels. With
/// small blocks an update starts sooner; with large blocks the trailing matrix is read and written
/// less often. Matrices with large_long_block_columns columns or more use the larger blocks.
inline constexpr int large_block = 128;
inline constexpr int large_long_block = 256;
inline constexpr std::int64_t large_long_block_columns = 4000;
/// The smallest part of the size of A, Q and R that the reflectors of a block may take in float64.
inline constexpr std::int64_t large_v_share = 8;
/// The Gram matrix of a panel is summed over slabs: the smallest number of rows of a slab, the
/// largest number of slabs, and the smallest number of slabs for which the workspace has room.
inline constexpr std::int64_t large_gram_rows = 32;
inline constexpr std::int64_t large_gram_slabs = 128;
inline constexpr std::int64_t large_least_gram_slabs = 16;
/// Where panels go through the float64 matrix units, one group computes the whole Gram matrix of a
/// panel of so many matrices or more, with the same bits. 66 .. 1000. The number is that of an
/// H200's multiprocessors, which no measurement has compared with others.
inline constexpr std::int64_t large_whole_gram_matrices = 132;
/// The smallest number of rows of a slab of V'C, the largest number of slabs for a panel's V'C, and
/// the number of groups of a product that an H200 runs at a time.
inline constexpr std::int64_t large_product_rows = 128;
inline constexpr std::int64_t large_panel_slabs = 32;
inline constexpr std::int64_t large_product_groups = 264;
/// Cost of a slab of V'C as a share of its product of at most so many rows: its part of Z is
/// written and later summed. The number is an estimate, which no device has measured.
inline constexpr double large_slab_cost = 0.003;
inline constexpr std::int64_t large_slab_cost_depth = 16384;
/// The number of slabs of a block's Z for which its buffer has room: four for 16384 rows, within
/// these limits.
inline constexpr std::int64_t large_least_z_slabs = 8, large_most_z_slabs = 128;
/// The columns of A are scanned and scaled in slabs: the largest number of slabs, and the smallest
/// number of their rows. With all rows in one slab, 1000000 x 128 took 74 of 103 ms.
inline constexpr std::int64_t large_scan_slabs = 256, large_scan_rows = 1024;
/// Matrices of up to so many rows are read once for both: 8 .. large_scan_rows, a multiple of 8. A
/// work-item holds one entry in eight rows, and 64 of them leave room for two groups at a time.
inline constexpr int large_short_rows = 512;
/// Float32 panels of up to so many rows that are refused are factored in registers: 128 .. 512, a
/// multiple of 128. A work-item holds 128 entries of 512 rows, which leaves room for one group at a
/// time; a group keeps twice as many only in 512 work-items. 640 hard 512x512, raw, NVIDIA H200,
/// driver 580: 16.7 ms with none in registers, 7.5 with all.
inline constexpr int large_refused_rows = 512;
/// Slabs of Z, or of a Gram matrix, may take 1 / large_z_share of the size of a matrix. The second
/// number applies if V is packed too. From 2048 x 2048 on this is at most 15 % of A and R.
inline constexpr std::int64_t large_z_share = 8;
inline constexpr std::int64_t large_packed_z_share = 12;
/// Bound of the entries of T from which the scale for halves (16-bit floats) is chosen. Entries
/// above 8 times the bound overflow, and entries below 1 / 8 of its inverse lose bits. 2 .. 2^14. T
/// of Gaussian matrices has entries of up to 2.
inline constexpr double large_t_bound = 4096;
/// Columns of Z per group of apply_t and of apply_panel_t; a work-item has four rows of a panel.
inline constexpr int large_strip = 16;
inline constexpr int large_narrow_strip = 32;

}  // namespace qrtool::tuning
