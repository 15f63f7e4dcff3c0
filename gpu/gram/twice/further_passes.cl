// SPDX-License-Identifier: Apache-2.0
// further_passes.cl: QR in float64 of the matrices that the guard of a variant by Gram matrices has
// refused, by more passes of the same kind, in squares of 128 columns (shifted CholeskyQR). They
// may have any condition and any rank.
//
//   B = A D^-1,  D powers of two near the norms of A's columns; a zero column of A is random in B
//   pass 0:  X = B + E,  E noise of about a rounding error of A's type in each column
//   pass p:  X'X = G;  L L' = G + s diag(G);  X := X L'^-1;  R := L' R      until ||G - I|| <= 1/4
//   last:              L L' = G               X := X L'^-1;  R := L' R
//   Q = X,  R := R D,  where columns that are zero in A are zero
//
//   launches, in this order                                              one group per
//   where no variant came before:
//   list_all         the list and the routes                             FURTHER_GROUP matrices
//   measure_all      magnitudes                                          LOOKED_ENTRIES entries
//   measure_refused  of a piece of rows: exponents, squared norms        piece x 64 columns
//   spread_refused   B + E                                               piece x 64 columns
//   in each pass     the launches of gram_twice.cl, with begin_pass      tile on the diagonal
//                    in place of begin_series: is a pass the last one?
//                    (after some passes only where the host has read that one is needed)
//   finish_rows      Q in A's type                                       stored_rows rows
//   finish_factor    R in A's type; the route                            stored_rows rows
//
// Why it is right. Let u be 2^-53.
//   - The residual. X L' is what X was, up to c n u |X| |L'| (gram_twice.cl), whatever L is; all
//     norms are within a small factor of 1 and of ||B||. So Q R = B + E up to that. Each column of
//     E is at most 1.5 `noise` times that of B, with noise = 2^-25 for float32 and 2^-52 for
//     float64: a quarter of the bar's unit and one unit, each against a bar of 16 or more.
//   - The orthogonality. The last pass begins with ||G - I|| <= 1/4, which is measured, and the
//     theorem of gram_twice.cl holds; or Q stays as it is because ||G - I|| is below the bar less
//     the error of G, m u (sqrt(n) + 1), and less the rounding of Q (float32).
//   - The passes in between only have to make the condition smaller. The shift s = 16 (t + n) u,
//     where an entry of G is rounded t times at most (the rows of a slab, and the slabs), is above
//     the errors of G in norm, and above those of the factor, whose pivots are factored column by
//     column (quads.clh). So pivots stay positive, and X then has singular values
//     sigma / sqrt(sigma^2 + s). Noise keeps sigma from zero whatever the rank is. If a pivot is
//     not positive, NaN follows, no pass becomes the last one, and the matrix stays refused.
// A matrix without an entry below its diagonal is its own R, up to signs, and Q is the identity: so
// Householder's method has it, and so it stays exact.
//
// The noise at (i, j) follows from i and j alone: a matrix has the same bits in any batch.
//
// Where A is complex, its real form with twice as many columns is taken here, and both columns of
// a complex one have the same scale in B. fold_gram makes G the real form of the complex one, and L
// keeps it (complex_blocks.clh). ||G - I|| is then that of the real form, sqrt(2) times the complex
// one.
//
// Defines, set in further_passes.cpp        range      meaning
//   SUB_GROUP_BODY, MMA                                common.clh, mma.clh
//   VECTOR                                  1, 2       copy.clh; divides n
//   COLUMNS                                 1..129     columns of A; 129 stands for more
//   ELEMENT_PARTS                           1, 2       complex_blocks.clh
//   STORED, REAL                                       common.clh; REAL is double
// A is m x n, m >= n. Signs of R's diagonal: positive.
#ifndef COLUMNS
#define COLUMNS 129
#endif
#include "gpu/gram/steps/column_pivots.clh"
#include "gpu/common/noise.clh"
#include "gpu/gram/twice/decide.clh"
#include "gpu/gram/twice/gram_sums.clh"
#include "gpu/gram/twice/products_of_r.clh"
#include "gpu/gram/twice/rows.clh"
#include "gpu/gram/twice/big_groups.clh"

#define FURTHER_ROWS (FURTHER_GROUP / TILE)  // rows that a group reads at a time

// The columns and the rows of a group of measure_refused or spread_refused.
typedef struct {
  int index, piece, tile;  // of the matrix in flight, of its rows, and of its columns
  int col, turn;           // of the work-item; its rows are first + turn, first + turn + 4, ..
  int first, last;
} PiecePlace;
INLINE PiecePlace piece_place(FactorShape shape, TwiceShape twice, FurtherShape further) {
  const int group = get_group_id(0), item = get_local_id(0);
  PiecePlace at;
  at.tile = group % twice.tiles;
  at.piece = group / twice.tiles % further.pieces;
  at.index = group / twice.tiles / further.pieces;
  at.col = at.tile * TILE + item % TILE;
  at.turn = item / TILE;
  at.first = at.piece * further.piece_rows;
  at.last = min(at.first + further.piece_rows, shape.m);
  return at;
}
// The place of a number for each piece and column.
#define PIECE_NUMBER(twice, piece, col) ((piece) * (index_t)((twice).tiles * TILE) + (col))

// For matrices that no variant has looked at before (gram_passes): the list of all of them, and
// the route of each. A work-item has a matrix.
__kernel __attribute__((reqd_work_group_size(FURTHER_GROUP, 1, 1))) void list_all(
    __global int* list, __global int* routes, __global int* magnitudes, FactorShape shape) {
  const index_t matrix = get_group_id(0) * (index_t)FURTHER_GROUP + get_local_id(0);
  if (matrix >= shape.count) return;
  list[matrix] = matrix;
  routes[matrix] = ROUTE_REFLECTORS;
  magnitudes[matrix] = MAGNITUDE_ZERO;
}

// The magnitudes of the matrices. Groups: for each matrix one for every LOOKED_ENTRIES entries.
__kernel __attribute__((reqd_work_group_size(FURTHER_GROUP, 1, 1))) void measure_all(
    __global const STORED* a, __global int* magnitudes, FactorShape shape) {
  __local int codes[FURTHER_GROUP];
  const index_t entries = shape.m * (index_t)shape.n;
  const int groups = (int)((entries + LOOKED_ENTRIES - 1) / LOOKED_ENTRIES);
  const int item = get_local_id(0), matrix = get_group_id(0) / groups;
  const index_t first = get_group_id(0) % groups * (index_t)LOOKED_ENTRIES;
  const int looked = (int)min((index_t)LOOKED_ENTRIES, entries - first);
  a += matrix * entries + first;
  int code = MAGNITUDE_ZERO;
#pragma unroll 8
  for (int e = item; e < looked; e += FURTHER_GROUP)
    code = max(code, magnitude_code(fabs(a[e]), isfinite(a[e])));
  codes[item] = code;
  for (int width = FURTHER_GROUP / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < width) codes[item] = max(codes[item], codes[item + width]);
  }
  if (item == 0) atomic_max(&magnitudes[matrix], codes[0]);
}

// For each column of a piece: the exponent of its largest entry, the sum of the squares of its
// entries after division by this power of two, and whether an entry below A's diagonal is not zero.
// Groups: for each matrix of the list, pieces x tiles of 64 columns.
__kernel __attribute__((reqd_work_group_size(FURTHER_GROUP, 1, 1))) void measure_refused(
    __global const STORED* a, __global const int* list, __global double* work, FactorShape shape,
    TwiceShape twice, FurtherShape further) {
  __local double numbers[FURTHER_GROUP];
  const int item = get_local_id(0);
  const PiecePlace at = piece_place(shape, twice, further);
  __global double* slot = slot_of(work, twice, at.index);
  a += list[further.first + at.index] * ((index_t)shape.m * shape.n);
  const int last = at.col < shape.n ? at.last : at.first;
  double largest = 0, below = 0;
#pragma unroll 8
  for (int i = at.first + at.turn; i < last; i += FURTHER_ROWS) {
    const double x = fabs((double)a[i * (index_t)shape.n + at.col]);
    largest = fmax(largest, x < INFINITY ? x : INFINITY);  // NaN counts as infinite
    if (i > at.col) below = fmax(below, x);
  }
  numbers[item] = largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int turn = 0; turn < FURTHER_ROWS; ++turn) {
    largest = fmax(largest, numbers[turn * TILE + item % TILE]);
  }
  // A column that is not finite has NaN as its norm, and so its matrix stays refused.
  const bool is_finite = largest < INFINITY;
  const int exponent = !is_finite ? 0 : largest > 0 ? ilogb(largest) + 1 : MAGNITUDE_ZERO;
  const int down = largest > 0 ? -exponent : 0;
  double squares = 0;
#pragma unroll 8
  for (int i = at.first + at.turn; i < last; i += FURTHER_ROWS) {
    const double x = scale_by((double)a[i * (index_t)shape.n + at.col], down);
    squares = fma(x, x, squares);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  numbers[item] = squares;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (at.turn == 0) {
    for (int turn = 1; turn < FURTHER_ROWS; ++turn) squares += numbers[turn * TILE + item];
    slot[further.exponents + PIECE_NUMBER(twice, at.piece, at.col)] = exponent;
    slot[further.squares + PIECE_NUMBER(twice, at.piece, at.col)] = is_finite ? squares : NAN;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  numbers[item] = below;
  for (int width = FURTHER_GROUP / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < width) numbers[item] = fmax(numbers[item], numbers[item + width]);
  }
  if (item == 0) slot[further.below + at.piece * twice.tiles + at.tile] = numbers[0];
}

// What a column of A becomes in B: entries are divided by 2^exponent, and the noise is multiplied
// by `noise`.
typedef struct {
  int exponent;
  double noise;
} ColumnScale;
INLINE ColumnScale scale_of_column(__global const double* slot, FactorShape shape, TwiceShape twice,
                                   FurtherShape further, int col) {
  ColumnScale scale = {MAGNITUDE_ZERO, rsqrt((double)shape.m)};
  const int first = col - col % ELEMENT_PARTS, end = first + ELEMENT_PARTS;
  for (int piece = 0; piece < further.pieces; ++piece) {
    for (int j = first; j < end; ++j) {
      const int one = (int)slot[further.exponents + PIECE_NUMBER(twice, piece, j)];
      scale.exponent = max(scale.exponent, one);
    }
  }
  if (scale.exponent == MAGNITUDE_ZERO) return scale;
  double squares = 0;
  for (int piece = 0; piece < further.pieces; ++piece) {
    for (int j = first; j < end; ++j) {
      const int one = (int)slot[further.exponents + PIECE_NUMBER(twice, piece, j)];
      // Pieces whose entries are below 2^-500 of the column's add nothing.
      const double square = slot[further.squares + PIECE_NUMBER(twice, piece, j)];
      if (one > scale.exponent - 500) squares += scale_by(square, 2 * (one - scale.exponent));
    }
  }
  const double norm = sqrt(squares);  // at least 1/2, or NaN
  const int above = norm < INFINITY ? ilogb(norm) + 1 : 0;
  scale.exponent += above;
  scale.noise *= further.noise * scale_by(norm, -above);
  return scale;
}

// X := B + E. Groups: for each matrix of the list, pieces x tiles of 64 columns.
__kernel __attribute__((reqd_work_group_size(FURTHER_GROUP, 1, 1))) void spread_refused(
    __global const STORED* a, __global const int* list, __global double* work, FactorShape shape,
    TwiceShape twice, FurtherShape further) {
  const PiecePlace at = piece_place(shape, twice, further);
  __global double* slot = slot_of(work, twice, at.index);
  a += list[further.first + at.index] * ((index_t)shape.m * shape.n);
  if (at.col >= shape.n) return;
  const ColumnScale scale = scale_of_column(slot, shape, twice, further, at.col);
  const bool is_zero = scale.exponent == MAGNITUDE_ZERO;
  if (at.piece == 0 && at.turn == 0) slot[further.scales + at.col] = scale.exponent;
  __global double* rows = slot + twice.rows + at.col;
#pragma unroll 4
  for (int i = at.first + at.turn; i < at.last; i += FURTHER_ROWS) {
    const double noise = noise_at(i, at.col) * scale.noise;
    const index_t row = i * (index_t)shape.n;
    rows[row] = is_zero ? noise : scale_by((double)a[row + at.col], -scale.exponent) + noise;
  }
}

// Whether no entry of A below its diagonal differs from zero. Complex matrices of this kind have no
// way of their own: their Q is no identity, since it makes the diagonal real.
INLINE bool has_none_below(__global const double* slot, TwiceShape twice, FurtherShape further) {
  double below = ELEMENT_PARTS - 1;
  for (int i = 0; i < further.pieces * twice.tiles; ++i) {
    below = fmax(below, slot[further.below + i]);
  }
  return below == 0;
}

// Decides what this pass does, adds the shift, and says whether it is the last one. A matrix that
// is its own R needs no pass. Groups: for each matrix tiles on the diagonal.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void begin_pass(
    __global double* work, FactorShape shape, TwiceShape twice, FurtherShape further) {
  __local double sums[WARPS], room[2];
  const Place at = place_of(room);
  const int c = get_group_id(0) % twice.tiles;
  __global double* slot = slot_of(work, twice, get_group_id(0) / twice.tiles);
  const bool says = c == 0 && at.item == 0;
  const bool is_own_r = twice.pass == 0 && has_none_below(slot, twice, further);
  if (says && twice.pass == 0) slot[further.own_r] = is_own_r ? 1 : 0;
  if (is_own_r || is_done(slot, twice)) {
    if (says) {
      slot[DONE_AT(twice, twice.pass + 1)] = 1;
      slot[PLAN_AT(twice)] = PLAN_NOTHING;
    }
    return;
  }
  const double departure = twice.pass == 0 ? INFINITY : sum_departures(&at, slot, twice, sums);
  const bool is_last = departure <= MOST_DEPARTURE;
  if (says && is_last) slot[DONE_AT(twice, twice.pass + 1)] = 1;
  if (departure <= further.enough) {
    if (says) slot[PLAN_AT(twice)] = PLAN_NOTHING;
  } else if (departure <= further.series) {
    if (says) slot[PLAN_AT(twice)] = PLAN_SERIES;
    take_series_of_tile(&at, slot, twice, c);
  } else if (!is_last) {
    __global double* tile = tile_at(slot, twice, c, c);
    for (int i = at.item; i < min(TILE, shape.n - c * TILE); i += GROUP_SIZE) {
      tile[i * (TILE + 1)] = fma(further.shift, tile[i * (TILE + 1)], tile[i * (TILE + 1)]);
    }
  }
}

// ---- finish

// Whether Q and R are good before pass twice.pass, of which no more than the beginning has run, or
// A is its own R.
INLINE bool is_finished(__global const double* slot, TwiceShape twice) {
  const bool is_last = slot[DONE_AT(twice, twice.pass + 1)] != 0;
  return is_done(slot, twice) || (is_last && slot[PLAN_AT(twice)] == PLAN_NOTHING);
}

// Stores Q. Groups: strips of stored_rows rows per matrix of the list.
__kernel __attribute__((reqd_work_group_size(FURTHER_GROUP, 1, 1))) void finish_rows(
    __global const STORED* a, __global STORED* q, __global const int* list,
    __global const double* work, FactorShape shape, TwiceShape twice, FurtherShape further) {
  const int n = shape.n, strips = (shape.m + further.stored_rows - 1) / further.stored_rows;
  const int index = get_group_id(0) / strips;
  const int row = get_group_id(0) % strips * further.stored_rows;
  __global const double* slot = work + index * twice.slot;
  const index_t before = row * (index_t)n;
  const index_t first = list[further.first + index] * ((index_t)shape.m * n) + before;
  // After a return here PoCL 3.1 would leave out the first test of the loop.
  const bool stores = is_finished(slot, twice);
  const int entries = stores ? min(further.stored_rows, shape.m - row) * n : 0;
  const bool is_upper = slot[further.own_r] != 0;
  __global const double* rows = slot + twice.rows + before;
  for (int e = get_local_id(0); e < entries; e += FURTHER_GROUP) {
    const bool is_diagonal = e % n == row + e / n;
    const STORED one = is_diagonal ? (a[first + e] < 0 ? (STORED)-1 : (STORED)1) : (STORED)0;
    q[first + e] = is_upper ? one : (STORED)rows[e];
  }
}

// Stores R, and the route of the matrix. Groups: strips of stored_rows rows of R per matrix of the
// list.
__kernel __attribute__((reqd_work_group_size(FURTHER_GROUP, 1, 1))) void finish_factor(
    __global const STORED* a, __global STORED* r, __global const int* list, __global int* routes,
    __global const double* work, FactorShape shape, TwiceShape twice, FurtherShape further) {
  const int n = shape.n, strips = (n + further.stored_rows - 1) / further.stored_rows;
  const int index = get_group_id(0) / strips;
  const int row = get_group_id(0) % strips * further.stored_rows;
  __global const double* slot = work + index * twice.slot;
  const index_t matrix = list[further.first + index];
  const bool stores = is_finished(slot, twice);
  const bool is_upper = slot[further.own_r] != 0;
  __global const double* factor = slot + further.factor + row * (index_t)n;
  a += matrix * shape.m * n;
  r += (matrix * n + row) / ELEMENT_PARTS * n;
  const int entries = stores ? min(further.stored_rows, n - row) / ELEMENT_PARTS * n : 0;
  for (int e = get_local_id(0); e < entries; e += FURTHER_GROUP) {
    // A complex row of R is the first of its two real ones.
    const int i = row + e / n * ELEMENT_PARTS, j = e % n;
    const int exponent = (int)slot[further.scales + j];
    const index_t place = i * (index_t)n;
    STORED x = 0;
    if (is_upper) {
      x = a[place + i] >= 0 ? a[place + j] : -a[place + j];
    } else if (exponent != MAGNITUDE_ZERO) {
      x = (STORED)scale_by(factor[e / n * ELEMENT_PARTS * n + j], exponent);
    }
    r[e] = i <= j ? x : (STORED)0;
  }
  if (stores && row == 0 && get_local_id(0) == 0) routes[matrix] = ROUTE_FURTHER_PASSES;
}
