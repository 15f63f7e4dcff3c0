// SPDX-License-Identifier: Apache-2.0
// gram.cl: QR of a batch of matrices in float32 with at most 96 columns, or complex ones of half as
// many, by Gram matrices in float64 (CholeskyQR). It consists of products, without columns that
// depend on one another, and is meant for devices whose float64 is as fast as their float32.
//
//   gram     G = A'A, in float64: products of float32 are exact and neither overflow nor underflow
//   factor   G = L L', by blocks: X(b, b) = L(b, b)'^-1, L(c, b) = G(c, b) X(b, b),
//            G(d, c) -= L(d, b) L(c, b)'; R = L'
//   invert   X = L'^-1: X(l, c) = -(sum_k X(l, k) L(c, k)') X(c, c), l <= k < c
//   make_q   Q = A X, rounded once
//   guard    T bounds ||I - Q'Q||, and S the error of R (gram_guard.clh)
//
// Three routes follow, and routes[matrix] says which one the matrix took:
//   first pass    T is below Q's bar. Or S is below the bar, so that R is good, and Q is not
//                 wanted, or ||I - Q1'Q1||, which is then measured, is below the bar.
//   second pass   S is below the bar, and ||I - Q1'Q1||^2 is measured and at most a quarter of it:
//                 Q replaces A, and the second pass makes it orthogonal (CholeskyQR2). With
//                 Q1'Q1 = I + F and K, which is F below the diagonal and half of F on it, the
//                 factor of the second pass is I + K, and an error of at most ||F||^2 / 2, so that
//                 R = (L1 (I + K))' leaves A - QR within the bar. The diagonal of I + K is
//                 multiplied first, which adds ||F||^2 / 2 to that error. Where ||K' R1|| is at
//                 most a quarter of the bar, R1 stays. The condition number of Q1 is at most
//                 sqrt(5/3), and this pass needs no guard of its own.
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
//   SLAB, STAGES                      16.., 1..  gram_slab.clh
//   STORED                                       common.clh; double: two passes
//                                                (gram_twice_tile.clh)
//   REFUSED                           0, 1       1: the matrices of a list
//   WANT_Q                            0, 1       1: Q is formed
//   ONE_PASS                          0, 1       gram_tile_pivots.clh; for float64, R alone
//   IN_PARTS                          0, 1       1: float64, from 129 rows (gram_tile_sums.clh)
//   FULL                              0, 1       gram_slab.clh
//   SCALED                            0, 1       1: matrices with scaled columns; set in engine.cpp
//   ELEMENT_PARTS                     1, 2       complex_blocks.clh
// A is m x n, m >= n. Signs of R's diagonal: positive. Where A is complex, n counts the columns of
// its real form, m >= n / 2, and G, L and X are those of the real form.
#include "gpu/common/common.clh"

#ifndef WANT_Q
#define WANT_Q 1
#endif
#ifndef REFUSED
#define REFUSED 0
#endif
#ifndef SHARES_ROOM
#define SHARES_ROOM 1
#endif
#include "gpu/gram/steps/gram_shape.clh"
#include "gpu/gram/steps/gram_tile_sums.clh"

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

#if !STORED_IS_DOUBLE && !REFUSED
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

#if !REFUSED
INLINE void store_warp_nan(__global STORED* to, index_t count, int item, const int lanes) {
  for (index_t i = item; i < count; i += lanes) to[i] = NAN;
}
#endif

#if !STORED_IS_DOUBLE && !REFUSED
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

#if STORED_IS_DOUBLE || REFUSED
#include "gpu/gram/gram_twice_tile.clh"
#else
// Transposes the blocks above the diagonal. The blocks of the last row are already X'.
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

// G := A'A in `tile`. Returns the largest |a_ij|.
INLINE float form_whole_gram(const Warp* at, Tile* tile, Shared room, __global const float* a,
                             Layout layout) {
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
  return largest;
}

// Replaces G in `tile` by L and then by X, and stores R.
INLINE void factor_matrix(const Warp* at, Tile* tile, Shared room, Factor r) {
  factor_tile(at, tile, r, room.pivots);
  if (r.is_stored) store_zeros(r.entries, r.n, at->lane);
  invert_tile(at, tile, room.pivots);
}

INLINE double trace_of_gram(const Warp* at, __local const double* squares) {
  double trace = 0;
#pragma unroll
  for (int c = 0; c < PADDED_COLUMNS; c += WARP_LANES) {
    if (c + at->lane < PADDED_COLUMNS) trace += squares[c + at->lane];
  }
  return sum_of_warp(trace);
}

// Computes what T and S need of H without bounds. `sums` holds the squares of H X, h those of H.
INLINE void take_spread_sums(const Warp* at, Spread* spread, const RowSums* sums,
                             __local const double* h, __local const double* squares, int n) {
  float most = 0;
  for (int j = at->lane; j < n; j += WARP_LANES) most = fmax(most, (float)(h[j] / squares[j]));
  spread->most = max_of_warp(most);
#pragma unroll
  for (int l = 0; l < BLOCKS; ++l) spread->row[l] = sums->row[l];
}

// The route that T and S give, or their bounds: they may only show that a matrix is good.
INLINE int route_by(const RowSums* plain, const Spread* spread, int n, FactorLimits limits) {
  const float guard = guard_of(plain, spread, limits.share);
  if (guard <= limits.most) return ROUTE_FIRST_PASS;
  const bool has_good_r = error_of_factor(plain, spread, n, limits.share) <= limits.most_of_r;
  if (!WANT_Q) return has_good_r ? ROUTE_FIRST_PASS : ROUTE_REFLECTORS;
  return has_good_r && guard <= limits.most_in_two ? ROUTE_SECOND_PASS : ROUTE_REFLECTORS;
}

// Chooses the route of a matrix (gram_guard.clh): reflectors; the first pass; or the second one,
// which begins with a measurement of Q1. The bounds that cost little come first. R alone seldom
// needs others.
INLINE int route_of(const Warp* at, const Tile* tile, Shared room, Factor r, FactorLimits limits) {
  RowSums plain, sums;
  Spread spread;
  __local const double* weights = room.squares;
#pragma unroll 1
  for (int step = 0;; ++step) {  // the sums of D X, and, if these are not enough, those of H X
    sum_rows(at, &sums, tile, room.pivots, weights);
    if (kept_apart(step) > 0) break;
    plain = sums;
    bound_spread_plainly(&spread, &plain);
    if (agreed(route_by(&plain, &spread, r.n, limits) == ROUTE_FIRST_PASS)) return ROUTE_FIRST_PASS;
    bound_spread_by_columns(at, &spread, &plain, room.pivots, r, room.squares);
    if (agreed(route_by(&plain, &spread, r.n, limits) == ROUTE_FIRST_PASS)) return ROUTE_FIRST_PASS;
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    take_spread(at->lane, PADDED_COLUMNS, room.pivots, r.entries, r.n, r.n, room.squares, at->room,
                room.spread);
    weights = room.spread;
  }
  take_spread_sums(at, &spread, &sums, room.spread, room.squares, r.n);
  return route_by(&plain, &spread, r.n, limits);
}

#if WANT_Q
// The route of a matrix of which `tile` holds G = Q1'Q1.
INLINE int measured_route(const Warp* at, const Tile* tile, FactorLimits limits) {
  const double departure = departure_of(at, tile);
  return departure <= limits.most_measured    ? ROUTE_FIRST_PASS
         : departure <= limits.most_departure ? ROUTE_SECOND_PASS
                                              : ROUTE_REFLECTORS;
}

// Whether R1 may stay, because ||K' R1||_F <= most ||R1||_F, where K is F below the diagonal and
// half of F on it: the factor of G = I + F, which `tile` holds, is I + K to first order. By Cauchy
// and Schwarz ||K' R1||^2 <= n sum_k ||R1(k, :)||^2 sum_i K(k, i)^2. Where one column is nearly
// dependent, its row of R1 is as small as its row of K is large.
INLINE bool first_factor_may_stay(const Warp* at, const Tile* tile, Factor r, double most) {
  double squares = 0, sum = 0;
  sync_items(CLK_GLOBAL_MEM_FENCE);
  for (int k = at->lane; k < r.n; k += WARP_LANES) {
    double square = 0;
#pragma unroll 8
    for (int j = k; j < r.n; ++j) {
      const double x = entry_of_factor(r, k, j);
      square = fma(x, x, square);
    }
    at->room[k] = square;
    squares += square;
  }
  sync_warp();
#pragma unroll
  for (int c = 0; c < BLOCKS; ++c) {
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
      if (b <= c) {
        Block g;
        get_tile(at, g, tile, c, b);
#pragma unroll
        for (int w = 0; w < BLOCK_WORDS; ++w) {
          const int k = 16 * c + QUAD_ROW(w, at->g), i = 16 * b + QUAD_COL(w, at->t);
          const double x = k > i ? g[w] : k == i ? 0.5 * (g[w] - 1) : 0.0;
          if (k < r.n) sum = fma(x * x, at->room[k], sum);
        }
      }
    }
  }
  sync_warp();
  return r.n * sum_of_warp(sum) <= most * most * sum_of_warp(squares);
}

// Prepares R := (I + K)' R1: rows of R1 are multiplied by the diagonal of I + K, and the part below
// the diagonal of R, which is free, gets that of K. `tile` holds G.
INLINE void store_second_factor(const Warp* at, const Tile* tile, Factor r) {
  sync_warp();
#pragma unroll
  for (int c = 0; c < BLOCKS; ++c) {
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
      if (b <= c) {
        Block g;
        get_tile(at, g, tile, c, b);
#pragma unroll
        for (int w = 0; w < BLOCK_WORDS; ++w) {
          const int i = 16 * c + QUAD_ROW(w, at->g), j = 16 * b + QUAD_COL(w, at->t);
          if (i == j) at->room[i] = fma(0.5, g[w], 0.5);
          if (i > j && i < r.n && IS_STORED_ROW(i)) r.entries[PLACE_IN_R(r, i, j)] = (STORED)g[w];
        }
      }
    }
  }
  sync_warp();
#pragma unroll 1
  for (int i = 0; i < r.n; i += ELEMENT_PARTS) {
    const STORED scale = (STORED)at->room[i];
    for (int j = i + at->lane; j < r.n; j += WARP_LANES) r.entries[PLACE_IN_R(r, i, j)] *= scale;
  }
  sync_warp();
}

// R := (I + K)' R after store_second_factor, with zeros below the diagonal. A work-item has columns
// of its own, of a complex matrix with both of their parts.
INLINE void multiply_by_second_factor(Factor r, int lane) {
  sync_items(CLK_GLOBAL_MEM_FENCE);
#pragma unroll 1
  for (int j = ELEMENT_PARTS * lane; j < r.n; j += ELEMENT_PARTS * WARP_LANES) {
#pragma unroll 1
    for (int i = 0; i < j; i += ELEMENT_PARTS) {
      double sums[ELEMENT_PARTS];
#pragma unroll
      for (int part = 0; part < ELEMENT_PARTS; ++part) {
        sums[part] = r.entries[PLACE_IN_R(r, i, j + part)];
#pragma unroll 4
        for (int k = i + ELEMENT_PARTS; k <= j + part; ++k) {
          const double of_k = entry_of_factor(r, k, i);
          sums[part] = fma(of_k, (double)entry_of_factor(r, k, j + part), sums[part]);
        }
      }
#pragma unroll
      for (int part = 0; part < ELEMENT_PARTS; ++part)
        r.entries[PLACE_IN_R(r, i, j + part)] = (STORED)sums[part];
    }
  }
  sync_items(CLK_GLOBAL_MEM_FENCE);
#pragma unroll 1
  for (int j = lane; j < r.n; j += WARP_LANES) {
    for (int i = j / ELEMENT_PARTS + 1; i < r.n / ELEMENT_PARTS; ++i)
      r.entries[PLACE_IN_R(r, ELEMENT_PARTS * i, j)] = 0;
  }
}
#endif

// Groups: one per matrix.
__kernel __attribute__((reqd_work_group_size(WARP_LANES, 1, 1))) void factor_gram(
    __global const float* a, __global float* q, __global float* r, __global int* magnitudes,
    __global int* routes, FactorShape shape, FactorLimits limits) {
#if CROWDED
  __local float slabs[STAGES * SLAB_ENTRIES] __attribute__((aligned(16)));
  __local double* scratch = (__local double*)(slabs + SLAB_ENTRIES);
  __local double *squares = scratch + BLOCK_ROOM, *spread = squares + PADDED_COLUMNS;
  __local double pivots[BLOCKS * BLOCK_ROOM];
#else
  __local double scratch[BLOCK_ROOM] __attribute__((aligned(16)));
  __local float slabs[STAGES * SLAB_ENTRIES] __attribute__((aligned(16)));
  __local double squares[PADDED_COLUMNS], spread[PADDED_COLUMNS], pivots[BLOCKS * BLOCK_ROOM];
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
  r += matrix * n * (n / ELEMENT_PARTS);

  bool is_finite = true;
  bool r_has_changed = false;
  int passes = 1, route = ROUTE_FIRST_PASS;
#pragma unroll 1
  for (int pass = 0; pass < min(passes, MOST_PASSES); ++pass) {
    if (MOST_PASSES > 1 && pass > 0) sync_items(CLK_GLOBAL_MEM_FENCE);
    const Warp at = quad_warp(kept_apart(get_local_id(0)), scratch);
    const Factor factor = {r, n, pass == 0};
    Tile tile;
    tile.parked = parked;
    tile.pivots = pivots;
    const float size = form_whole_gram(&at, &tile, room, a, layout);
#if WANT_Q
    if (pass > 0) {
      route = measured_route(&at, &tile, limits);
      if (agreed(route != ROUTE_SECOND_PASS)) break;
      r_has_changed =
          agreed(!first_factor_may_stay(&at, &tile, factor, limits.most_departure));
      if (r_has_changed) store_second_factor(&at, &tile, factor);
    }
#endif
    factor_matrix(&at, &tile, room, factor);
    if (pass == 0) {
      const float largest = max_of_warp(size);
      is_finite = trace_of_gram(&at, squares) < INFINITY;
      route = route_of(&at, &tile, room, factor, limits);
      if (!is_finite) route = ROUTE_FIRST_PASS;
      if (at.lane == 0) magnitudes[matrix] = magnitude_code(largest, is_finite);
      if (route == ROUTE_SECOND_PASS) passes = 2;
    }
#if WANT_Q
    if (agreed(route == ROUTE_REFLECTORS)) break;
    transpose_inverse(&at, &tile);
    multiply_slabs(&at, &tile, room, a, q, layout);
    a = q;
#endif
  }
  const int lane = get_local_id(0);
  if (lane == 0) routes[matrix] = route;
#if WANT_Q
  if (r_has_changed) {
    const Factor factor = {r, n, true};
    multiply_by_second_factor(factor, lane);
  }
#endif
  sync_warp();
  if (!is_finite) {
    store_warp_nan(r, n * (n / ELEMENT_PARTS), lane, WARP_LANES);
    if (WANT_Q) store_warp_nan(q, shape.m * (index_t)n, lane, WARP_LANES);
  }
}
#endif
