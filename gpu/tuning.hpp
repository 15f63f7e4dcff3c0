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
/// The same for `large` and `textbook`, which round more often: of 15000 Gaussian 16 x 16
/// matrices in float32 the worst orthogonality of `large` was 1.1 of the bar, of `small` 0.8.
/// NVIDIA H200, driver 580, 2026-11.
inline constexpr std::int64_t few_rows_large = 32;

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
/// Rows of Q that one work-group sums for its Gram matrix, at least: more are summed in slabs, and
/// so many slabs at most. 256 .. 4096, 128 .. 4096: a slab leaves a Gram matrix in float64. With
/// 4096 rows a single 9000 x 70 had 9 groups and took 0.134 ms for Q'Q; 4000000 x 64 takes 1.43 ms
/// with 1024 slabs and 1.41 with 2112. NVIDIA H200, driver 580, 2026-11.
inline constexpr std::int64_t check_slab_rows = 1024;
inline constexpr std::int64_t check_slabs = 1024;
/// Entries of R that one work-group looks at: whole rows. 1024 .. 65536. 512 x 512 takes 10 us with
/// 4096 and 19 with 16384. NVIDIA H200, driver 580, 2026-11.
inline constexpr std::int64_t r_slab_entries = 4096;
/// Columns of Q beyond which slabs are not used: their Gram matrices would fill the memory, and
/// there are groups enough. 64 .. 1024. Not yet measured.
inline constexpr int gram_slab_columns = 256;

/// Columns up to which NVIDIA's float64 matrix units measure float32 in one pass
/// (check/check_rows.cl), whose sums fill the registers: 162 with 64 columns. And columns up to
/// which the others stay with the plain body: a tile of 64 x 64 (check/check_units.clh) would be
/// three quarters empty.
inline constexpr std::int64_t check_rows_columns = 64;
inline constexpr std::int64_t check_units_columns = 32;

// ---- gram (variants/gram/gram.cl). NVIDIA H200, driver 580, 2026-11.

/// Columns that 32 work-items hold: the triangle of 64 in registers, 640 of 1024 in float64; of
/// more columns some rows of blocks in local memory, which holds no more.
inline constexpr std::int64_t gram_columns = 80;
/// Columns without matrix instructions, one block: PoCL 3.1 compiles two for minutes. 16 .. 32.
inline constexpr std::int64_t gram_portable_columns = 16;
/// Columns from which it pays: the kernel alone is faster from 17 on (32 x 32 0.087 / 0.073 ms, 33
/// x 17 0.074 / 0.064), but with the look at the flags and the matrices that they stop 32 x 32
/// takes 0.153 ms, as in `small`, and 33 x 17 0.124 instead of 0.106.
inline constexpr std::int64_t gram_least_columns = 33;
/// g / sqrt(m), g being the growth of rounding errors in sums of m products (gram_guard.clh). Of
/// the true error beside 2^-53 sqrt(m) ||D X||^2: 0.1 to 0.3 of random matrices, up to 0.9 on an
/// H200 (512 x 130, condition 1e6, 2026-11-22), to 2.2 of columns around a common mean (64 x 64),
/// simulated. `gram` has a second pass for the matrices that it stops, `gram_tiles` reflectors
/// alone.
inline constexpr double gram_guard_per_root = 2;
inline constexpr double gram_tiles_guard_per_root = 1.4;
/// p, the error of a product with an explicit inverse in units of 2^-53 (gram_guard.clh). With 4
/// the true error was at most 0.51 of the bound in all that was simulated.
inline constexpr double gram_inverse_error = 4;
/// What ||I - Q'Q|| of the first pass of `gram` may be for the second to make Q orthogonal.
inline constexpr double gram_first_pass_error = 0.25;
/// Slabs of 16 rows in local memory at a time, by blocks of 16 columns. 1 .. 4, as many as leave
/// room for the groups that registers allow.
inline constexpr int gram_stages[] = {4, 4, 3, 3, 2};
/// Matrices that are copied whole where they are no whole number of blocks.
inline constexpr std::int64_t gram_whole_columns = 32;
inline constexpr std::int64_t gram_whole_rows = 64;
/// Rows up to which a flagged matrix goes to `small`, else to `blocked`, whose groups return early:
/// PoCL 3.1 then loses some of what the others store.
inline constexpr std::int64_t gram_small_rows = 256;

// ---- gram_tiles (variants/gram_tiles/gram_tiles.cl). NVIDIA H200, driver 580, 2026-11.

/// Columns of a tile.
inline constexpr std::int64_t gram_tiles_columns = 64;
/// Registers per work-item at most, of the kernels with groups of 256: two groups per
/// multiprocessor. 5000 of 256 x 128, R: 112 registers 1.88 ms, 128 1.41, 168 1.82 (one group), no
/// limit (208) 1.55.
inline constexpr int gram_tiles_registers = 128;
/// Columns from which it pays: fewer leave the last tile too empty. 8000 of 130 x 70 take 3.3 ms,
/// in `small` 1.7; 100 of 256 x 128 0.103 and 0.161.
inline constexpr std::int64_t gram_tiles_least_columns = 97;
/// Columns at most: every 128 are two launches more. 512 .. 8192.
inline constexpr std::int64_t gram_tiles_max_columns = 5120;
/// Columns from which it pays for a few matrices alone, and how many: R of one 5000 x 5000
/// takes 6.5 ms, in `large` 11.8, of eight 53 and 35.7; between them the two lines cross at three.
inline constexpr std::int64_t gram_tiles_many_columns = 4096;
inline constexpr std::int64_t gram_tiles_few_matrices = 2;
/// Rows up to which it pays where `tall` takes the columns.
inline constexpr std::int64_t gram_tiles_tall_rows = 4096;
/// Bytes of the matrices that are in flight at a time: 5000 of 256 x 128 take 2.23 ms for R in
/// seven waves and 1.92 in two, in 3.4 times the memory.
inline constexpr std::size_t gram_tiles_bytes = std::size_t{256} << 20;

// ---- small (variants/small/). Tiles: NVIDIA H200, driver 580, 15000 matrices (5000 of 256 x 128)
// in float32, 2026-11; the kernels are bound by the instructions they issue.

/// Bytes of one work-item's tile, in registers. 128 .. 512. NVIDIA has 255 registers per work-item,
/// of which the rest of the kernel takes some 80; of 512 bytes 64x64 compiles to 205 registers (R),
/// 255 (Q) and no stack frame, of 640 bytes it spills.
inline constexpr int small_tile_bytes = 512;
/// Bytes of a matrix: a group's registers, 256 KiB on NVIDIA, hold its tile and as much again.
inline constexpr std::int64_t small_matrix_bytes = 128 << 10;
/// Groups whose matrices one group looks through where `gram` flags some: most find none, and a
/// group that only looks takes 3 ns, 46 us for 15000. 1 .. 16.
inline constexpr int small_flagged_share = 8;
/// Lanes of a flagged matrix at most.
inline constexpr int small_flagged_lanes = 256;
/// Columns per work-item. 1 .. 8. With 4 lanes across to 16 columns and 8 above: 64x64 takes 0.82
/// ms with 8 columns and 0.91 with 4, 32x32 0.14 with 4 and 0.16 with 8.
inline constexpr int small_lane_columns = 8;
inline constexpr int small_narrow_lane_columns = 4;
/// Fewest lanes across for what is not narrow, a power of two.
inline constexpr int small_least_lanes_across = 8;
/// Rows per work-item: narrow matrices have short columns. 4 .. 32. 16x16 takes 0.035 ms with 8
/// rows and 0.077 with 16; 64x64 0.82 ms with 16 rows and 0.91 with 32.
inline constexpr int small_lane_rows = 16;
inline constexpr int small_narrow_lane_rows = 8;
inline constexpr int small_narrow_columns = 16;
/// Largest tile: columns of A and Q, rows. 64 .. 256, 64 .. 1024.
inline constexpr int small_max_columns = 128;
inline constexpr int small_max_rows = 512;
/// Row splits of a column: lanes of one sub-group. 1 .. 32.
inline constexpr int small_max_row_splits = 32;
/// Work-items per group: several matrices share one when they have fewer lanes. 32 .. 512. With 128
/// the same time.
inline constexpr int small_group_size = 32;
inline constexpr int small_max_group_size = 512;
/// Columns that are worked on with the same first row; the tile's rows above are left out. 4 .. 32,
/// narrow matrices fewer: 32x32 takes 0.140 ms with 4 and 0.155 with 8; 64x64 with 4 is 0.47 ms for
/// R but 1.47 with Q, whose code is more than the instruction cache holds.
inline constexpr int small_column_step = 16;
inline constexpr int small_narrow_column_step = 4;
inline constexpr int small_narrow_step_columns = 32;

// ---- blocked (variants/blocked/blocked.cl). NVIDIA H200, driver 580, 2026-11.

/// Rows: the accuracy of a panel's W, T W and V T W wants some, registers bound them (float64:
/// half).
inline constexpr std::int64_t blocked_min_rows = 32;
inline constexpr std::int64_t blocked_max_row_bytes = 4096;
/// Columns at most: kernels count the entries of 32 rows in 32 bits.
inline constexpr std::int64_t blocked_max_columns = 1 << 25;
/// Columns per work-item of a strip of 32: 2, 4, 8. 512 x 512 takes 1.15 ms with 4, 1.56 with 8;
/// 1000 of 512 x 256 take 14.0 and 14.6. Short columns have room for 8.
inline constexpr int blocked_lane_columns = 4;
inline constexpr int blocked_short_lane_columns = 8;
inline constexpr int blocked_short_lane_rows = 8;
/// Bytes of a panel's reflectors in local memory at a time, at most. 4 .. 34 KiB; with V'C and T 12
/// KiB (float64: 24) of NVIDIA's 48.
inline constexpr int blocked_stage_bytes = 34 << 10;
inline constexpr int blocked_wide_stage_bytes = 22 << 10;

// ---- tall (variants/tall/tall.cl). NVIDIA H200, driver 580, 2026-11.

/// Largest number of columns: two blocks of as many rows must fit a group's registers.
inline constexpr std::int64_t tall_max_columns = 128;
inline constexpr std::int64_t tall_max_wide_columns = 64;  // float64
/// float32 with so many columns or fewer goes through the tree in float64: the bar is 30 u per
/// column, and 512 equal rows bias the norms. constant 5000 x 3: 1.006 of the bar in float32.
inline constexpr std::int64_t tall_few_columns = 8;
/// Bytes of a block's registers, and its rows at most. Rows: 128 .. 512, 16 per lane.
inline constexpr std::int64_t tall_block_bytes = 128 << 10;
inline constexpr std::int64_t tall_max_block_rows = 512;
inline constexpr int tall_lane_rows = 16;
/// Bytes of one work-item's tile, in registers, as of `small`.
inline constexpr int tall_tile_bytes = 512;
/// Row splits on a CPU, where work-items are loops.
inline constexpr int tall_cpu_row_splits = 8;
/// Slabs of rows that A'A is summed over, and the fewest rows of one: two groups per multiprocessor
/// of an H200, whose sums take most of its registers, and more where few columns leave room for
/// four. 264 and 528 slabs of 1000000 x 32: 0.0435, 0.0462 ms; x 16: 0.0297, 0.0248 ms.
inline constexpr std::int64_t tall_slabs = 264;
inline constexpr std::int64_t tall_thin_slabs = 528;
inline constexpr std::int64_t tall_thin_columns = 16;
/// Columns up to which their groups have 256 work-items, not 128.
inline constexpr std::int64_t tall_narrow_columns = 32;
inline constexpr std::int64_t tall_slab_rows = 1024;
/// Work-groups per matrix of what loops over its blocks. 132 .. 2112.
inline constexpr std::int64_t tall_groups = 264;
inline constexpr std::int64_t tall_product_groups = 1056;
/// Blocks of the tree's last levels that one group takes in one launch: where the tree is not
/// needed each launch still costs 3.6 us, where it is each of these blocks 40 to 200 us. 1 .. 32.
inline constexpr std::int64_t tall_joined_blocks = 32;
/// Blocks of a level that one group takes so that it can go on with the next levels, for the same
/// reason: 9 launches become 3 of 1000000 x 128, 4 become 3 of 4000000 x 64. 1 .. 64.
inline constexpr std::int64_t tall_subtree_blocks = 16;
/// Of A that one leaf holds where a matrix goes by rows. 8 .. 128 MiB.
inline constexpr std::int64_t tall_leaf_bytes = 32 << 20;

// ---- large (variants/large/large.cl, products/gemm.cl)

/// Columns per panel: 32, 64. float64, a column at a time: 32, local memory holds the panel's dot
/// products; small matrices too.
inline constexpr int large_panel = 64;
inline constexpr int large_narrow_panel = 32;
inline constexpr std::int64_t large_narrow_columns = 128;
/// Columns per block of panels, the terms of an update: few are updated sooner, many pass over the
/// trailing matrix less often. 1 .. 4 panels; the larger from that many columns on.
inline constexpr int large_block = 128;
inline constexpr int large_long_block = 256;
inline constexpr std::int64_t large_long_block_columns = 4000;
/// Rows of a slab of a Gram matrix, at least, slabs at most, and what there is room for at least.
inline constexpr std::int64_t large_gram_rows = 32;
inline constexpr std::int64_t large_gram_slabs = 128;
inline constexpr std::int64_t large_least_gram_slabs = 16;
/// Rows of a slab of V'C, at least; slabs of a panel's, at most; groups of a product
/// that an H200 runs at a time.
inline constexpr std::int64_t large_product_rows = 128;
inline constexpr std::int64_t large_panel_slabs = 32;
inline constexpr std::int64_t large_product_groups = 264;
/// What a slab of V'C costs, of its product: its part of Z is written and added up. Not measured.
inline constexpr double large_slab_cost = 0.003;
/// Part of a matrix that slabs of Z, or of a Gram matrix, may take, 1 / this; the same where V is
/// prepared too: at most 15 % of A and R from 2048 x 2048 on.
inline constexpr std::int64_t large_z_share = 8;
inline constexpr std::int64_t large_packed_z_share = 12;
/// Entries of T that halves have room for, times 8 until they overflow; below 1 / 8 of its inverse
/// they lose bits. 2 .. 2^14: T of Gaussian matrices has entries to 2.
inline constexpr double large_t_bound = 4096;
/// Columns of Z per group of apply_t and of apply_panel_t, four rows of a panel per work-item.
inline constexpr int large_strip = 16;
inline constexpr int large_narrow_strip = 32;

// ---- gemm (products/gemm.cl)

/// Tile of a work-group and of 32 work-items, terms per stage in local memory, stages there.
struct ProductTile {
  int rows, cols, warp_rows, warp_cols, depth, buffers;
};
/// Of the large products: fma in float32, in float64, and halves on the matrix units, of which
/// warp, depth and buffers are those of the narrow products; packed ones have 64 x 64 per warp and
/// two stages of 16 (products/packed_tile.clh). 3 products of halves, 8192 x 8192 x 256, C -= A B
/// and Z = A'C in TFLOP/s: 92 and 101 so; 80 and 90 with 64 x 32 per warp, one group of 256 where
/// 130 registers leave no room for two; 64 and 87 before operands were packed. NVIDIA H200, driver
/// 580, 2026-11.
inline constexpr ProductTile product_tile{128, 128, 32, 64, 16, 2};
/// Float32 fma by copies that need no registers, of which it may then have so many: two groups per
/// multiprocessor. 16384 x 16384 x 256, the kernels alone, C -= A B and Z = A'C in TFLOP/s: 47.0
/// and 45.6; 48.2 and 43.5 with 4 stages of 8; 46.2 and 39.3 without the limit. NVIDIA H200, driver
/// 580, 2026-11.
inline constexpr ProductTile product_floats_tile{128, 128, 32, 64, 16, 2};
inline constexpr int product_floats_registers = 128;
inline constexpr ProductTile product_double_tile{64, 64, 16, 32, 16, 2};
inline constexpr ProductTile product_halves_tile{128, 128, 64, 32, 32, 1};
/// float64 on the matrix units. C -= A B of 8192 x 8192 x 256 and Z = A'C run at 25 and 39 TFLOP/s;
/// 20 and 25 with tiles of 128 x 64 and 8 terms; 128 x 128 spills. NVIDIA H200, driver 580,
/// 2026-11.
inline constexpr ProductTile product_double_units_tile{64, 64, 32, 32, 16, 2};

// ---- vector (variants/vector/vector.cl). PoCL 3.1, two cores with AVX-512, 2026-11.

/// Bytes of a vector, a matrix per entry. 32 .. 64: wider ones are not in OpenCL C for float64.
inline constexpr std::int64_t vector_bytes = 64;
/// Rows and columns beyond which a pack outgrows the caches by far, and the plain sums of 32 rows
/// may err by more than the bar.
inline constexpr std::int64_t vector_max_rows = 1024, vector_max_columns = 128;
/// Work-groups, each with a slot, that go from pack to pack. 1 .. 1024: more than cores.
inline constexpr std::int64_t vector_groups = 64;

// ---- textbook (variants/textbook/textbook.cl)

/// Largest matrix: one work-item per column, n^4 operations.
inline constexpr int textbook_max_columns = 64;

}  // namespace qrtool::tuning
