// SPDX-License-Identifier: Apache-2.0
// further_gram.cl: QR in float64 of matrices with at most 80 columns that the guard of a variant by
// Gram matrices has refused, by more passes of the same kind. The method, and why it is right, are
// those of further_passes.cl; here a warp keeps a matrix from A to Q and R, with the blocks of
// gram.cl in its registers.
//
// There is one kernel, factor_refused. A group takes one matrix of the list after another. Slot:
// X, m x n; R, n x n.
//
// Defines, set in further_gram.cpp    range      meaning
//   SUB_GROUP_BODY, MMA                          common.clh, mma.clh
//   STORED, REAL                                 common.clh; REAL is double
//   BLOCKS                            1..5       blocks of 16 columns
//   LAST                              1..4       quads of columns in the last of them
//   SLAB, STAGES                      16.., 1..  gram_slab.clh
//   WANT_Q                            0, 1       1: Q is formed
//   IN_PARTS                          0, 1       1: float64, from 129 rows (gram_tile_sums.clh)
//   FULL                              0, 1       gram_slab.clh
// A is m x n, m >= n. Signs of R's diagonal: positive.
#include "gpu/common/common.clh"

typedef STORED Given;  // A, Q and R
#undef STORED
#define STORED double  // X, in the blocks of gram.cl
#ifndef WANT_Q
#define WANT_Q 1
#endif
#include "gpu/common/gram_shape.clh"
#include "gpu/common/gram_tile_sums.clh"
#include "gpu/common/noise.clh"
#include "gpu/variants/gram/gram_twice_steps.clh"

// X := B + E, and the exponents of the columns. Each lane has whole columns. Returns whether A has
// an entry below its diagonal that is not zero.
INLINE bool spread_matrix(__global const Given* a, __global double* x, __local int* exponents,
                          int m, int n, double noise, int lane) {
  bool has_below = false;
#pragma unroll 1
  for (int j = lane; j < n; j += WARP_LANES) {
    double largest = 0, squares = 0;
#pragma unroll 8
    for (int i = 0; i < m; ++i) {
      const double y = fabs((double)a[i * n + j]);
      largest = fmax(largest, y);
      has_below |= i > j && y != 0;
    }
    int exponent = largest > 0 ? ilogb(largest) + 1 : MAGNITUDE_ZERO;
    double scale = rsqrt((double)m);
    if (largest > 0) {
#pragma unroll 8
      for (int i = 0; i < m; ++i) {
        const double y = scale_by((double)a[i * n + j], -exponent);
        squares = fma(y, y, squares);
      }
      const double norm = sqrt(squares);
      const int above = ilogb(norm) + 1;
      exponent += above;
      scale *= noise * scale_by(norm, -above);
    }
    exponents[j] = exponent;
#pragma unroll 8
    for (int i = 0; i < m; ++i) {
      const double y = largest > 0 ? scale_by((double)a[i * n + j], -exponent) : 0.0;
      x[i * n + j] = fma(noise_at(i, j), scale, y);
    }
  }
  return any_lane(has_below);
}

// G += shift diag(G)
INLINE void shift_tile(const Warp* at, Tile* tile, double shift) {
#pragma unroll
  for (int b = 0; b < BLOCKS; ++b) {
    Block g;
    get_tile(at, g, tile, b, b);
#pragma unroll
    for (int w = 0; w < BLOCK_WORDS; ++w) {
      if (QUAD_ROW(w, at->g) == QUAD_COL(w, at->t)) g[w] = fma(shift, g[w], g[w]);
    }
    put_tile(at, tile, g, b, b);
  }
}

// Passes over X until it is Q, which takes its place. R gets its factor. Returns whether X became
// Q.
INLINE bool make_passes(Shared room, __local double* scratch, __local double* parked,
                        __global double* x, __global double* r, Layout layout,
                        FurtherShape further) {
  const double most = MOST_PLAIN(layout.m, layout.n);
#pragma unroll 1
  for (int pass = 0; pass < further.passes; ++pass) {
    const Warp at = quad_warp(kept_apart(get_local_id(0)), scratch);
    const Factor factor = {r, layout.n, pass == 0};
    Tile tile;
    tile.parked = parked;
    Size largest = 0;
#if PARKED
    form_tile_gram(&at, &tile, room, x, layout, HELD, BLOCKS, &largest);
    sync_warp();
#endif
    form_tile_gram(&at, &tile, room, x, layout, 0, HELD, &largest);
    sync_warp();
    if (pass == 0) store_zeros(r, layout.n, at.lane);
    const double departure = pass == 0 ? INFINITY : departure_of(&at, &tile);
    if (agreed(departure <= further.enough)) return true;
    const bool is_last = agreed(departure <= MOST_DEPARTURE);
    int plain = 0;
    if (agreed(departure <= further.series)) {
      take_series(&at, &tile, room.pivots);
    } else {
      if (!is_last) shift_tile(&at, &tile, further.shift);
      factor_tile_twice(&at, &tile, factor, room.pivots, &plain, most);
    }
    if (WANT_Q || !is_last) divide_slabs(&at, &tile, room, x, x, layout, plain);
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const Factor whole = {r, layout.n, true};
    if (pass > 0) multiply_tile_factors(&at, &tile, whole);
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (is_last) return true;
  }
  return false;
}

// Q and R of a matrix that is its own R up to signs.
INLINE void store_triangle(__global const Given* a, __global Given* q, __global Given* r, int m,
                           int n, int lane) {
  for (int e = lane; WANT_Q && e < m * n; e += WARP_LANES) {
    const int i = e / n, j = e % n;
    q[e] = i == j ? (a[e] < 0 ? (Given)-1 : (Given)1) : (Given)0;
  }
  for (int e = lane; e < n * n; e += WARP_LANES) {
    const int i = e / n, j = e % n;
    const Given x = a[i * n + i] < 0 ? -a[e] : a[e];
    r[e] = i <= j ? x : (Given)0;
  }
}

// Groups: `groups`; each takes one matrix of the list after another.
__kernel __attribute__((reqd_work_group_size(WARP_LANES, 1, 1))) void factor_refused(
    __global const Given* a, __global Given* q, __global Given* r, __global const int* list,
    __global int* routes, __global double* work, FactorShape shape, FurtherShape further,
    int groups) {
  __local double scratch[PIVOT_ROOM] __attribute__((aligned(16)));
  __local double slabs[STAGES * SLAB_ENTRIES] __attribute__((aligned(16)));
  __local double pivots[BLOCKS * BLOCK_ROOM];
  __local int exponents[PADDED_COLUMNS];
#if PARKED
  __local double parked[256 * PARKED];
#else
  __local double* parked = 0;
#endif
  const Shared room = {slabs, pivots, 0, pivots};
  const int m = shape.m, n = shape.n, lane = get_local_id(0);
  const Layout layout = layout_of(shape, 0);
  __global double* const x = work + get_group_id(0) * further.slot;
  __global double* const factor = x + further.factor;
#pragma unroll 1
  for (int number = get_group_id(0); number < shape.count; number += groups) {
    const index_t matrix = list[number];
    __global const Given* const given = a + matrix * m * n;
    __global Given* const q_of_it = q + (WANT_Q ? matrix * m * n : 0);
    __global Given* const r_of_it = r + matrix * n * n;
    const bool has_below =
        spread_matrix(given, x, exponents, m, n, further.noise, lane);
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (!has_below) {
      store_triangle(given, q_of_it, r_of_it, m, n, lane);
      if (lane == 0) routes[matrix] = ROUTE_FURTHER_PASSES;
    } else if (make_passes(room, scratch, parked, x, factor, layout, further)) {
      for (int e = lane; WANT_Q && e < m * n; e += WARP_LANES) q_of_it[e] = (Given)x[e];
      for (int e = lane; e < n * n; e += WARP_LANES) {
        const int i = e / n, j = e % n, exponent = exponents[j];
        const bool exists = i <= j && exponent != MAGNITUDE_ZERO;
        r_of_it[e] = exists ? (Given)scale_by(factor[e], exponent) : (Given)0;
      }
      if (lane == 0) routes[matrix] = ROUTE_FURTHER_PASSES;
    }
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
}
