// SPDX-License-Identifier: Apache-2.0
// normal_group.cl: least squares by normal equations in float64, as normal.cl, by a group of warps
// for each system, which holds A'A and then L in its registers. It is meant for devices that
// multiply blocks of float64 (mma.clh), and for systems that normal_tile.cl has no room for.
//
//   A'A = G,  A'b = y                       by stages of rows in local memory
//   G = L L'                                one column of blocks after another
//   x = L'^-1 L^-1 y                        by blocks, with X = L'^-1 of those on the diagonal
//   float64 A: g = A'(b - A x),  x += L'^-1 L^-1 g  until ||d|| <= enough ||x||
//   R = L'                                  for the check (systems.cl)
//
//   solve_normal_group   all of it                                                system
//   solve_weighed_group  with SUMS_GIVEN: G and y are there (pairs.cl), and       right side
//                        corrections are g = A'W(b - A x) with one A for all
//
// normal.cl says why one step is enough for float32, and what is left to R of a variant.
//
// group_blocks.clh says which blocks a warp has.
//
// Local memory: stages of rows of A, each with its entry of b; or two columns of L. In the place of
// a block on the diagonal of L is X, which stays there.
//
// Defines, set in normal_group.cpp   range     meaning
//   SUB_GROUP_BODY, MMA                        common.clh, mma.clh
//   STORED                                     common.clh
//   VECTOR                           1, 2, 4   copy.clh; divides n
//   BLOCKS                           6..10     blocks of 16 columns; with SUMS_GIVEN 1 and 4..8
//   SPARE                            0, 1      group_blocks.clh
//   MOST_STEPS                       1 ..      the first step and the corrections
//   SUMS_GIVEN                       0, 1      1: solve_weighed_group alone
// Work-group: a warp for two rows of blocks.
#include "gpu/common/common.clh"

#ifndef BLOCKS
#define BLOCKS 7
#endif
#ifndef MOST_STEPS
#define MOST_STEPS 4
#endif
#ifndef SUMS_GIVEN
#define SUMS_GIVEN 0
#endif
#include "gpu/common/copy.clh"
#include "gpu/gram/steps/group_blocks.clh"
#include "gpu/solve/normal/block_vectors.clh"

#define COLUMN_OF_BLOCKS(b) ((b) % 2 * COLUMN_APART)
#define PIVOT_OF_COLUMN(b) (COLUMN_OF_BLOCKS(b) + (b)*BLOCK_ROOM)
#define FACTOR_AT (COLUMN_APART + BLOCKS * BLOCK_ROOM)
#define GROUP_ROOM (FACTOR_AT + PIVOT_ROOM)
// The rows of A that a warp takes at a time.
#define ROWS_AT_ONCE (MMA ? 4 : 1)

// The part of A'b, or of another vector, that a lane has, for its two rows of blocks.
typedef struct {
  double high[WORD_ROWS], low[WORD_ROWS];
} RowParts;

// ---- A'A and A'b

#if SUMS_GIVEN
// own := -G, with -1 on the diagonal past column n, and y := A'b, from the lower triangle by rows.
INLINE void take_given_sums(const GroupPlace* at, Block own[OWN_BLOCKS], __local double* y,
                      __global const double* gram, __global const double* right, int n) {
#pragma unroll
  for (int s = 0; s < OWN_BLOCKS; ++s) {
    const int row = 16 * OWN_ROW(s, at), col = 16 * OWN_COL(s, at);
#pragma unroll
    for (int w = 0; w < BLOCK_WORDS; ++w) {
      const int i = row + BLOCK_ROW(w, at->warp.g), j = col + BLOCK_COL(w, at->warp.t);
      const int high = max(i, j), low = min(i, j);
      own[s][w] = high < n ? -gram[high * (high + 1) / 2 + low] : 0.0;
    }
  }
  fill_past_last_column(at, own, n, -1);
#pragma unroll
  for (int u = 0; u < PADDED_COLUMNS; u += GROUP_SIZE) {
    const int i = u + at->item;
    if (i < PADDED_COLUMNS) y[i] = i < n ? right[i] : 0.0;
  }
  sync_items(CLK_LOCAL_MEM_FENCE);
}
#else
// Copies GROUP_STAGE_ROWS rows of A from row `first` on, with zeros past the last row and column.
// The entries of b go to column PADDED_COLUMNS.
INLINE void copy_system_rows(const GroupPlace* at, __local STORED* stage, __global const STORED* a,
                             __global const STORED* b, int m, int n, int first) {
#pragma unroll
  for (int u = 0; u < GROUP_STAGE_ROWS; u += WARPS) {
    const int row = u + at->index;
    if (u + WARPS <= GROUP_STAGE_ROWS || row < GROUP_STAGE_ROWS) {
      const bool is_row = first + row < m;
      __global const STORED* from = a + (first + row) * n;
      __local STORED* to = stage + row * GROUP_STAGE_LD;
#pragma unroll
      for (int v = 0; v < PADDED_COLUMNS; v += VECTOR * WARP_LANES) {
        const int col = v + VECTOR * at->warp.lane;
        const bool exists = is_row && col < n;
        if (v + VECTOR * WARP_LANES <= PADDED_COLUMNS || col < PADDED_COLUMNS) {
          copy_vector(to + col, exists ? from + col : a, exists);
        }
      }
#if MMA
      if (at->warp.lane == 0) {
        copy_bytes(to + PADDED_COLUMNS, b + (is_row ? first + row : 0), is_row,
                   (int)sizeof(STORED));
      }
#else
      to[PADDED_COLUMNS] = is_row ? b[first + row] : (STORED)0;
#endif
    }
  }
}

// own += A'A and sums += A'b of a stage.
INLINE void add_system_rows(const GroupPlace* at, Block own[OWN_BLOCKS], RowParts* sums,
                            __local const STORED* stage) {
  __local const STORED* from = stage + at->warp.t * GROUP_STAGE_LD;
#pragma unroll
  for (int k = 0; k < GROUP_STAGE_ROWS; k += 4) {
    __local const STORED* columns = from + at->warp.g;
    Quarter high, low;
    load_operand(high, columns + 16 * at->high, k);
    load_operand(low, columns + 16 * max(at->low, 0), k);
#pragma unroll
    for (int w = 0; w < QUARTER_WORDS; ++w) {
      const double b = from[(k + w / WORD_ROWS) * GROUP_STAGE_LD + PADDED_COLUMNS];
      sums->high[w % WORD_ROWS] = fma(high[w], b, sums->high[w % WORD_ROWS]);
      sums->low[w % WORD_ROWS] = fma(low[w], b, sums->low[w % WORD_ROWS]);
    }
    add_row_products(at, own, high, low, columns, k);
  }
}

// y := the entries of A'b of a row of blocks.
INLINE void store_row_parts(const Warp* at, double sums[WORD_ROWS], __local double* y) {
#pragma unroll
  for (int h = 0; h < WORD_ROWS; ++h) {
    sums[h] = sum_of_lanes(sums[h], 1, 4);
    if (at->t == 0) y[BLOCK_ROW(h, at->g)] = sums[h];
  }
}

// own := -A'A, with -1 on the diagonal past column n, and y := A'b.
INLINE void sum_system(const GroupPlace* at, Block own[OWN_BLOCKS], __local double* y,
                       __local STORED* stages, __global const STORED* a, __global const STORED* b,
                       int m, int n) {
  const int steps = (m + GROUP_STAGE_ROWS - 1) / GROUP_STAGE_ROWS;
  RowParts sums = {{0}, {0}};
#pragma unroll
  for (int s = 0; s < OWN_BLOCKS; ++s) clear_block(own[s]);
#pragma unroll 1
  for (int step = 1 - GROUP_STAGES; step < steps; ++step) {
    const int begun = step + GROUP_STAGES - 1;
    wait_for_stage(GROUP_STAGES - 2);
    sync_items(CLK_LOCAL_MEM_FENCE);
    if (begun < steps) {
      copy_system_rows(at, stages + begun % GROUP_STAGES * GROUP_STAGE_ENTRIES, a, b, m, n,
                       begun * GROUP_STAGE_ROWS);
    }
    commit_copies();
    if (step >= 0)
      add_system_rows(at, own, &sums, stages + step % GROUP_STAGES * GROUP_STAGE_ENTRIES);
  }
  wait_for_copies();
  store_row_parts(&at->warp, sums.high, y + 16 * at->high);
  if (at->low >= 0) store_row_parts(&at->warp, sums.low, y + 16 * at->low);
#pragma unroll
  for (int s = 0; s < OWN_BLOCKS; ++s) flip_block(own[s]);
  fill_past_last_column(at, own, n, -1);
  sync_items(CLK_LOCAL_MEM_FENCE);
}
#endif

// ---- L

// R(col .., row ..) := l', on and above the diagonal of R.
INLINE void store_in_r(const Warp* at, const Block l, __global STORED* r, int n, int row, int col) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const int i = row + BLOCK_ROW(w, at->g), j = col + BLOCK_COL(w, at->t);
    if (i < n && j <= i) r[j * n + i] = (STORED)l[w];
  }
}

// own: -G -> L, except on the diagonal; X to the places of the pivots; R := L'. A division by a
// pivot with (D X)^2 to `most` needs no correction.
INLINE void factor_system(Block own[OWN_BLOCKS], __local double* shared, __local int* is_plain,
                          __global STORED* r, int n, double most) {
  __local double* factor = shared + FACTOR_AT;
#pragma unroll 1
  for (int b = 0; b < BLOCKS; ++b) {
    __local double* column = shared + COLUMN_OF_BLOCKS(b);
    __local const double* before = shared + COLUMN_OF_BLOCKS(b + 1);
    // Turn 0: the pivot. Meanwhile the other warps subtract the products of column b - 1 of L from
    // their blocks; the pivot's own warp does so in turn 2. Turn 2: column b.
#pragma unroll 1
    for (int turn = 0; turn < 3; ++turn) {
      const GroupPlace here = place_in_group();
      const GroupPlace* at = &here;
      const bool is_pivot = at->high == b || at->low == b;
#pragma unroll
      for (int s = 0; s < OWN_BLOCKS; ++s) {
        const int i = OWN_ROW(s, at), j = OWN_COL(s, at);
        if (b > 0 && j >= b && turn == (i == b ? 0 : is_pivot ? 2 : 1)) {
          add_to_own(&at->warp, own[s], before, i, j);
        }
        if (turn == 0 && i == b && j == b)
          put_block(&at->warp, own[s], shared + PIVOT_OF_COLUMN(b));
        if (turn == 2 && i > b && j == b) {
          Block l;
          flip_block(own[s]);
          divide_block(&at->warp, l, own[s], shared + PIVOT_OF_COLUMN(b), factor,
                       agreed(*is_plain != 0));
          copy_block(own[s], l);
          put_block(&at->warp, l, column + i * BLOCK_ROOM);
          store_in_r(&at->warp, l, r, n, 16 * i, 16 * b);
        }
      }
      if (turn == 0 && is_pivot) {
        Block l, x;
        const Warp quads = {at->warp.lane, row_of_lane(at->warp.lane), at->warp.t, factor};
        sync_warp();
        const double squares =
            factor_negative_pivot(&quads, l, x, shared + PIVOT_OF_COLUMN(b), factor);
        if (at->warp.lane == 0) *is_plain = squares <= most + 12;
      }
      if (turn == 2 && is_pivot) {
        Block l;
        get_block(&at->warp, l, factor);
        store_in_r(&at->warp, l, r, n, 16 * b, 16 * b);
      }
      if (turn > 0) sync_items(CLK_LOCAL_MEM_FENCE);
    }
  }
}

// ---- x

// v -= l' x, if is_wanted; without a branch, so that the sums of several blocks run at a time.
INLINE void subtract_columns(const Warp* at, const Block l, __local const double* x,
                             __local double* v, bool is_wanted) {
  double of_cols[WORD_COLS] = {0};
  add_column_product(at, of_cols, l, x);
  put_column_sums(at, of_cols, v, true, is_wanted);
}

// v := L'^-1 L^-1 v
INLINE void solve_factored(Block own[OWN_BLOCKS], __local const double* shared, __local double* v) {
  RowParts sums = {{0}, {0}};
#pragma unroll 1
  for (int b = 0; b < BLOCKS; ++b) {
    const GroupPlace here = place_in_group();
    const GroupPlace* at = &here;
    if (at->high == b || at->low == b) {
      Block x;
      double of_rows[WORD_ROWS], of_cols[WORD_COLS] = {0};
#pragma unroll
      for (int h = 0; h < WORD_ROWS; ++h) of_rows[h] = at->high == b ? sums.high[h] : sums.low[h];
      take_row_sums(&at->warp, of_rows, v + 16 * b, true);
      get_block(&at->warp, x, shared + PIVOT_OF_COLUMN(b));
      add_column_product(&at->warp, of_cols, x, v + 16 * b);
      take_column_sums(&at->warp, of_cols, v + 16 * b, false);
    }
    sync_items(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int s = 0; s < OWN_BLOCKS; ++s) {
      if (OWN_COL(s, at) == b && OWN_ROW(s, at) > b) {
        if (IS_HIGH(s, at)) {
          add_row_product(&at->warp, sums.high, own[s], v + 16 * b);
        } else {
          add_row_product(&at->warp, sums.low, own[s], v + 16 * b);
        }
      }
    }
  }
#pragma unroll 1
  for (int b = BLOCKS - 1; b >= 0; --b) {
    const GroupPlace here = place_in_group();
    const GroupPlace* at = &here;
    if (at->high == b || at->low == b) {
      Block x;
      double of_rows[WORD_ROWS] = {0};
      get_block(&at->warp, x, shared + PIVOT_OF_COLUMN(b));
      add_row_product(&at->warp, of_rows, x, v + 16 * b);
      take_row_sums(&at->warp, of_rows, v + 16 * b, false);
    }
    if (at->high == b) {
#pragma unroll
      for (int s = 0; s < BLOCKS - 1; ++s) {
        subtract_columns(&at->warp, own[s], v + 16 * b, v + 16 * s, s < b);
      }
    } else if (at->low == b) {
#pragma unroll
      for (int c = 0; c < FIRST_DIAGONAL - 1; ++c) {
        subtract_columns(&at->warp, own[OWN_BLOCKS - 1 - c], v + 16 * b, v + 16 * c, c < b);
      }
    }
    sync_items(CLK_LOCAL_MEM_FENCE);
  }
}

// x := v if is_first, or x += v.
INLINE void add_to_x(__local double* x, __local const double* v, bool is_first) {
#pragma unroll
  for (int u = 0; u < PADDED_COLUMNS; u += GROUP_SIZE) {
    const int i = u + (int)get_local_id(0);
    if (i < PADDED_COLUMNS) x[i] = is_first ? v[i] : x[i] + v[i];
  }
}

// ---- corrections

#if MOST_STEPS > 1
// y := A'W(b - A x), where a null w means W = I. A warp takes whole rows, straight from global
// memory.
INLINE void form_group_gradient(__local double* y, __local const double* x,
                                __global const STORED* a, __global const STORED* b,
                                __global const STORED* w, int m, int n) {
  const GroupPlace here = place_in_group();
  const GroupPlace* at = &here;
  const int lane = at->warp.lane;
  double own[OWNED_COLUMNS];
#pragma unroll
  for (int c = 0; c < OWNED_COLUMNS; ++c) own[c] = 0;
#pragma unroll 1
  for (int first = ROWS_AT_ONCE * at->index; first < m; first += ROWS_AT_ONCE * WARPS) {
    STORED entries[ROWS_AT_ONCE][OWNED_COLUMNS], rest[ROWS_AT_ONCE], weight[ROWS_AT_ONCE];
#pragma unroll
    for (int u = 0; u < ROWS_AT_ONCE; ++u) {
      const int row = first + u;
#pragma unroll
      for (int c = 0; c < OWNED_COLUMNS; ++c) {
        const int col = lane + WARP_LANES * c;
        entries[u][c] = row < m && col < n ? a[row * n + col] : (STORED)0;
      }
      rest[u] = row < m ? b[row] : (STORED)0;
      weight[u] = w != 0 && row < m ? w[row] : (STORED)1;
    }
#pragma unroll
    for (int u = 0; u < ROWS_AT_ONCE; ++u) {
      double sum = 0;
#pragma unroll
      for (int c = 0; c < OWNED_COLUMNS; ++c) {
        const int col = lane + WARP_LANES * c;
        if (col < PADDED_COLUMNS) sum = fma((double)entries[u][c], x[col], sum);
      }
      const double of_row = (double)weight[u] * ((double)rest[u] - sum_of_warp(sum));
#pragma unroll
      for (int c = 0; c < OWNED_COLUMNS; ++c) own[c] = fma((double)entries[u][c], of_row, own[c]);
    }
  }
#pragma unroll 1
  for (int w = 0; w < WARPS; ++w) {
    if (w == at->index) {
#pragma unroll
      for (int c = 0; c < OWNED_COLUMNS; ++c) {
        const int col = lane + WARP_LANES * c;
        if (col < PADDED_COLUMNS) y[col] = w == 0 ? own[c] : y[col] + own[c];
      }
    }
    sync_items(CLK_LOCAL_MEM_FENCE);
  }
}

// ||v||^2, in every work-item.
INLINE double square_in_group(__local const double* v) {
  const GroupPlace at = place_in_group();
  double sum = 0;
#pragma unroll
  for (int c = 0; c < OWNED_COLUMNS; ++c) {
    const int col = at.warp.lane + WARP_LANES * c;
    if (col < PADDED_COLUMNS) sum = fma(v[col], v[col], sum);
  }
  return sum_of_warp(sum);
}
#endif

// x of a system whose A'A is in `own` and whose A'b is in y, and R.
INLINE void solve_sums(Block own[OWN_BLOCKS], __local double* shared, __local double* own_x,
                       __local double* y, __local int* is_plain, __global const STORED* a,
                       __global const STORED* b, __global const STORED* w, __global STORED* r,
                       __global STORED* x, const SystemShape* shape, int n) {
  factor_system(own, shared, is_plain, r, n, MOST_PLAIN(shape->m, n));
  bool is_done = false;
#pragma unroll 1
  for (int step = 0; !is_done; ++step) {
#if MOST_STEPS > 1
    if (step > 0) form_group_gradient(y, own_x, a, b, w, shape->m, n);
#endif
    solve_factored(own, shared, y);
    add_to_x(own_x, y, step == 0);
    sync_items(CLK_LOCAL_MEM_FENCE);
    is_done = step == MOST_STEPS - 1;
#if MOST_STEPS > 1
    const double of_d = square_in_group(y), of_x = square_in_group(own_x);
    is_done |= (step > 0) & !(of_d > shape->enough * shape->enough * of_x);
    sync_items(CLK_LOCAL_MEM_FENCE);
#endif
  }
#pragma unroll
  for (int u = 0; u < PADDED_COLUMNS; u += GROUP_SIZE) {
    const int i = u + (int)get_local_id(0);
    if (i < n) x[i * shape->x_step] = (STORED)own_x[i];
  }
}

// Groups: one per system of n columns, or per right side. Their sums lie gram_ld and right_ld
// numbers apart.
#if SUMS_GIVEN
__kernel SIZE_OF_GROUP void solve_weighed_group(__global const double* gram,
                                                __global const double* right,
                                                __global const STORED* a, __global const STORED* b,
                                                __global const STORED* w, __global STORED* r,
                                                __global STORED* x, SystemShape shape, int n,
                                                int gram_ld, int right_ld) {
  __local double shared[GROUP_ROOM] __attribute__((aligned(16)));
  __local double own_x[PADDED_COLUMNS], y[PADDED_COLUMNS];
  __local int is_plain;
  const index_t side = get_group_id(0);
  const GroupPlace at = place_in_group();
  Block own[OWN_BLOCKS];
  take_given_sums(&at, own, y, gram + side * gram_ld, right + side * right_ld, n);
  solve_sums(own, shared, own_x, y, &is_plain, a, b + side * shape.m, w + side * shape.m,
             r + side * n * n, x + side * shape.x_system, &shape, n);
}
#else
__kernel SIZE_OF_GROUP void solve_normal_group(__global const STORED* a, __global const STORED* b,
                                               __global STORED* r, __global STORED* x,
                                               SystemShape shape, int n) {
  __local double shared[GROUP_ROOM] __attribute__((aligned(16)));
  __local double own_x[PADDED_COLUMNS], y[PADDED_COLUMNS];
  __local int is_plain;
  const index_t system = get_group_id(0);
  a += system * shape.m * n;
  b += system * shape.m;
  const GroupPlace at = place_in_group();
  Block own[OWN_BLOCKS];
  sum_system(&at, own, y, (__local STORED*)shared, a, b, shape.m, n);
  solve_sums(own, shared, own_x, y, &is_plain, a, b, 0, r + system * n * n,
             x + system * shape.x_system, &shape, n);
}
#endif
