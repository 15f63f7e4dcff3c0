// SPDX-License-Identifier: Apache-2.0
// gram.cl: QR of a batch of matrices in float32 with at most 96 columns, by Gram matrices in
// float64 (CholeskyQR). It consists of products, without columns that depend on one another, and is
// meant for devices whose float64 is as fast as their float32.
//
//   gram     G = A'A, in float64: products of float32 are exact and neither overflow nor underflow
//   factor   G = L L', by blocks: X(b, b) = L(b, b)'^-1, L(c, b) = G(c, b) X(b, b),
//            G(d, c) -= L(d, b) L(c, b)'; R = L'
//   invert   X = L'^-1: X(l, c) = -(sum_k X(l, k) L(c, k)') X(c, c), l <= k < c
//   make_q   Q = A X, rounded once
//   guard    T bounds ||I - Q'Q|| (gram_guard.clh)
//
// Three routes follow from T, and routes[matrix] says which one the matrix took:
//   first pass    T is below Q's bar.
//   second pass   T is at most 1/4 and R is accurate to float32: Q replaces A, and the second pass
//                 makes it orthogonal (CholeskyQR2). Because ||I - Q1'Q1|| <= 1/4, the condition
//                 number of Q1 is at most sqrt(5/3), and this pass needs no guard. Its own factor
//                 is close to I, as R is accurate, and is not stored.
//   reflectors    Householder reflectors factor the matrix again (`small` or `blocked`, FLAGGED).
// Source: Yamamoto, Nakatsukasa, Yanagisawa, Fukaya, "Roundoff error analysis of the CholeskyQR2
// algorithm", ETNA 44 (2015).
//
// There is one kernel, factor_gram. A warp (mma.clh) holds one triangle of a matrix's blocks in
// registers (gram_tile.clh). All products are S T' (quad_block.clh). A is read in slabs through
// local memory (gram_tile_sums.clh), and Q is written through the same slabs (gram_slab.clh).
//
// Defines, set in gram.cpp            range      meaning
//   SUB_GROUP_BODY, MMA                          common.clh, mma.clh
//   BLOCKS                            1..6       blocks of 16 columns; float64: 1..5
//   LAST                              1..4       quads of columns in the last of them
//   SLAB, STAGES                      16.., 1..  rows of a slab, and slabs in local memory
//   STORED                                       common.clh; double: two passes
//                                                (gram_twice_tile.clh)
//   WANT_Q                            0, 1
//   ONE_PASS                          0, 1       1: float64, R alone: the guard for one pass
//   FULL                              0, 1       1: m is a multiple of SLAB, n of 16 BLOCKS
// A is m x n, m >= n. Signs of R's diagonal: positive.
#include "gpu/common/common.clh"

#ifndef WANT_Q
#define WANT_Q 1
#endif
#ifndef ONE_PASS
#define ONE_PASS 0
#endif
// 1: local memory is scarce, and some of it has two uses (gram_slab.clh, gram_tile.clh).
#define CROWDED (COLUMNS > 64 && !TWICE)
#include "gpu/common/gram_shape.clh"
#include "gpu/common/gram_tile_sums.clh"

#define MOST_PASSES (WANT_Q ? 2 : 1)

// ---- make_q

// Loads 16 x 16 entries of A.
INLINE void get_entries(const Warp* at, Block x, __local const STORED* from, Layout a,
                        const int quads, const bool is_last) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    STORED y = 0;
    if (w < quads * QUARTER_WORDS) y = from[SLAB_ROW(w, at->g) * a.stride + QUAD_COL(w, at->t)];
    if (!FULL && is_last && w / QUARTER_WORDS == quads - 1 && QUAD_COL(w, at->t) >= a.last) y = 0;
    x[w] = (double)y;
  }
}

INLINE void put_entries(const Warp* at, const Block x, __local STORED* to, Layout a,
                        const bool is_last) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const int col = QUAD_COL(w, at->t);
    if (FULL || !is_last || col < a.last) to[SLAB_ROW(w, at->g) * a.stride + col] = (STORED)x[w];
  }
}

#if !TWICE
// Replaces 16 rows of A by rows of Q, starting with the last columns. tile: X' below the diagonal.
INLINE void make_q(const Warp* at, const Tile* tile, __local const double* pivots,
                   __local float* rows, Layout a) {
#pragma unroll
  for (int pair = 0; pair < (BLOCKS + 1) / 2; ++pair) {
    const int c = BLOCKS - 1 - 2 * pair;
    Block x, y, z, s;
    clear_block(y);
    clear_block(z);
#pragma unroll
    for (int k = 0; k <= c; ++k) {
      get_entries(at, s, rows + 16 * k, a, QUADS(k), k == BLOCKS - 1);
      if (k < c) {
        get_tile(at, x, tile, c, k);
        multiply_quads(z, s, x, 4, HALVES(c));
      }
      if (k < c - 1) {
        get_tile(at, x, tile, c - 1, k);
        multiply_quads(y, s, x, 4, 2);
      }
      if (k >= c - 1) get_quads_transposed(at, x, PIVOT(k));
      if (k == c - 1) multiply_lower_quads(y, s, x, 4, 2);
      if (k == c) multiply_lower_quads(z, s, x, QUADS(c), HALVES(c));
    }
    sync_warp();
    put_entries(at, z, rows + 16 * c, a, c == BLOCKS - 1);
    if (c > 0) put_entries(at, y, rows + 16 * (c - 1), a, false);
  }
}

#endif

// ---- factor_gram

INLINE void store_warp_nan(__global STORED* to, index_t count, int item, const int lanes) {
  for (index_t i = item; i < count; i += lanes) to[i] = NAN;
}

#if !TWICE
// The largest x, which must not be negative: the bits of such floats have the order of their
// values.
INLINE float max_of_warp(float x) {
#if MMA
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    x = fmax(x, as_float(shuffle_xor_word(as_int(x), offset)));
  }
#endif
  return x;
}
#endif

#if TWICE
#include "gpu/variants/gram/gram_twice_tile.clh"
#else
// Transposes the blocks above the diagonal; those of the last row of blocks are already X'.
INLINE void transpose_inverse(const Warp* at, Tile* tile) {
#pragma unroll
  for (int c = 1; c < BLOCKS - 1; ++c) {
#pragma unroll
    for (int l = 0; l < BLOCKS; ++l) {
      if (l < c) {
        Block x;
        get_tile(at, x, tile, c, l);
        transpose_quads(at, x, x);
        put_tile(at, tile, x, c, l);
      }
    }
  }
}

// Q := A X, slab by slab, beginning with the last ones, which are still in local memory (CROWDED:
// the last one). q may be a.
INLINE void multiply_slabs(const Warp* at, const Tile* tile, Shared room, __global const float* a,
                           __global float* q, Layout layout) {
  const int slab_count = SLABS(layout.m);
#if CROWDED
  hand_over_room();
#pragma unroll 1
  for (int i = slab_count - 2; i >= max(slab_count - STAGES, 0); --i) {
    load_slab(room.slabs + SLAB_PLACE(i, slab_count), a, layout, i * SLAB, at->lane);
    commit_copies();
  }
#endif
#pragma unroll 1
  for (int i = slab_count - 1; i >= 0; --i) {
    __local float* slab = room.slabs + SLAB_PLACE(i, slab_count);
    wait_for_stage(STAGES - 1);
    sync_warp();
#pragma unroll 1
    for (int row = 0; row < min(SLAB, layout.m - i * SLAB); row += 16) {
      make_q(at, tile, room.pivots, slab + layout.shift + row * layout.stride, layout);
    }
    sync_warp();
    store_slab(slab, q, layout, i * SLAB, at->lane);
    sync_warp();
    if (i >= STAGES) load_slab(slab, a, layout, (i - STAGES) * SLAB, at->lane);
    commit_copies();
  }
}

// Factors the matrix: G -> L -> X in `tile`. Stores R and returns the largest |a_ij|.
INLINE float factor_matrix(const Warp* at, Tile* tile, Shared room, __global const float* a,
                           Layout layout, Factor r) {
  float largest = 0;
#if PARKED
  form_tile_gram(at, tile, room, a, layout, HELD, BLOCKS, &largest);
  sync_warp();
#endif
  form_tile_gram(at, tile, room, a, layout, 0, HELD, &largest);
#if CROWDED
  hand_over_room();
  take_parked_diagonal(at, tile, room.squares, layout.n);
#endif
  factor_tile(at, tile, r, room.pivots);
  if (r.is_stored) store_zeros(r.entries, r.n, at->lane);
  invert_tile(at, tile, room.pivots);
  return max_of_warp(largest);
}

INLINE double trace_of_gram(const Warp* at, __local const double* squares) {
  double trace = 0;
#pragma unroll
  for (int c = 0; c < COLUMNS; c += WARP_LANES) {
    if (c + at->lane < COLUMNS) trace += squares[c + at->lane];
  }
  return sum_of_warp(trace);
}

// The route of a matrix (gram_guard.clh).
INLINE int route_of(const Warp* at, const Tile* tile, Shared room, Factor r, FactorLimits limits) {
  RowSums plain, sums;
  __local const double* weights = room.squares;
#pragma unroll 1
  for (int step = 0;; ++step) {  // the sums of D X, and, if these are not enough, those of H X
    sum_rows(at, &sums, tile, room.pivots, weights);
    if (kept_apart(step) > 0) break;
    plain = sums;
    if (agreed(bound_of(&plain, limits.share) <= limits.most)) return ROUTE_FIRST_PASS;
    const float bound = column_bound_of(at, &plain, room.pivots, r, room.squares, limits.share);
    if (agreed(bound <= limits.most)) return ROUTE_FIRST_PASS;
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    take_spread(at->lane, COLUMNS, room.pivots, r.entries, r.n, r.n, room.squares, at->room,
                room.spread);
    weights = room.spread;
  }
  const float guard = guard_of(&plain, &sums, limits.share);
  int route = guard <= limits.most ? ROUTE_FIRST_PASS : ROUTE_REFLECTORS;
  if (agreed(route == ROUTE_REFLECTORS && guard <= limits.most_in_two)) {
    take_column_norms(at, tile, room.pivots, room.squares, room.spread, limits.share, at->room);
    if (agreed(r_is_accurate(at, r, at->room, limits.most_of_r))) route = ROUTE_SECOND_PASS;
  }
  return route;
}

// Groups: one per matrix.
__kernel __attribute__((reqd_work_group_size(WARP_LANES, 1, 1))) void factor_gram(
    __global const float* a, __global float* q, __global float* r, __global int* magnitudes,
    __global int* routes, FactorShape shape, FactorLimits limits) {
#if CROWDED
  __local float slabs[STAGES * SLAB_ENTRIES] __attribute__((aligned(16)));
  __local double* scratch = (__local double*)(slabs + SLAB_ENTRIES);
  __local double *squares = scratch + BLOCK_ROOM, *spread = squares + COLUMNS;
  __local double pivots[BLOCKS * BLOCK_ROOM];
#else
  __local double scratch[BLOCK_ROOM] __attribute__((aligned(16)));
  __local float slabs[STAGES * SLAB_ENTRIES] __attribute__((aligned(16)));
  __local double squares[COLUMNS], spread[COLUMNS], pivots[BLOCKS * BLOCK_ROOM];
#endif
#if PARKED
  __local double parked[256 * PARKED];
#else
  __local double* parked = 0;
#endif
  const Shared room = {slabs, squares, spread, pivots};
  const int n = shape.n;
  const index_t matrix = get_group_id(0);
  const Layout layout = layout_of(shape, matrix);
  a += matrix * shape.m * n;
  q += matrix * shape.m * n;
  r += matrix * n * n;

  bool is_finite = true;
  int passes = 1;
#pragma unroll 1
  for (int pass = 0; pass < min(passes, MOST_PASSES); ++pass) {
    if (MOST_PASSES > 1 && pass > 0) sync_items(CLK_GLOBAL_MEM_FENCE);
    const Warp at = quad_warp(kept_apart(get_local_id(0)), scratch);
    const Factor factor = {r, n, pass == 0};
    Tile tile;
    tile.parked = parked;
    tile.pivots = pivots;
    const float largest = factor_matrix(&at, &tile, room, a, layout, factor);
    if (pass == 0) {
      is_finite = trace_of_gram(&at, squares) < INFINITY;
      int route = route_of(&at, &tile, room, factor, limits);
      if (!is_finite) route = ROUTE_FIRST_PASS;
      if (at.lane == 0) {
        routes[matrix] = route;
        magnitudes[matrix] = magnitude_code(largest, is_finite);
      }
      if (route == ROUTE_SECOND_PASS) passes = 2;
    }
#if WANT_Q
    transpose_inverse(&at, &tile);
    multiply_slabs(&at, &tile, room, a, q, layout);
    a = q;
#endif
  }
  const int lane = get_local_id(0);
  sync_warp();
  if (!is_finite) {
    store_warp_nan(r, n * n, lane, WARP_LANES);
    if (WANT_Q) store_warp_nan(q, shape.m * (index_t)n, lane, WARP_LANES);
  }
}
#endif
