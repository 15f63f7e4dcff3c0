// SPDX-License-Identifier: Apache-2.0
// gram_twice.cl: QR in float64 by Gram matrices in two passes (CholeskyQR2), in squares of 128
// columns, for devices that multiply blocks of float64 at full speed (LAPACK potrf, trsm).
//
//   pass 0:  A'A = L1 L1',    Q1 = A L1'^-1        pass 1:  Q1'Q1 = L2 L2',  Q = Q1 L2'^-1
//   R = (L1 L2)'
//
//   launches of a pass, in this order                                   one group per
//   sum_slab         X'X over a slab of rows, X = A or Q1               slab x tile
//   add_slabs        the sum of the slabs, if there are several         part of a tile
//   settle_gram      ||G - I|| in the second pass                       tile
//   begin_series     in the second pass: L2 if G is close to I          tile on the diagonal
//   for every square b, unless L2 is known:
//     factor_squares G(d, c) -= L(d, b - 1) L(c, b - 1)'  b <= c <= d   square, pairs of tiles
//                    and one group factors the square: G(b, b) -> L(b, b)
//     divide_panel   L(c, b) L(b, b)' = G(c, b)           c > b         tile
//   judge_first_pass in the first pass: are its factors final?         matrix
//   for every square b, from left to right:
//     update_rows    X(:, b) -= Q(:, l) L(b, l)'          l < b         64 rows x square
//     divide_rows    Q(:, b) L(b, b)' = X(:, b)                         64 rows
//   store_first_factor  in the first pass: R := L1'                     tile
//   after both passes:
//   multiply_factors R(b, c)' = sum of R(l, c)' L2(l, b)  b <= l <= c   tile below the diagonal
//   turn_factor      R from its transpose                               tile
//   finish_twice     the route                                          matrix
// sum_squares and update_wide_rows (wide.clh) are sum_slab and update_rows in squares, for devices
// with enough of them. The kernels of a matrix whose factors are final return at once
// (departure.clh).
//
// The guard. Q1 is stored before Q1'Q1 is computed from it, and so ||G - I||, G = Q1'Q1, is
// measured. If it is at most 1/4, then the condition of Q1 is at most sqrt(5/3), and the second
// pass loses nothing: with u = 2^-53,
//   - the substitution gives |A - Q1 R1| <= c n u |Q1| |R1|, whatever the condition of A (Higham,
//     Accuracy and Stability of Numerical Algorithms, 8.1), and likewise |Q1 - Q R2| <= c n u |Q|
//     |R2| and |R - R2 R1| <= c n u |R2| |R1|. All norms here are within a small factor of 1 and of
//     ||A||, so that ||A - Q R|| <= c' n u ||A||;
//   - ||I - Q'Q|| is at most the error of G and of its factor, c (m + n) u ||Q1||^2, times
//     ||R2^-1||^2 <= 4/3, plus c n u from the substitution (Yamamoto, Nakatsukasa, Yanagisawa,
//     Fukaya, ETNA 44, 2015, theorem 3.3).
// The sums run over slabs of rows, on the diagonal also over parts of 64 rows (gram_sums.clh), and
// errors grow like the square root of the number of terms. A pivot that is not positive gives NaN,
// which fails the test. It passes for conditions (columns scaled to norm 1) up to some 1e7.
// Norms of columns outside 2^-450 .. 2^500 also fail, because their squares or products may
// underflow or overflow.
//
// Defines, set in gram_twice.cpp            range      meaning
//   SUB_GROUP_BODY, MMA                                common.clh, mma.clh
//   VECTOR                                  1, 2       copy.clh; divides n
//   COLUMNS                                 1..129     columns of A; 129 stands for more
// A is m x n, m >= n. Signs of R's diagonal: positive.
#ifndef COLUMNS
#define COLUMNS 129
#endif
#include "gpu/variants/gram_twice/decide.clh"
#include "gpu/variants/gram_twice/gram_sums.clh"
#include "gpu/variants/gram_twice/rows.clh"
#include "gpu/variants/gram_twice/wide.clh"

// ---- R

// Tile (c, b) of a group, c >= b; `tile` counts them row by row.
typedef struct {
  int c, b;
} TilePlace;
INLINE TilePlace tile_of_group(int tile) {
  TilePlace at = {0, 0};
  while (TILE_AT(at.c + 1, 0) <= tile) ++at.c;
  at.b = tile - TILE_AT(at.c, 0);
  return at;
}

// R(b, c) := x', the warp's 32 x 32 entries of tile (c, b), and zeros below the diagonal of R.
INLINE void store_turned(const Place* at, Block x[4], __global double* r, int n, TilePlace tile) {
  const int down = tile.c * TILE + at->index / 2 * 32, across = tile.b * TILE + at->index % 2 * 32;
#pragma unroll
  for (int p = 0; p < 4; ++p) {
#pragma unroll
    for (int w = 0; w < BLOCK_WORDS; ++w) {
      const int col = down + p / 2 * 16 + BLOCK_ROW(w, at->warp.g);
      const int row = across + p % 2 * 16 + BLOCK_COL(w, at->warp.t);
      if (row <= col && col < n) {
        r[row * (index_t)n + col] = x[p][w];
        if (row < col) r[col * (index_t)n + row] = 0;
      }
    }
  }
}

// R := L1' with zeros below its diagonal. Groups: tiles per matrix; a warp has 32 x 32 entries.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void store_first_factor(
    __global double* r, __global double* work, FactorShape shape, TwiceShape twice, int first) {
  __local double room[2];
  const Place at = place_of(room);
  const int pairs = TILE_AT(twice.tiles, 0), index = get_group_id(0) / pairs;
  const TilePlace tile = tile_of_group(get_group_id(0) % pairs);
  __global double* slot = slot_of(work, twice, index);
  r += (first + index) * (index_t)shape.n * shape.n;
  const int down = at.index / 2 * 32, across = at.index % 2 * 32;
  __global const double* factor = tile_at(slot, twice, tile.c, tile.b) + down * TILE + across;
  Block x[4];
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    load_block(&at.warp, x[p], factor + p / 2 * 16 * TILE + p % 2 * 16);
  }
  store_turned(&at, x, r, shape.n, tile);
}

#define FACTOR_TERMS 8
#define FACTOR_STAGES 3
#define FACTOR_LD (TILE + 2)
#define FACTOR_ENTRIES (2 * FACTOR_TERMS * FACTOR_LD)

// Copies rows row .. row + 7 of R1 from column `col` on, and rows k .. k + 7 of a tile of L2.
INLINE void copy_factors(__local double* to, __global const double* r, int n, int row, int col,
                         __global const double* second, int k, int item) {
  EACH_PART(i, item) {
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const int term = i / 32 + 4 * u, across = i % 32 * 2;
      const bool is_row = row + term < n;
      __global const double* from = r + (row + term) * (index_t)n + col + across;
      __local double* at = to + term * FACTOR_LD + across;
#if VECTOR >= 2
      const bool exists = is_row && col + across < n;
      copy_pair(at, exists ? from : r, exists);
#else
      const bool exists = is_row && col + across < n, is_next = is_row && col + across + 1 < n;
      copy_one(at, exists ? from : r, exists);
      copy_one(at + 1, is_next ? from + 1 : r, is_next);
#endif
      copy_double2(at + FACTOR_TERMS * FACTOR_LD, second + (k + term) * TILE + across);
    }
  }
}

// sum := the warp's 32 x 32 entries of tile (c, b) of L1 L2: the sum over b <= l <= c of R1(l, c)'
// L2(l, b).
INLINE void multiply_tile(const Place* at, Block sum[4],
                          __local double stages[FACTOR_STAGES][FACTOR_ENTRIES],
                          __global const double* r, __global double* slot, FactorShape shape,
                          TwiceShape twice, TilePlace tile) {
  const int down = at->index / 2 * 32, across = at->index % 2 * 32;
  const int steps = (tile.c - tile.b + 1) * TILE / FACTOR_TERMS;
#pragma unroll
  for (int p = 0; p < 4; ++p) clear_block(sum[p]);
  int to_stage = 0, stage = 0;
#pragma unroll 1
  for (int step = 1 - FACTOR_STAGES; step < steps; ++step) {
    if (step >= 0) {
      wait_for_stage(FACTOR_STAGES - 2);
      sync_group();
    }
    const int begun = step + FACTOR_STAGES - 1, l = tile.b + begun / (TILE / FACTOR_TERMS);
    const int k = begun % (TILE / FACTOR_TERMS) * FACTOR_TERMS;
    if (begun < steps) {
      copy_factors(stages[to_stage], r, shape.n, l * TILE + k, tile.c * TILE,
                   tile_at(slot, twice, l, tile.b), k, at->item);
    }
    commit_copies();
    to_stage = to_stage == FACTOR_STAGES - 1 ? 0 : to_stage + 1;
    if (step >= 0) {
      __local const double* left = stages[stage] + down;
      __local const double* right = stages[stage] + FACTOR_TERMS * FACTOR_LD + across;
      double x[2][2 * QUARTER_WORDS], y[2][2 * QUARTER_WORDS];
#pragma unroll
      for (int p = 0; p < 2; ++p) {
#pragma unroll
        for (int w = 0; w < 2 * QUARTER_WORDS; ++w) {
          const int term = MMA ? 2 * at->warp.t + w / WORD_ROWS : w / WORD_ROWS;
          const int from = term * FACTOR_LD + 16 * p + BLOCK_ROW(w % WORD_ROWS, at->warp.g);
          x[p][w] = left[from];
          y[p][w] = right[from];
        }
      }
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        add_quarter(sum[p], x[p / 2], y[p % 2]);
        add_quarter(sum[p], x[p / 2] + QUARTER_WORDS, y[p % 2] + QUARTER_WORDS);
      }
      stage = stage == FACTOR_STAGES - 1 ? 0 : stage + 1;
    }
  }
}

// Computes the tiles of R' = L1 L2 below the diagonal and stores them in R, where R1 has nothing
// but zeros. Groups: these tiles per matrix; the tiles with the longest sums come first.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void multiply_factors(
    __global double* r, __global double* work, FactorShape shape, TwiceShape twice, int first) {
  __local double stages[FACTOR_STAGES][FACTOR_ENTRIES] __attribute__((aligned(16)));
  __local double room[2];
  const Place at = place_of(room);
  const int pairs = TILE_AT(twice.tiles - 1, 0), index = get_group_id(0) / pairs;
  // They are counted by their distance from the diagonal.
  int pair = pairs - 1 - get_group_id(0) % pairs, distance = 1;
  while (pair >= twice.tiles - distance) pair -= twice.tiles - distance++;
  __global double* slot = slot_of(work, twice, index);
  if (has_one_pass(slot, twice)) return;
  r += (first + index) * (index_t)shape.n * shape.n;
  const TilePlace tile = {pair + distance, pair};
  Block sum[4];
  multiply_tile(&at, sum, stages, r, slot, shape, twice, tile);
  const int down = at.index / 2 * 32, across = at.index % 2 * 32;
  FactorShape square = shape;
  square.m = shape.n;
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    store_entries_of(&at.warp, sum[p], r, square, tile.c * TILE + down + p / 2 * 16,
                     tile.b * TILE + across + p % 2 * 16);
  }
}

// R := the transposed tiles below its diagonal, with zeros there, and the products on the diagonal.
// Groups: tiles per matrix; a warp has 32 x 32 entries.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void turn_factor(
    __global double* r, __global double* work, FactorShape shape, TwiceShape twice, int first) {
  __local double stages[FACTOR_STAGES][FACTOR_ENTRIES] __attribute__((aligned(16)));
  __local double room[2];
  const Place at = place_of(room);
  const int pairs = TILE_AT(twice.tiles, 0), index = get_group_id(0) / pairs;
  const TilePlace tile = tile_of_group(get_group_id(0) % pairs);
  __global double* slot = slot_of(work, twice, index);
  if (has_one_pass(slot, twice)) return;
  r += (first + index) * (index_t)shape.n * shape.n;
  const int down = at.index / 2 * 32, across = at.index % 2 * 32;
  Block x[4];
  if (tile.c == tile.b) {
    multiply_tile(&at, x, stages, r, slot, shape, twice, tile);
  } else {
    FactorShape square = shape;
    square.m = shape.n;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      load_entries_of(&at.warp, x[p], r, square, tile.c * TILE + down + p / 2 * 16,
                      tile.b * TILE + across + p % 2 * 16);
    }
  }
  store_turned(&at, x, r, shape.n, tile);
}

// ---- finish

INLINE void store_nan_twice(__global double* to, index_t count, int item) {
  for (index_t i = item; i < count; i += GROUP_SIZE) to[i] = NAN;
}

// Groups: one per matrix.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void finish_twice(
    __global double* q, __global double* r, __global int* magnitudes, __global int* routes,
    __global double* work, FactorShape shape, TwiceShape twice, int first) {
  __local double sums[WARPS], room[32];
  __local ulong all[GROUP_SIZE];
  const Place at = place_of(room);
  const index_t matrix = first + get_group_id(0);
  __global const double* slot = slot_of(work, twice, get_group_id(0));
  const bool is_final = has_one_pass(slot, twice);
  const double departure = sum_departures(&at, slot, twice, sums);
  const bool can_square = norms_are_in_range(&at, slot, twice, shape.n, sums);
  ulong bits = 0;
  for (int i = at.item; i < twice.slabs * twice.tiles; i += GROUP_SIZE) {
    bits = max(bits, as_ulong(slot[twice.largest + i]));
  }
  all[at.item] = bits;
  sync_group();
  for (int width = GROUP_SIZE / 2; width > 0; width /= 2) {
    if (at.item < width) all[at.item] = max(all[at.item], all[at.item + width]);
    sync_group();
  }
  const double largest = as_double(all[0]);
  const bool is_finite = largest < INFINITY;
  if (at.item == 0) {
    const bool is_good = is_final || (departure <= MOST_DEPARTURE && can_square);
    const int route = is_final ? ROUTE_FIRST_PASS : ROUTE_SECOND_PASS;
    routes[matrix] = is_finite && !is_good ? ROUTE_REFLECTORS : route;
    magnitudes[matrix] = magnitude_code(largest, is_finite);
  }
  if (!is_finite) {
    store_nan_twice(r + matrix * shape.n * shape.n, shape.n * (index_t)shape.n, at.item);
    if (shape.q_cols > 0) {
      store_nan_twice(q + matrix * shape.m * shape.n, shape.m * (index_t)shape.n, at.item);
    }
  }
}
