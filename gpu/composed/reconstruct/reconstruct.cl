// SPDX-License-Identifier: Apache-2.0
// reconstruct.cl: V and tau of LAPACK's geqrf, or only the signs of its R, from Q and R of another
// variant (LAPACK orhr_col; Ballard, Demmel, Grigori, Jacquelin, Knight, Nguyen, JPDC 85, 2015).
//
//   Q - [S; 0] = V U,   V unit lower trapezoid, U upper triangle,   S = diag(+-1)
//   S_k = -sign(q) of the entry q at (k, k) before S_k is subtracted, tau_k = 2 / v'v of the
//   stored v, and R := S R.   In the last column of a square matrix tau = 0 and S = sign(q).
//
//   launches, in this order                                             one group per
//   another variant  A = Q R, R with a positive diagonal (reconstruct.cpp)
//   copy_q           X := Q, with more than 128 columns                 FORM_ENTRIES of X
//   in each square of 128 columns (16 BLOCKS, where all columns are one square)
//   reconstruct_square   V and U of its first 16 BLOCKS rows, S         matrix
//   reconstruct_rows     V of the other rows, X U^-1                    group_rows rows
//   reconstruct_columns  U right of the square, V^-1 X                  DIVIDED_ROWS columns
//   update_rest      X -= V U below and right of both                   64 x 64
//   finish_form      R above V, tau, the route                          rows_of_group rows of R
//   or flip_factors  Q S and S R, the route                             FORM_ENTRIES of both
//
// A warp has 16 rows of a square, and the warp of a pivot of 16 x 16 eliminates it in registers and
// inverts both of its factors:
//
//         | x  x  x |      V(i, b) = X(i, b) U(b)^-1                by the warp of the strip
//     b ->|    p  x |      X(i, c) -= (V(i, b) L(b)^-1) X(b, c)
//     i ->|    x  x |      U(b, c) = L(b)^-1 X(b, c)                by the pivot's warp, meanwhile
//
// Why no pivots are exchanged, and inverses are good enough: Q has orthonormal columns, so that
// |q| <= 1 + ||I - Q'Q|| at every step, and pivots q - S_k have 1 <= |q - S_k| <= 2. V has entries
// of at most 1, and the inverses of the pivots have entries of at most 1.5 (1,400 hard matrices in
// a model; no theorem). What is left of V U = Q - [S; 0] is then at most c n u, and goes into the
// residual: reflectors with tau = 2 / v'v are orthogonal whatever v is. LAPACK's formula tau =
// -U_kk S_k has no such guarantee, and 49 of 366 square float64 matrices were above their bar. v'v
// of float64 is summed with the errors of its products and sums, since its error goes four times
// into the orthogonality of each reflector.
//
// What is refused goes to reflectors: pivots that are not between 1 and 2, and matrices whose first
// column is zero below the diagonal. LAPACK has tau = 0 there, and for triangular matrices in all
// columns, which the reflectors of `small` and `blocked` give exactly (not those of `large`).
//
// The signs are LAPACK's: in exact arithmetic its alpha_k is q r_kk. Behind a column that depends
// on those before it, Q is noise, and so are the signs.
//
// Defines, set in reconstruct.cpp     range          meaning
//   STORED, REAL, SUB_GROUP_BODY, MMA                common.clh, mma.clh; REAL is double
//   BLOCKS                            1..8           blocks of 16 columns
//   STRIP_WARPS                       1..8           warps that divide rows or columns together
//   VECTOR                            1, 2           copy.clh; divides the columns of A and of Q
// Local memory: 2 (BLOCKS + 1) BLOCK_ROOM + 16 BLOCKS doubles and BLOCKS + 1 ints; STAGED_ENTRIES
// and 32 STRIP_WARPS BLOCKS doubles; 2 REST_ENTRIES of STORED; or 2 FORM_GROUP doubles.
#ifndef BLOCKS
#define BLOCKS 4
#endif
#ifndef STRIP_WARPS
#define STRIP_WARPS BLOCKS
#endif
#ifndef VECTOR
#define VECTOR 1
#endif
#define FORM_WARPS BLOCKS
// A square has at most so many blocks across, and only the largest ones have squares beside them.
#define MOST_BLOCKS 8
#include "gpu/common/copy.clh"
#include "gpu/composed/reconstruct/form_blocks.clh"

#define FORM_ENTRIES 4096
#define FORM_GROUP 256
#define FORM_TILE 64  // of update_rest
#define TILE_GROUP_SIZE (4 * WARP_LANES)
#define STRIP_GROUP_SIZE (STRIP_WARPS * WARP_LANES)
#define DIVIDED_ROWS (16 * STRIP_WARPS)
#define IN_FORM_GROUPS GROUP_OF(FORM_GROUP)
#define IN_SQUARE_GROUPS GROUP_OF(GROUP_SIZE)
#define IN_DIVIDING_GROUPS GROUP_OF(STRIP_GROUP_SIZE)
#define IN_TILE_GROUPS GROUP_OF(TILE_GROUP_SIZE)
// Where a square keeps block (b, c) of U, c > b, and block (c, b) of V. The blocks of one c follow
// one another: a strip needs them together.
#define PLACE_IN_FACTOR(b, c) ((c) * ((c) - 1) / 2 + (b))

// ---- a matrix's work memory

INLINE __global double* upper_of(__global double* slot, ReconstructShape form, int b, int c) {
  return slot + form.upper + PLACE_IN_FACTOR(b, c) * 256;
}
INLINE __global double* lower_of(__global double* slot, ReconstructShape form, int c, int b) {
  return slot + form.lower + PLACE_IN_FACTOR(b, c) * 256;
}
INLINE __global double* upper_inverse_of(__global double* slot, ReconstructShape form, int b) {
  return slot + form.inverses + b * 256;
}
INLINE __global double* lower_inverse_of(__global double* slot, ReconstructShape form, int b) {
  return slot + form.inverses + (BLOCKS + b) * 256;
}
// The first word of a slot says whether the matrix is refused.
INLINE bool is_refused(__global const double* slot) { return slot[0] != 0; }

INLINE Extent extent_of(ReconstructShape form, int ld) {
  const Extent extent = {form.rows, form.columns, ld};
  return extent;
}

// Adds the sums of all warps, and stores those of the columns of a square as piece `piece`.
INLINE void store_squares(__local const double* sums, __global double* slot, ReconstructShape form,
                          int piece, const int warps) {
  __global double* to = slot + form.sums + piece * (index_t)(2 * form.columns);
  for (int j = get_local_id(0); j < form.width; j += warps * WARP_LANES) {
    double sum = 0, rest = 0;
    for (int w = 0; w < warps; ++w) {
      add_to_sum(sums[2 * (w * FORM_ROWS + j)], &sum, &rest);
      rest += sums[2 * (w * FORM_ROWS + j) + 1];
    }
    to[form.first + j] = sum;
    to[form.columns + form.first + j] = rest;
  }
}

// ---- steps of a square

// X := Q. Groups: FORM_ENTRIES entries of X.
__kernel IN_FORM_GROUPS void copy_q(__global const STORED* q, __global STORED* x,
                                          FactorShape shape, ReconstructShape form) {
  const index_t entries = form.rows * (index_t)form.columns;
  const index_t pieces = (entries + FORM_ENTRIES - 1) / FORM_ENTRIES;
  const index_t matrix = get_group_id(0) / pieces;
  const index_t first = get_group_id(0) % pieces * FORM_ENTRIES;
  q += matrix * form.from_stride;
  x += matrix * form.x_stride;
  for (index_t e = first + get_local_id(0); e < min(first + FORM_ENTRIES, entries);
       e += FORM_GROUP) {
    const index_t i = e / form.columns, j = e % form.columns;
    x[i * form.x_ld + j] = q[i * form.columns + j];
  }
}

// Whether the first column of A has an entry below the diagonal that is not zero; one row has no
// such place, and nothing to look for. found: an int in local memory.
INLINE bool has_tail(__global const STORED* a, FactorShape shape, __local int* found) {
  if (get_local_id(0) == 0) *found = shape.m == 1 || a[(shape.m - 1) * (index_t)shape.n] != 0;
  sync_items(CLK_LOCAL_MEM_FENCE);
  const bool is_clear = *found;
  sync_items(CLK_LOCAL_MEM_FENCE);
  bool has_entry = false;
  for (int i = 1 + get_local_id(0); i < shape.m && !is_clear && !has_entry; i += GROUP_SIZE) {
    has_entry = a[i * (index_t)shape.n] != 0;
  }
  if (has_entry) *found = 1;
  sync_items(CLK_LOCAL_MEM_FENCE);
  return *found;
}

// to := x[b], and x[b] := from.
INLINE void take_block(Block to, const Block x[BLOCKS], int b) {
#pragma unroll
  for (int c = 0; c < BLOCKS; ++c) {
    if (c == b) copy_block(to, x[c]);
  }
}
INLINE void replace_block(Block x[BLOCKS], const Block from, int b) {
#pragma unroll
  for (int c = 0; c < BLOCKS; ++c) {
    if (c == b) copy_block(x[c], from);
  }
}

// The warp of a pivot shows three things to the warps below: U^-1; the blocks of its row as they
// were before the pivot, at 1 .. BLOCKS - 1; and L^-1.
#define SHOWN_BLOCKS (BLOCKS + 1)
#define SHOWN_LOWER (BLOCKS * BLOCK_ROOM)

// The warp of pivot b: V, U and S on the diagonal of its strip x. shown: in local memory.
INLINE bool reconstruct_strip(const Warp* at, Block x[BLOCKS], __local double* shown,
                              __local double* signs, int b, int blocks) {
  Block pivot, lower, upper;
#pragma unroll
  for (int c = 1; c < BLOCKS; ++c) {
    if (c > b && c < blocks) put_block(at, x[c], shown + c * BLOCK_ROOM);
  }
  take_block(pivot, x, b);
  const bool is_good = reconstruct_pivot(at, pivot, lower, upper, signs + 16 * b);
  replace_block(x, pivot, b);
  put_block(at, upper, shown);
  put_block(at, lower, shown + SHOWN_LOWER);
  return is_good;
}
// Saves the inverses of pivot b and U' right of it, which are shown.
INLINE void save_strip(const Warp* at, __local const double* shown, __global double* slot,
                       ReconstructShape form, int b, int blocks) {
  Block lower, y, z;
  get_transposed(at, y, shown);
  save_words(at, y, upper_inverse_of(slot, form, b));
  get_block(at, lower, shown + SHOWN_LOWER);
  save_words(at, lower, lower_inverse_of(slot, form, b));
#pragma unroll 1
  for (int c = b + 1; c < blocks; ++c) {
    get_transposed(at, y, shown + c * BLOCK_ROOM);
    clear_block(z);
    multiply_add(z, y, lower);
    save_words(at, z, upper_of(slot, form, b, c));
  }
}
// A strip below pivot b: V(:, b), and the rest of its entries less V(:, b) L^-1 times the row of
// the pivot. So U, the product of L^-1 and this row, need not be waited for.
INLINE void divide_strip_below(const Warp* at, Block x[BLOCKS], __local const double* shown, int b,
                               int blocks) {
  Block s, y, v;
  take_block(s, x, b);
  get_transposed(at, y, shown);
  clear_block(v);
  multiply_add(v, s, y);
  replace_block(x, v, b);
  get_transposed(at, y, shown + SHOWN_LOWER);
  clear_block(s);
  multiply_add(s, v, y);
  flip_block(s);
#pragma unroll
  for (int c = 1; c < BLOCKS; ++c) {
    if (c > b && c < blocks) {
      get_transposed(at, y, shown + c * BLOCK_ROOM);
      multiply_add(x[c], s, y);
    }
  }
}

// Groups: one per matrix. Inner routes: those of the variant that made Q, null where it has none.
__kernel IN_SQUARE_GROUPS void reconstruct_square(
    __global const STORED* a, __global const STORED* from, __global STORED* x,
    __global const int* inner_routes, __global double* work, FactorShape shape,
    ReconstructShape form) {
  __local double shown[2 * SHOWN_BLOCKS * BLOCK_ROOM] __attribute__((aligned(16)));
  __local double signs[FORM_ROWS];
  __local int flags[BLOCKS + 1];
  const Warp warp = warp_of_item();
  const Warp* at = &warp;
  const int item = get_local_id(0), index = item / WARP_LANES;
  const index_t matrix = get_group_id(0);
  const int blocks = (form.width + 15) / 16, row = form.first + 16 * index;
  __global double* slot = work + matrix * form.slot;
  const bool is_open = form.first == 0 ? form.routes == ROUTES_MAY_BE_OPEN &&
                                             inner_routes[matrix] == ROUTE_REFLECTORS
                                       : is_refused(slot);
  if (is_open) {
    if (item == 0) slot[0] = 1;
    return;
  }
  from += matrix * form.from_stride;
  x += matrix * form.x_stride;
  Block own[BLOCKS];
#pragma unroll
  for (int c = 0; c < BLOCKS; ++c) {
    load_of(at, own[c], from, extent_of(form, form.from_ld), row, form.first + 16 * c);
  }
  const bool has_entry = has_tail(a + matrix * shape.m * shape.n, shape, flags);
  sync_items(CLK_LOCAL_MEM_FENCE);
  if (item < BLOCKS) flags[item] = 0;
  if (item == 0) flags[BLOCKS] = form.first == 0 && !has_entry ? 1 : 0;
  sync_items(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
  for (int b = 0; b < blocks; ++b) {
    __local double* by_pivot = shown + b % 2 * (SHOWN_BLOCKS * BLOCK_ROOM);
    if (index == b) {
      const bool is_good = reconstruct_strip(at, own, by_pivot, signs, b, blocks);
      if (at->lane == 0) flags[b] = is_good ? 0 : 1;
    }
    sync_items(CLK_LOCAL_MEM_FENCE);
    if (index == b && form.saves) save_strip(at, by_pivot, slot, form, b, blocks);
    if (index > b && row < form.rows) divide_strip_below(at, own, by_pivot, b, blocks);
  }
  sync_items(CLK_LOCAL_MEM_FENCE);
  if (form.stores) {
#pragma unroll
    for (int c = 0; c < BLOCKS; ++c) {
      if (c < blocks) {
        store_below(at, own[c], x, extent_of(form, form.x_ld), row, form.first + 16 * c);
        add_squares_of(at, own[c], shown + 2 * index * FORM_ROWS, row, form.first + 16 * c, c,
                       true);
      }
    }
  }
  if (form.columns > form.first + FORM_ROWS) {
#pragma unroll
    for (int c = 0; c + 1 < BLOCKS; ++c) {
      if (c < index) save_words(at, own[c], lower_of(slot, form, index, c));
    }
  }
  sync_items(CLK_LOCAL_MEM_FENCE);
  if (form.stores) store_squares(shown, slot, form, 0, WARPS);
  for (int i = item; i < form.width; i += GROUP_SIZE) {
    const bool is_last = form.first + i == shape.m - 1;
    slot[form.signs + form.first + i] = is_last ? -signs[i] : signs[i];
  }
  if (item == 0) {
    int refused = 0;
    for (int b = 0; b <= BLOCKS; ++b) refused |= flags[b];
    slot[0] = refused;
  }
}

#include "gpu/composed/reconstruct/strips.clh"

#if BLOCKS == MOST_BLOCKS
// ---- the rest

// Terms of V and of U in local memory, so many at a time; rows are so far apart that a warp reads
// from different banks.
#define REST_TERMS 16
#define REST_V_LD (REST_TERMS + 4)
#define REST_U_LD (FORM_TILE + (STORED_IS_DOUBLE ? 4 : 8))
#define REST_U (FORM_TILE * REST_V_LD)
#define REST_ENTRIES (REST_U + REST_TERMS * REST_U_LD)

// Begins to copy rows `row` .. of V and columns `col` .. of U, terms k .. ; zeros past the ends.
INLINE void copy_stage_of_rest(__local STORED* to, __global const STORED* x, Extent extent,
                               int row, int col, int k) {
  const int vectors_of_v = REST_TERMS / VECTOR, vectors_of_u = FORM_TILE / VECTOR;
  for (int i = get_local_id(0); i < FORM_TILE * vectors_of_v; i += TILE_GROUP_SIZE) {
    const int down = i / vectors_of_v, across = i % vectors_of_v * VECTOR;
    const bool exists = row + down < extent.rows;
    __global const STORED* from = x + (row + down) * (index_t)extent.ld + k + across;
    copy_vector(to + down * REST_V_LD + across, exists ? from : x, exists);
  }
  for (int i = get_local_id(0); i < REST_TERMS * vectors_of_u; i += TILE_GROUP_SIZE) {
    const int down = i / vectors_of_u, across = i % vectors_of_u * VECTOR;
    const bool exists = col + across < extent.cols;
    __global const STORED* from = x + (k + down) * (index_t)extent.ld + col + across;
    copy_vector(to + REST_U + down * REST_U_LD + across, exists ? from : x, exists);
  }
}
// Four terms of 16 rows of V, or of 16 columns of U.
INLINE void get_terms_of_rest(const Warp* at, Quarter y, __local const STORED* from,
                              const int row_ld, const int term_ld) {
  from += at->g * row_ld + at->t * term_ld;
#pragma unroll
  for (int w = 0; w < QUARTER_WORDS; ++w) {
    y[w] = from[BLOCK_ROW(w % WORD_ROWS, 0) * row_ld + w / WORD_ROWS * term_ld];
  }
}

// X -= V U below and right of a square. Groups: for each matrix tiles of 64 x 64; a warp has 32 x
// 32.
__kernel IN_TILE_GROUPS void update_rest(__global STORED* x, __global double* work,
                                               FactorShape shape, ReconstructShape form) {
  __local STORED stages[2 * REST_ENTRIES] __attribute__((aligned(16)));
  const Warp warp = warp_of_item();
  const Warp* at = &warp;
  const int begin = form.first + FORM_ROWS, index = get_local_id(0) / WARP_LANES;
  const int across = (form.columns - begin + FORM_TILE - 1) / FORM_TILE;
  const int down = (form.rows - begin + FORM_TILE - 1) / FORM_TILE;
  const int tile = get_group_id(0) % (across * down);
  const index_t matrix = get_group_id(0) / (across * down);
  const int row = begin + tile / across * FORM_TILE, own_row = index / 2 * 32;
  const int col = begin + tile % across * FORM_TILE, own_col = index % 2 * 32;
  const bool is_open = is_refused(work + matrix * form.slot);
  const int steps = is_open ? 0 : FORM_ROWS / REST_TERMS;
  const Extent extent = extent_of(form, form.x_ld);
  x += matrix * form.x_stride;
  Block sum[4];
#pragma unroll
  for (int p = 0; p < 4; ++p) clear_block(sum[p]);
  if (!is_open) copy_stage_of_rest(stages, x, extent, row, col, form.first);
  commit_copies();
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    __local const STORED* stage = stages + step % 2 * REST_ENTRIES;
    wait_for_copies();
    barrier(CLK_LOCAL_MEM_FENCE);
    if (step + 1 < steps) {
      copy_stage_of_rest(stages + (step + 1) % 2 * REST_ENTRIES, x, extent, row, col,
                         form.first + (step + 1) * REST_TERMS);
    }
    commit_copies();
#pragma unroll
    for (int k = 0; k < REST_TERMS; k += 4) {
      Quarter v[2], u[2];
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        get_terms_of_rest(at, v[p], stage + (own_row + 16 * p) * REST_V_LD + k, REST_V_LD, 1);
        get_terms_of_rest(at, u[p], stage + REST_U + own_col + 16 * p + k * REST_U_LD, 1,
                          REST_U_LD);
      }
#pragma unroll
      for (int p = 0; p < 4; ++p) add_quarter(sum[p], v[p / 2], u[p % 2]);
    }
  }
  if (is_open) return;
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    const int i = row + own_row + p / 2 * 16, j = col + own_col + p % 2 * 16;
    Block old;
    load_of(at, old, x, extent, i, j);
    subtract_block(old, sum[p]);
    store_of(at, old, x, extent, i, j, false);
  }
}
#endif

// ---- finish

// The route of a matrix: that of the variant that made Q, or reflectors.
INLINE int route_of_form(__global const int* inner_routes, __global const int* magnitudes,
                    __global const double* slot, ReconstructShape form, index_t matrix) {
  const int route = form.routes == ROUTES_NONE ? ROUTE_ONLY : inner_routes[matrix];
  const bool is_finite = magnitudes[matrix] != MAGNITUDE_NON_FINITE;
  return is_refused(slot) && is_finite ? ROUTE_REFLECTORS : route;
}

// The squares of column j in every parts-th piece from `part` on, and what their sum has lost. A
// column is in one square, whose pieces have its squares.
INLINE double2 sum_pieces(__global const double* slot, ReconstructShape form, int j, int part,
                          int parts) {
  const int below = form.rows - (j / FORM_ROWS + 1) * FORM_ROWS;
  const int pieces = 1 + (below > 0 ? (below + form.group_rows - 1) / form.group_rows : 0);
  double sum = 0, rest = 0;
#pragma unroll 16
  for (int piece = part; piece < pieces; piece += parts) {
    __global const double* from = slot + form.sums + piece * (index_t)(2 * form.columns) + j;
    add_to_sum(from[0], &sum, &rest);
    if (STORED_IS_DOUBLE) rest += from[form.columns];
  }
  return (double2)(sum, rest);
}

// tau of column j. shared: its sums by `parts` work-items, `width` apart; none for one part.
INLINE STORED tau_of_column(__global const double* slot, FactorShape shape, ReconstructShape form,
                            int j, __local const double2* shared, int parts, int width) {
  double sum = 1, rest = 0;
  for (int part = 0; part < parts; ++part) {
    const double2 one = parts > 1 ? shared[part * width + j] : sum_pieces(slot, form, j, 0, 1);
    add_to_sum(one.x, &sum, &rest);
    rest += one.y;
  }
  return j == shape.m - 1 ? (STORED)0 : (STORED)(2 / (sum + rest));
}

// S R above V, and tau. Groups: for each matrix strips of rows_of_group rows of R.
__kernel IN_FORM_GROUPS void finish_form(__global const STORED* r, __global STORED* v,
                                               __global STORED* tau,
                                               __global const int* inner_routes,
                                               __global int* routes,
                                               __global const int* magnitudes,
                                               __global const double* work, FactorShape shape,
                                               ReconstructShape form) {
  __local double2 shared[FORM_GROUP];
  const int strips = (shape.k + form.rows_of_group - 1) / form.rows_of_group;
  const index_t matrix = get_group_id(0) / strips;
  const int row = get_group_id(0) % strips * form.rows_of_group;
  __global const double* slot = work + matrix * form.slot;
  if (row == 0 && get_local_id(0) == 0) {
    routes[matrix] = route_of_form(inner_routes, magnitudes, slot, form, matrix);
  }
  const bool is_finite = magnitudes[matrix] != MAGNITUDE_NON_FINITE;
  // After a return here PoCL 3.1 would leave out the first test of the loops.
  const bool is_open = is_refused(slot) && is_finite;
  r += (matrix * shape.k + row) * shape.n;
  v += (matrix * shape.m + row) * shape.n;
  const int entries = is_open ? 0 : min(form.rows_of_group, shape.k - row) * shape.n;
  for (int e = get_local_id(0); e < entries; e += FORM_GROUP) {
    const int i = row + e / shape.n, j = e % shape.n;
    if (j >= i) v[e] = (STORED)slot[form.signs + i] * r[e];
  }
  // Work-items share the pieces of few columns.
  const int item = get_local_id(0), width = min(form.columns, FORM_GROUP);
  const int parts = FORM_GROUP / width;
  if (parts > 1 && row == 0 && !is_open) {
    shared[item] = sum_pieces(slot, form, item % width, item / width, parts);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int end = row == 0 && !is_open ? form.columns : 0;
  for (int j = item; j < end; j += FORM_GROUP) {
    const STORED x = tau_of_column(slot, shape, form, j, shared, parts, width);
    tau[matrix * shape.k + j] = is_finite ? x : (STORED)NAN;
  }
}

// Q := Q S where `has_q`, and R := S R. Groups: for each matrix FORM_ENTRIES entries of Q and R.
__kernel IN_FORM_GROUPS void flip_factors(__global STORED* q, __global STORED* r,
                                                __global const int* inner_routes,
                                                __global int* routes,
                                                __global const int* magnitudes,
                                                __global const double* work, FactorShape shape,
                                                ReconstructShape form) {
  const index_t of_q = shape.m * (index_t)shape.q_cols, of_r = shape.k * (index_t)shape.n;
  const index_t pieces = (of_q + of_r + FORM_ENTRIES - 1) / FORM_ENTRIES;
  const index_t matrix = get_group_id(0) / pieces;
  const index_t first = get_group_id(0) % pieces * FORM_ENTRIES;
  __global const double* slot = work + matrix * form.slot;
  if (first == 0 && get_local_id(0) == 0) {
    routes[matrix] = route_of_form(inner_routes, magnitudes, slot, form, matrix);
  }
  if (is_refused(slot)) return;
  q += matrix * of_q;
  r += matrix * of_r;
  for (index_t e = first + get_local_id(0); e < min(first + FORM_ENTRIES, of_q + of_r);
       e += FORM_GROUP) {
    if (e < of_q) {
      q[e] *= (STORED)slot[form.signs + e % shape.q_cols];
    } else {
      const index_t i = (e - of_q) / shape.n, j = (e - of_q) % shape.n;
      if (j >= i) r[e - of_q] *= (STORED)slot[form.signs + i];
    }
  }
}
