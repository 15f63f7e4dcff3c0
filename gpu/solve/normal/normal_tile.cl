// SPDX-License-Identifier: Apache-2.0
// normal_tile.cl: least squares by normal equations in float64, as normal.cl, by a warp for each
// system, which holds L in its registers as the variant `gram` does. It is meant for devices that
// multiply blocks of float64 (mma.clh).
//
//   A'A = G,  A'b = y                       by slabs of rows in local memory
//   G = L L'                                gram_tile_pivots.clh
//   x = L'^-1 L^-1 y                        by blocks, with the inverses of those on the diagonal
//   float64 A: g = A'(b - A x),  x += L'^-1 L^-1 g  until ||d|| <= enough ||x||
//   R = L'                                  for the check (systems.cl)
//
// normal.cl says why one step is enough for float32, and what is left to R of a variant.
//
// Defines, set in normal_tile.cpp    range     meaning
//   SUB_GROUP_BODY, MMA                        common.clh, mma.clh
//   STORED                                     common.clh
//   BLOCKS, LAST, FULL                         gram_tile.clh
//   SLAB, STAGES                               gram_slab.clh
//   MOST_STEPS                       1 ..      the first step and the corrections
// Work-group: a warp, for a system of at most 16 BLOCKS columns.
#include "gpu/common/common.clh"

#ifndef MOST_STEPS
#define MOST_STEPS 4
#endif
#include "gpu/gram/steps/gram_shape.clh"
#include "gpu/gram/steps/gram_tile_pivots.clh"
#include "gpu/gram/steps/gram_tile_sums.clh"
#ifndef BY_QUADS
#define BY_QUADS 1
#endif
#include "gpu/solve/normal/block_vectors.clh"

// The rows of a slab that a lane has.
#define OWNED_SLAB_ROWS ((SLAB + WARP_LANES - 1) / WARP_LANES)
// Lanes that share a row of a slab.
#define ROW_LANES ((WARP_LANES + SLAB - 1) / SLAB)

// ---- A'b

// The entries of b for the rows of slab i, with zeros past row m; none for i < 0.
INLINE void fetch_part_of_b(const Warp* at, STORED rows[OWNED_SLAB_ROWS], __global const STORED* b,
                            int m, int i) {
#pragma unroll
  for (int s = 0; s < OWNED_SLAB_ROWS; ++s) {
    const int in_slab = at->lane + WARP_LANES * s, row = i * SLAB + in_slab;
    rows[s] = in_slab < SLAB && row >= 0 && row < m ? b[row] : 0;
  }
}

INLINE void hold_part_of_b(const Warp* at, __local double* to, const STORED rows[OWNED_SLAB_ROWS]) {
#pragma unroll
  for (int s = 0; s < OWNED_SLAB_ROWS; ++s) {
    const int in_slab = at->lane + WARP_LANES * s;
    if (in_slab < SLAB) to[in_slab] = rows[s];
  }
}

// own += the lane's entries of slab' v.
INLINE void add_transposed_product(const Warp* at, double own[OWNED_COLUMNS],
                                   __local const STORED* slab, Layout a, __local const double* v) {
#pragma unroll 4
  for (int row = 0; row < SLAB; ++row) {
#pragma unroll
    for (int s = 0; s < OWNED_COLUMNS; ++s) {
      const int col = at->lane + WARP_LANES * s;
      if (col < a.n) own[s] = fma((double)slab[a.shift + row * a.stride + col], v[row], own[s]);
    }
  }
}

INLINE void hold_vector(const Warp* at, __local double* to, const double own[OWNED_COLUMNS]) {
#pragma unroll
  for (int s = 0; s < OWNED_COLUMNS; ++s) {
    const int col = at->lane + WARP_LANES * s;
    if (col < PADDED_COLUMNS) to[col] = own[s];
  }
}

// Sums A'A in the blocks of G that the warp has in registers, and y := A'b.
INLINE void form_system(const Warp* at, Tile* tile, Shared room, __local double* rows,
                        __local double* y, __global const STORED* a, __global const STORED* b,
                        Layout layout, Size* largest) {
  const int slab_count = SLABS(layout.m);
  Block sums[BLOCK_AT(BLOCKS, 0)];
#pragma unroll
  for (int i = 0; i < BLOCK_AT(BLOCKS, 0); ++i) clear_block(sums[i]);
  double own[OWNED_COLUMNS];
#pragma unroll
  for (int s = 0; s < OWNED_COLUMNS; ++s) own[s] = 0;
  STORED of_b[OWNED_SLAB_ROWS];
  fetch_part_of_b(at, of_b, b, layout.m, 0);
  begin_slabs(room.slabs, a, layout, at->lane);
#pragma unroll 1
  for (int i = 0; i < slab_count; ++i) {
    __local STORED* slab = room.slabs + SLAB_PLACE(i, slab_count);
    wait_for_stage(STAGES - 1);
    hold_part_of_b(at, rows, of_b);
    sync_warp();
    fetch_part_of_b(at, of_b, b, layout.m, i + 1);
    add_gram(at, sums, slab, layout, min(SLAB, layout.m - i * SLAB), 0, HELD, largest);
    add_transposed_product(at, own, slab, layout, rows);
    sync_warp();
    if (i + STAGES < slab_count) load_slab(slab, a, layout, (i + STAGES) * SLAB, at->lane);
    commit_copies();
  }
  put_sums(at, tile, sums, room, layout.n, 0, HELD);
  sync_warp();
  hold_vector(at, y, own);
}

// ---- x

// v := L'^-1 L^-1 v
INLINE void solve_tile(const Warp* at, const Tile* tile, __local const double* pivots,
                       __local double* v) {
#pragma unroll
  for (int b = 0; b < BLOCKS; ++b) {
    Block l;
    double of_rows[WORD_ROWS] = {0}, of_cols[WORD_COLS] = {0};
#pragma unroll
    for (int k = 0; k < b; ++k) {
      get_tile(at, l, tile, b, k);
      add_row_product(at, of_rows, l, v + 16 * k);
    }
    if (b > 0) take_row_sums(at, of_rows, v + 16 * b, true);
    get_quads(at, l, PIVOT(b));
    add_column_product(at, of_cols, l, v + 16 * b);
    take_column_sums(at, of_cols, v + 16 * b, false);
  }
#pragma unroll
  for (int b = BLOCKS - 1; b >= 0; --b) {
    Block l;
    double of_rows[WORD_ROWS] = {0}, of_cols[WORD_COLS] = {0};
#pragma unroll
    for (int k = b + 1; k < BLOCKS; ++k) {
      get_tile(at, l, tile, k, b);
      add_column_product(at, of_cols, l, v + 16 * k);
    }
    if (b < BLOCKS - 1) take_column_sums(at, of_cols, v + 16 * b, true);
    get_quads(at, l, PIVOT(b));
    add_row_product(at, of_rows, l, v + 16 * b);
    take_row_sums(at, of_rows, v + 16 * b, false);
  }
}

// ---- corrections

#if MOST_STEPS > 1
// rows -= slab x. Where the distance of two rows is even, the sum of each row begins at another
// column, so that the lanes read from different banks.
INLINE void subtract_slab_product(const Warp* at, __local double* rows, __local const STORED* slab,
                                  Layout a, __local const double* x) {
#pragma unroll 1
  for (int row = at->lane % SLAB; row < SLAB; row += WARP_LANES) {
    __local const STORED* from = slab + a.shift + row * a.stride;
    const int turned = a.stride % 2 == 0 ? row % a.n : 0;
    double sum = 0;
#pragma unroll 8
    for (int i = at->lane / SLAB; i < a.n; i += ROW_LANES) {
      const int col = i + turned - (i + turned < a.n ? 0 : a.n);
      sum = fma((double)from[col], x[col], sum);
    }
    sum = sum_of_lanes(sum, SLAB, WARP_LANES);
    if (at->lane < SLAB) rows[row] -= sum;
  }
}

// y := A'(b - A x), beginning with the last slabs, which may still be in local memory.
INLINE void form_tile_gradient(const Warp* at, Shared room, __local double* rows,
                               __local const double* x, __local double* y, __global const STORED* a,
                               __global const STORED* b, Layout layout, bool is_loaded) {
  const int slab_count = SLABS(layout.m);
  double own[OWNED_COLUMNS];
#pragma unroll
  for (int s = 0; s < OWNED_COLUMNS; ++s) own[s] = 0;
  STORED of_b[OWNED_SLAB_ROWS];
  fetch_part_of_b(at, of_b, b, layout.m, slab_count - 1);
#pragma unroll 1
  for (int i = slab_count - 1; i >= slab_count - STAGES; --i) {
    if (!is_loaded && i >= 0)
      load_slab(room.slabs + SLAB_PLACE(i, slab_count), a, layout, i * SLAB, at->lane);
    commit_copies();
  }
#pragma unroll 1
  for (int i = slab_count - 1; i >= 0; --i) {
    __local STORED* slab = room.slabs + SLAB_PLACE(i, slab_count);
    wait_for_stage(STAGES - 1);
    hold_part_of_b(at, rows, of_b);
    sync_warp();
    fetch_part_of_b(at, of_b, b, layout.m, i - 1);
    subtract_slab_product(at, rows, slab, layout, x);
    sync_warp();
    add_transposed_product(at, own, slab, layout, rows);
    sync_warp();
    if (i >= STAGES) load_slab(slab, a, layout, (i - STAGES) * SLAB, at->lane);
    commit_copies();
  }
  hold_vector(at, y, own);
  sync_warp();
}

INLINE double square_of_vector(const Warp* at, __local const double* v) {
  double sum = 0;
  for (int i = at->lane; i < PADDED_COLUMNS; i += WARP_LANES) sum = fma(v[i], v[i], sum);
  return sum_of_warp(sum);
}
#endif

// Groups: one per system of n columns.
__kernel __attribute__((reqd_work_group_size(WARP_LANES, 1, 1))) void solve_normal_tile(
    __global const STORED* a, __global const STORED* b, __global STORED* r, __global STORED* x,
    SystemShape shape, int n) {
  __local double scratch[PIVOT_ROOM] __attribute__((aligned(16)));
  __local STORED slabs[STAGES * SLAB_ENTRIES] __attribute__((aligned(16)));
  __local double pivots[BLOCKS * BLOCK_ROOM], own_x[PADDED_COLUMNS], y[PADDED_COLUMNS], rows[SLAB];
#if PARKED
  __local double parked[256 * PARKED];
#else
  __local double* parked = 0;
#endif
  // In float32 y is where the squares of the columns' norms go, which are not used.
  const Shared room = {slabs, STORED_IS_DOUBLE ? pivots : y, 0, pivots};
  const index_t system = get_group_id(0);
  const FactorShape matrix = {.count = shape.count, .m = shape.m, .n = n};
  const Layout layout = layout_of(matrix, system);
  const Warp at = quad_warp(kept_apart(get_local_id(0)), scratch);
  a += system * shape.m * n;
  b += system * shape.m;
  Tile tile;
  tile.parked = parked;
  Size largest = 0;
#if PARKED
  form_tile_gram(&at, &tile, room, a, layout, HELD, BLOCKS, &largest);
  sync_warp();
#endif
  form_system(&at, &tile, room, rows, y, a, b, layout, &largest);
  sync_warp();
  const Factor factor = {r + system * n * n, n, true};
  int plain = 0;
  factor_tile_twice(&at, &tile, factor, pivots, &plain, MOST_PLAIN(shape.m, n));
  solve_tile(&at, &tile, pivots, y);
  for (int i = at.lane; i < PADDED_COLUMNS; i += WARP_LANES) own_x[i] = y[i];
  sync_warp();
#if MOST_STEPS > 1
#pragma unroll 1
  for (int step = 1; step < MOST_STEPS; ++step) {
    form_tile_gradient(&at, room, rows, own_x, y, a, b, layout, step == 1);
    solve_tile(&at, &tile, pivots, y);
    for (int i = at.lane; i < PADDED_COLUMNS; i += WARP_LANES) own_x[i] += y[i];
    sync_warp();
    const double of_d = square_of_vector(&at, y), of_x = square_of_vector(&at, own_x);
    if (!(of_d > shape.enough * shape.enough * of_x)) break;
  }
#endif
  for (int i = at.lane; i < n; i += WARP_LANES) {
    x[system * shape.x_system + i * shape.x_step] = (STORED)own_x[i];
  }
}
