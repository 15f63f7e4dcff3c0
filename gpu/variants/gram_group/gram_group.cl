// SPDX-License-Identifier: Apache-2.0
// gram_group.cl: QR of a batch of matrices with 65 to 160 columns, or of complex ones with at most
// 80, by Gram matrices in float64, in one pass or two (CholeskyQR2), for devices that multiply
// blocks of float64 at full speed. A group keeps a matrix from A'A to Q and R; gram_twice.cl has a
// kernel for each step.
//
//   pass 0:  A'A = L1 L1',    Q1 = A L1'^-1        pass 1:  Q1'Q1 = L2 L2',  Q = Q1 L2'^-1
//   R = (L1 L2)'
//
//   sum      G = X'X in the registers of the group, X = A or Q1. The lower triangle has BLOCKS rows
//            of 16 x 16 blocks, two for each warp (group_blocks.clh)
//   factor   G -> L, column by column of blocks through local memory; L goes to the slot. In the
//            second pass L2 follows by its series if G is close to I (departure.clh)
//   divide   Q1 or Q, by substitution. Each warp takes strips of 16 rows
//   R        block by block from both L
//
// The guard is a measurement. Q1 is stored before Q1'Q1 is computed from it, and so d =
// ||Q1'Q1 - I||_F is measured. The error of d is at most h 2^-53 (sqrt(n) + d), to first order. In
// float32 h = m, which is proved: each of m steps adds an error of at most 2^-53 times the entries
// of a partial sum P, and the norm of P is at most that of Q1'Q1, of which P is a part. In float64
// that would be more than the bar: there h = max(8, 2 sqrt(m)) is the hypothesis of departure.clh.
// The sums on the diagonal, whose errors have one sign where rows repeat, have parts of 64 rows.
// Hence:
//   - d is at most 0.9 of the bar less this error: Q1 and R1 = L1' are final;
//   - d is at most 1/4: the second pass, with the theorem of gram_twice.cl. It also holds in
//     float32, where Q1 and Q are rounded when they are stored: ||A - Q1 R1||_F <= (2^-24 sqrt(n)
//     + c n 2^-53) ||A||_F, and likewise for Q1 - Q R2;
//   - otherwise, or if the square of a column's norm is outside LEAST_SQUARE .. MOST_SQUARE,
//     Householder reflectors factor the matrix again (`small` or `blocked`).
//
// Local memory: stages of rows of X; or two columns of blocks of G and room for a pivot; or two
// columns of L. Slot: L1, L2 and X' = L^-1 of the pivots, in blocks of 16 x 16. A group takes one
// matrix after another.
//
// Defines, set in gram_group.cpp            range      meaning
//   SUB_GROUP_BODY, MMA                                common.clh, mma.clh
//   VECTOR                                  1, 2       copy.clh; divides n
//   BLOCKS                                  1..10      blocks of 16 columns
//   LAST_HALVES                             1, 2       halves of 8 columns of the last of them
//   SPARE                                   0, 1       group_blocks.clh
//   ELEMENT_PARTS                           1, 2       complex_blocks.clh
//   STORED                                             common.clh
// A is m x n, m >= n. Signs of R's diagonal: positive. Where A is complex, n counts the columns of
// its real form, m >= n / 2, and G and L are the real forms of the complex ones: all of the above
// holds for the real form of A, and d is sqrt(2) times the complex one.
#include "gpu/common/common.clh"

#ifndef BLOCKS
#define BLOCKS 8
#endif
#ifndef LAST_HALVES
#define LAST_HALVES 2
#endif
#include "gpu/common/departure.clh"
#include "gpu/common/entries.clh"
#include "gpu/common/group_blocks.clh"

// Halves of the columns of block column c that exist.
#define HALVES_OF(c) ((c) == BLOCKS - 1 ? LAST_HALVES : 2)

#define PIVOT_AT (COLUMN_APART + BLOCKS * BLOCK_ROOM)
// Two columns of L in local memory with X' of their pivot, and columns whose rows of 8 are apart so
// that a warp reads a transposed block from different banks.
#define DIVISOR_ROOM ((BLOCKS + 1) * 256)
#define TURNED_LD (BLOCKS < 10 ? 10 : 8)
#define TURNED_ROOM (BLOCKS * 32 * TURNED_LD)
#define SHARED_ROOM LARGER(PIVOT_AT + PIVOT_ROOM, 2 * LARGER(DIVISOR_ROOM, TURNED_ROOM))

// ---- a group

// The sum and the largest of x over the group. room: an entry per warp.
INLINE double sum_of_all_warps(const GroupPlace* at, double x, __local double* room) {
  x = sum_of_warp(x);
  if (at->warp.lane == 0) room[at->index] = x;
  sync_items(CLK_LOCAL_MEM_FENCE);
  double sum = 0;
  for (int w = 0; w < WARPS; ++w) sum += room[w];
  sync_items(CLK_LOCAL_MEM_FENCE);
  return sum;
}
INLINE int largest_of_group(const GroupPlace* at, int x, __local double* room) {
#if MMA
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x = max(x, shuffle_xor_word(x, offset));
#endif
  if (at->warp.lane == 0) room[at->index] = x;
  sync_items(CLK_LOCAL_MEM_FENCE);
  for (int w = 0; w < WARPS; ++w) x = max(x, (int)room[w]);
  sync_items(CLK_LOCAL_MEM_FENCE);
  return x;
}

// ---- the slot

#define SLOT_FACTOR (BLOCKS * (BLOCKS + 1) / 2 * 256)
#define SLOT_ENTRIES (2 * SLOT_FACTOR + BLOCKS * 256)

// Block (row, col) of a factor, whose columns of blocks follow one another.
INLINE __global double* factor_at(__global double* factor, int row, int col) {
  return factor + (col * BLOCKS - col * (col + 1) / 2 + row) * 256;
}
// A block is stored as four squares of 8 x 8, one after another: a warp reads adjacent entries.
#define SLOT_AT(i, j) (((i) / 8 * 2 + (j) / 8) * 64 + (i) % 8 * 8 + (j) % 8)
// Gives the place of word w, and the row of 8 and the column of word w of the transposed block.
#if MMA
#define WORD_PLACE(at, w) \
  (((w) % 2 * 2 + (w) / 4) * 64 + (at)->g * 8 + 2 * (at)->t + (w) / 2 % 2)
#define TURNED_ROW(at, w) (((w) / 4 * 2 + (w) % 2) * 8 + 2 * (at)->t + (w) / 2 % 2)
#define TURNED_COL(at, w) ((at)->g)
#else
#define WORD_PLACE(at, w) SLOT_AT((w) % 16, (w) / 16)
#define TURNED_ROW(at, w) (SLOT_AT((w) / 16, (w) % 16) / 8)
#define TURNED_COL(at, w) ((w) % 8)
#endif
INLINE void save_slot_block(const Warp* at, const Block x, __global double* to) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; w += w % WORD_ROWS == WORD_ROWS - 1 ? WORD_ROWS + 1 : 1) {
    *(__global double2*)(to + WORD_PLACE(at, w)) = (double2)(x[w], x[w + WORD_ROWS]);
  }
}
INLINE void load_slot_block(const Warp* at, Block x, __global const double* from) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; w += w % WORD_ROWS == WORD_ROWS - 1 ? WORD_ROWS + 1 : 1) {
    const double2 pair = *(__global const double2*)(from + WORD_PLACE(at, w));
    x[w] = pair.x;
    x[w + WORD_ROWS] = pair.y;
  }
}
// Loads a block from a copy in local memory.
INLINE void load_copied_block(const Warp* at, Block x, __local const double* from) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; w += w % WORD_ROWS == WORD_ROWS - 1 ? WORD_ROWS + 1 : 1) {
    const double2 pair = *(__local const double2*)(from + WORD_PLACE(at, w));
    x[w] = pair.x;
    x[w + WORD_ROWS] = pair.y;
  }
}
// A transposed block, whose rows of 8 are TURNED_LD apart.
INLINE void load_turned_block(const Warp* at, Block x, __local const double* from) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    x[w] = from[TURNED_ROW(at, w) * TURNED_LD + TURNED_COL(at, w)];
  }
}

// ---- sum

// Copies rows first .. of X, with zeros past the last row and column.
INLINE void copy_group_rows(__local STORED* to, __global const STORED* x, FactorShape shape,
                            int first, int item) {
#pragma unroll
  for (int u = 0; u < GROUP_STAGE_ROWS * PADDED_COLUMNS / 2; u += GROUP_SIZE) {
    const int i = u + item, row = i / (PADDED_COLUMNS / 2), col = i % (PADDED_COLUMNS / 2) * 2;
    if (u + GROUP_SIZE <= GROUP_STAGE_ROWS * PADDED_COLUMNS / 2 ||
        i < GROUP_STAGE_ROWS * PADDED_COLUMNS / 2) {
      const bool is_row = first + row < shape.m;
      __global const STORED* from = x + (first + row) * shape.n + col;
      __local STORED* at = to + row * GROUP_STAGE_LD + col;
      const bool exists = is_row && col < shape.n;
#if VECTOR >= 2
      copy_pair(at, exists ? from : x, exists);
#else
      const bool is_next = is_row && col + 1 < shape.n;
      copy_one(at, exists ? from : x, exists);
      copy_one(at + 1, is_next ? from + 1 : x, is_next);
#endif
    }
  }
}

// The upper word of |x|, whose order is that of the values, with Inf and NaN last.
INLINE int size_of_entry(double x) { return as_int2(x).y & 0x7fffffff; }

// own += X'X of a stage. *largest: of the sizes of entries.
INLINE void add_group_rows(const GroupPlace* at, Block own[OWN_BLOCKS], __local const STORED* stage,
                           int* largest) {
  __local const STORED* from = stage + at->warp.t * GROUP_STAGE_LD + at->warp.g;
#pragma unroll
  for (int k = 0; k < GROUP_STAGE_ROWS; k += 4) {
    Quarter high, low;
    load_operand(high, from + 16 * at->high, k);
    load_operand(low, from + 16 * max(at->low, 0), k);
#pragma unroll
    for (int w = 0; w < QUARTER_WORDS; ++w) {
      *largest = max(*largest, max(size_of_entry(high[w]), size_of_entry(low[w])));
    }
    add_row_products(at, own, high, low, from, k);
  }
}

// Float64: the diagonal is summed in parts of so many stages. The parts are added behind the stages
// in local memory.
#define PART_STAGES (DIAGONAL_PART / GROUP_STAGE_ROWS)

// Ends a part of the diagonal, or adds all parts at the end (add_diagonal_part).
INLINE void add_part(const GroupPlace* at, Block own[OWN_BLOCKS], __local double* sums,
                     bool is_first, bool is_end) {
#pragma unroll
  for (int s = FIRST_DIAGONAL; s < OWN_BLOCKS; ++s) {
    if (OWN_ROW(s, at) == OWN_COL(s, at)) {
      add_diagonal_part(&at->warp, own[s], sums + 16 * OWN_ROW(s, at), is_first, is_end);
    }
  }
}

// own := X'X, with ones on the diagonal past column n.
INLINE void sum_group_rows(const GroupPlace* at, Block own[OWN_BLOCKS], __local STORED* stages,
                           __global const STORED* x, FactorShape shape, int* largest) {
  const int steps = (shape.m + GROUP_STAGE_ROWS - 1) / GROUP_STAGE_ROWS;
  const bool has_parts = sizeof(STORED) == 8 && steps > PART_STAGES;
  __local double* parts = (__local double*)(stages + GROUP_STAGES * GROUP_STAGE_ENTRIES);
#pragma unroll
  for (int s = 0; s < OWN_BLOCKS; ++s) clear_block(own[s]);
#pragma unroll 1
  for (int step = 1 - GROUP_STAGES; step < steps; ++step) {
    const int begun = step + GROUP_STAGES - 1;
    wait_for_stage(GROUP_STAGES - 2);
    sync_items(CLK_LOCAL_MEM_FENCE);
    if (begun < steps) {
      copy_group_rows(stages + begun % GROUP_STAGES * GROUP_STAGE_ENTRIES, x, shape,
                      begun * GROUP_STAGE_ROWS, at->item);
    }
    commit_copies();
    if (step >= 0)
      add_group_rows(at, own, stages + step % GROUP_STAGES * GROUP_STAGE_ENTRIES, largest);
    if (has_parts && step % PART_STAGES == PART_STAGES - 1) {
      add_part(at, own, parts, step == PART_STAGES - 1, false);
    }
  }
  if (has_parts) add_part(at, own, parts, false, true);
  wait_for_copies();
#if ELEMENT_PARTS == 2
#pragma unroll
  for (int s = 0; s < OWN_BLOCKS; ++s) fold_block(&at->warp, own[s], 1);
#endif
  fill_past_last_column(at, own, shape.n, 1);
}

// Whether a column of X has a squared norm outside the range.
INLINE bool has_outside(const GroupPlace* at, Block own[OWN_BLOCKS]) {
  bool is_outside = false;
#pragma unroll
  for (int s = FIRST_DIAGONAL; s < OWN_BLOCKS; ++s) {
    if (OWN_ROW(s, at) == OWN_COL(s, at)) {
#pragma unroll
      for (int w = 0; w < BLOCK_WORDS; ++w) {
        const bool is_diagonal = BLOCK_ROW(w, at->warp.g) == BLOCK_COL(w, at->warp.t);
        is_outside |= is_diagonal && !(own[s][w] >= LEAST_SQUARE && own[s][w] <= MOST_SQUARE);
      }
    }
  }
  return is_outside;
}

// A work-item's part of ||G - I||_F^2.
INLINE double departure_of_own(const GroupPlace* at, Block own[OWN_BLOCKS]) {
  double twice = 0, once = 0;
#pragma unroll
  for (int s = 0; s < OWN_BLOCKS; ++s) {
    const bool is_diagonal = OWN_ROW(s, at) == OWN_COL(s, at);
    double sum = 0;
#pragma unroll
    for (int w = 0; w < BLOCK_WORDS; ++w) {
      const bool is_one = is_diagonal && BLOCK_ROW(w, at->warp.g) == BLOCK_COL(w, at->warp.t);
      const double x = is_one ? own[s][w] - 1 : own[s][w];
      sum = fma(x, x, sum);
    }
    if (is_diagonal) once += sum;
    if (!is_diagonal) twice += sum;
  }
  return fma(2.0, twice, once);
}

// ---- factor

// Say whether divisions by a pivot need no correction: divisions in G, and divisions of Q, whose
// bar in float32 is 2^29 times as large (pivot_block.clh).
#define PLAIN_IN_G 1
#define PLAIN_IN_Q 2
#define BAR_UNITS (sizeof(STORED) == 4 ? 0x1p29 : 1.0)
INLINE int plain_of(double squares, double most) {
  return (squares <= most + 12 ? PLAIN_IN_G : 0) +
         (squares <= most * BAR_UNITS * BAR_UNITS + 12 ? PLAIN_IN_Q : 0);
}

// Replaces the pivot -G in local memory by X. L goes to `factor` in local memory and to `to`, and
// X' to `inverse`, both in the slot. Returns ||D X||_F^2 (pivot_block.clh).
INLINE double factor_group_pivot(const Warp* at, __local double* pivot, __local double* factor,
                                 __global double* to, __global double* inverse) {
  const Warp quads = {at->lane, row_of_lane(at->lane), at->t, factor};
  Block block, x;
  const double squares = factor_negative_pivot(&quads, block, x, pivot, factor);
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const int i = QUAD_ROW(w, quads.g), j = QUAD_COL(w, quads.t);
    to[SLOT_AT(i, j)] = block[w];
    inverse[SLOT_AT(j, i)] = x[w];
  }
  sync_warp();
  return squares;
}

// Divides column b of -G to get L. A warp takes every DIVIDERS-th row from `first` on.
// So many warps divide: all but the one that has the pivot, unless there is no other warp.
#define DIVIDERS LARGER(WARPS - 1, 1)
INLINE void divide_column(const GroupPlace* at, __local double* column,
                          __local const double* factor, __local const int* plain,
                          __global double* factors, int b, int first) {
#pragma unroll 1
  for (int i = first; i < BLOCKS; i += DIVIDERS) {
    Block s, z;
    get_block(&at->warp, s, column + i * BLOCK_ROOM);
    flip_block(s);
    divide_block(&at->warp, z, s, column + b * BLOCK_ROOM, factor,
                 agreed((plain[b] & PLAIN_IN_G) != 0));
#if ELEMENT_PARTS == 2
    fold_block(&at->warp, z, 0.5);
#endif
    sync_warp();
    put_block(&at->warp, z, column + i * BLOCK_ROOM);
    save_slot_block(&at->warp, z, factor_at(factors, i, b));
  }
}

// own: G = L L' -> the slot's `factors` and `inverses`, for `blocks` blocks. own becomes -G, to
// which products are added. plain[b]: whether divisions by pivot b need no correction.
INLINE void factor_own(const GroupPlace* place, Block own[OWN_BLOCKS], __local double* shared,
                       __local int* plain, __global double* factors, __global double* inverses,
                       int blocks, double most) {
  __local double* factor = shared + PIVOT_AT;
  const bool is_alone = WARPS == 1;
#pragma unroll
  for (int s = 0; s < OWN_BLOCKS; ++s) flip_block(own[s]);
#pragma unroll 1
  for (int b = 0; b < blocks; ++b) {
    __local double* column = shared + b % 2 * COLUMN_APART;
    __local const double* before = shared + (b + 1) % 2 * COLUMN_APART;
    const int pivot = b < WARPS - BLOCKS % 2 ? b + BLOCKS % 2 : BLOCKS - 1 - b;
    // First the pivot and the blocks below it. While the other warps divide those by the pivot, its
    // warp updates what is right of them, which the others have done during the pivot.
#pragma unroll 1
    for (int turn = 0; turn < 3; ++turn) {
#if MMA  // PoCL 3.1 fails to build some sizes with a barrier in a branch
      if (turn != 1)
#endif
        sync_items(CLK_LOCAL_MEM_FENCE);
      const GroupPlace here = place_in_group();
      const GroupPlace* at = &here;
      const bool is_pivot = at->index == pivot;
#pragma unroll
      for (int s = 0; s < OWN_BLOCKS; ++s) {
        const int i = OWN_ROW(s, at), j = OWN_COL(s, at);
        if (j >= b && turn == (i == b ? 0 : is_pivot && j > b ? 2 : 1)) {
          if (b > 0) add_to_own(&at->warp, own[s], before, i, j);
          if (j == b) put_block(&at->warp, own[s], column + i * BLOCK_ROOM);
        }
      }
      if (turn == 0 && is_pivot) {
        sync_warp();
        const double squares =
            factor_group_pivot(&at->warp, column + b * BLOCK_ROOM, factor,
                               factor_at(factors, b, b), inverses + b * 256);
        if (at->warp.lane == 0) plain[b] = plain_of(squares, most);
      }
      if (turn == 2 && (!is_pivot || is_alone)) {
        divide_column(at, column, factor, plain, factors, b,
                      b + 1 + at->index - (at->index > pivot));
      }
    }
  }
}

INLINE void take_series_of_pivot(const Warp* at, __global double* pivot, __global double* inverse) {
  Block l, x;
  load_slot_block(at, l, pivot);
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const int i = BLOCK_ROW(w, at->g), j = BLOCK_COL(w, at->t);
    if (i < j) l[w] = 0;
    if (i == j) l[w] = fma(0.5, l[w] - 1, 1.0);
    x[w] = i == j ? 2 - l[w] : -l[w];
  }
  save_slot_block(at, l, pivot);
  save_slot_block(at, x, inverse);
}

// G = I + F -> L = I + the lower triangle of F with half of its diagonal (departure.clh), and
// inverses of the pivots with an error of order ||F||^2, which the correction of a division takes
// to ||F||^4.
INLINE void take_own_series(const GroupPlace* at, Block own[OWN_BLOCKS], __global double* factors,
                            __global double* inverses) {
#pragma unroll
  for (int s = 0; s < OWN_BLOCKS; ++s) {
    save_slot_block(&at->warp, own[s], factor_at(factors, OWN_ROW(s, at), OWN_COL(s, at)));
  }
  sync_warp();
#pragma unroll 1
  for (int i = 0; i < 2; ++i) {
    const int row = i == 0 ? at->high : at->low;
    if (row >= 0) {
      take_series_of_pivot(&at->warp, factor_at(factors, row, row), inverses + 256 * row);
    }
  }
}

// ---- divide

// Copies X' of pivot p and column p of L.
INLINE void copy_divisor_column(__local double* to, __global double* factors,
                                __global const double* inverses, int p, int item) {
  __global const double* column = factor_at(factors, p, p);
  for (int i = 2 * item; i < 256; i += 2 * GROUP_SIZE) copy_double2(to + i, inverses + p * 256 + i);
  for (int i = 2 * item; i < (BLOCKS - p) * 256; i += 2 * GROUP_SIZE) {
    copy_double2(to + 256 + i, column + i);
  }
}

// Replaces 16 rows S of each warp by Z with Z L' = S.
INLINE void divide_strips(const GroupPlace* at, Block s[BLOCKS], __local double* columns,
                          __global double* factors, __global const double* inverses,
                          __local const int* plain) {
  copy_divisor_column(columns, factors, inverses, 0, at->item);
  commit_copies();
#pragma unroll
  for (int p = 0; p < BLOCKS; ++p) {
    __local const double* column = columns + p % 2 * DIVISOR_ROOM;
    Block z, y;
    wait_for_copies();
    sync_items(CLK_LOCAL_MEM_FENCE);
    if (p + 1 < BLOCKS) {
      copy_divisor_column(columns + (p + 1) % 2 * DIVISOR_ROOM, factors, inverses, p + 1,
                          at->item);
    }
    commit_copies();
    load_copied_block(&at->warp, y, column);
    clear_block(z);
    multiply_lower_quads(z, s[p], y, 2 * HALVES_OF(p), HALVES_OF(p));
    if (!agreed((plain[p] & PLAIN_IN_Q) != 0)) {
      Block l;
      flip_block(z);
      load_copied_block(&at->warp, l, column + 256);
      multiply_quads(s[p], z, l, 2 * HALVES_OF(p), HALVES_OF(p));
      flip_block(z);
      multiply_lower_quads(z, s[p], y, 2 * HALVES_OF(p), HALVES_OF(p));
    }
    copy_block(s[p], z);
    flip_block(z);
#pragma unroll
    for (int q = p + 1; q < BLOCKS; ++q) {
      load_copied_block(&at->warp, y, column + (q - p + 1) * 256);
      multiply_quads(s[q], z, y, 4, HALVES_OF(q));
    }
  }
  sync_items(CLK_LOCAL_MEM_FENCE);
}

// q := x L'^-1; q may be x.
INLINE void divide_matrix(const GroupPlace* at, __global const STORED* x, __global STORED* q,
                          FactorShape shape, __local double* columns, __global double* factors,
                          __global const double* inverses, __local const int* plain) {
#pragma unroll 1
  for (int first = 0; first < shape.m; first += 16 * WARPS) {
    const int row = first + 16 * at->index;
    Block s[BLOCKS];
#pragma unroll
    for (int k = 0; k < BLOCKS; ++k) load_entries_of(&at->warp, s[k], x, shape, row, 16 * k);
    divide_strips(at, s, columns, factors, inverses, plain);
#pragma unroll
    for (int k = 0; k < BLOCKS; ++k) store_entries_of(&at->warp, s[k], q, shape, row, 16 * k);
  }
}

// ---- R

// R(b, c) := sum' for block (c, b), with zeros below the diagonal of R. A complex row of R is the
// first of its two real ones.
INLINE void store_block_of_r(const Warp* at, const Block sum, __global STORED* r, int n, int c,
                             int b) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const int row = 16 * b + BLOCK_COL(w, at->t), col = 16 * c + BLOCK_ROW(w, at->g);
    if (row < n && col < n && row % ELEMENT_PARTS == 0)
      r[row / ELEMENT_PARTS * n + col] = row <= col ? (STORED)sum[w] : (STORED)0;
  }
}

INLINE void copy_turned_column(__local double* to, __global double* factors, int b, int item) {
  __global const double* column = factor_at(factors, b, b);
  for (int i = item; i < (BLOCKS - b) * 128; i += GROUP_SIZE) {
    copy_double2(to + i / 4 * TURNED_LD + i % 4 * 2, column + 2 * i);
  }
}

// Row b of R, whose block c is the sum over b <= k <= c of L1(c, k) L2(k, b), transposed; second:
// column b of L2. If the first pass is final it is L1(c, b).
INLINE void form_row_of_r(const GroupPlace* at, __global double* first,
                          __local const double* second, bool is_final, __global STORED* r, int n,
                          int b) {
#pragma unroll 1
  for (int c = BLOCKS - 1 - at->index; c >= b; c -= WARPS) {
    Block sum, s, t, next;
    clear_block(sum);
    load_slot_block(&at->warp, next, factor_at(first, c, b));
    if (is_final) copy_block(sum, next);
#pragma unroll 1
    for (int k = b; k <= c && !is_final; ++k) {
      copy_block(s, next);
      load_slot_block(&at->warp, next, factor_at(first, c, min(k + 1, c)));
      load_turned_block(&at->warp, t, second + (k - b) * 32 * TURNED_LD);
      multiply_quads(sum, s, t, 4, 2);
    }
    store_block_of_r(&at->warp, sum, r, n, c, b);
  }
}

// R := (L1 L2)', or L1'.
INLINE void form_r(const GroupPlace* at, __local double* columns, __global double* first,
                   __global double* second, bool is_final, __global STORED* r, int n) {
  copy_turned_column(columns, second, 0, at->item);
  commit_copies();
#pragma unroll 1
  for (int i = 16 / ELEMENT_PARTS + at->index; i < n / ELEMENT_PARTS; i += WARPS) {
    const int end = i * ELEMENT_PARTS & ~15;
    for (int col = at->warp.lane; col < end; col += WARP_LANES) r[i * n + col] = 0;
  }
#pragma unroll 1
  for (int b = 0; b < BLOCKS; ++b) {
    wait_for_copies();
    sync_items(CLK_LOCAL_MEM_FENCE);
    if (b + 1 < BLOCKS) {
      copy_turned_column(columns + (b + 1) % 2 * TURNED_ROOM, second, b + 1, at->item);
    }
    commit_copies();
    form_row_of_r(at, first, columns + b % 2 * TURNED_ROOM, is_final, r, n, b);
  }
}

// ---- factor_group

INLINE void store_group_nan(__global STORED* to, int count, int item) {
  for (int i = item; i < count; i += GROUP_SIZE) to[i] = NAN;
}

// Groups: any number; each takes one matrix after another.
__kernel SIZE_OF_GROUP void factor_group(
    __global const STORED* a, __global STORED* q, __global STORED* r, __global int* magnitudes,
    __global int* routes, __global double* work, FactorShape shape, double enough, int groups) {
  __local double shared[SHARED_ROOM] __attribute__((aligned(16)));
  __local double sums[WARPS];
  __local int plain[BLOCKS];
  const int n = shape.n, group = get_group_id(0);
  __global double* const slot = work + group * (index_t)SLOT_ENTRIES;
  __global double* const inverses = slot + 2 * SLOT_FACTOR;
  const double most = MOST_PLAIN(shape.m, n / ELEMENT_PARTS);
#pragma unroll 1
  for (index_t matrix = group; matrix < shape.count; matrix += groups) {
    __global STORED* const made = q + matrix * shape.m * n;
    __global const STORED* x = a + matrix * shape.m * n;
    bool is_finite = true, is_good = true, is_final = false;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {
      const GroupPlace at = place_in_group();
      __global double* const factors = slot + pass * SLOT_FACTOR;
      Block own[OWN_BLOCKS];
      int largest = 0;
      sum_group_rows(&at, own, (__local STORED*)shared, x, shape, &largest);
      const double departure =
          sum_of_all_warps(&at, pass == 0 ? 0.0 : departure_of_own(&at, own), sums);
      const int outside = pass == 0 && has_outside(&at, own);
      // Inf, as a size, is larger than all finite numbers.
      largest = largest_of_group(&at, largest, sums);
      if (pass == 0) {
        is_finite = largest < 0x7ff00000;
        if (at.item == 0) {
          magnitudes[matrix] = magnitude_code((STORED)as_double((int2)(0, largest)), is_finite);
        }
        is_good = largest_of_group(&at, outside, sums) == 0;
      } else {
        is_good = is_good && departure <= MOST_DEPARTURE;
      }
      is_final = pass == 1 && departure <= enough;
      const bool is_near = pass == 1 && departure <= BAR_UNITS * SERIES_DEPARTURE(shape.m, n);
      if (is_near && !is_final) {
        take_own_series(&at, own, factors, inverses);
        for (int b = at.item; b < BLOCKS; b += GROUP_SIZE) plain[b] = plain_of(16, most);
      }
      factor_own(&at, own, shared, plain, factors, inverses, is_near || is_final ? 0 : BLOCKS,
                 most);
      sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      FactorShape rest = shape;
      rest.m = is_final ? 0 : shape.m;
      divide_matrix(&at, x, made, rest, shared, factors, inverses, plain);
      sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      x = made;
    }
    const GroupPlace at = place_in_group();
    __global STORED* const made_r = r + matrix * n * (n / ELEMENT_PARTS);
    form_r(&at, shared, slot, slot + SLOT_FACTOR, is_final, made_r, n);
    if (at.item == 0) {
      const int route = is_final ? ROUTE_FIRST_PASS : ROUTE_SECOND_PASS;
      routes[matrix] = is_finite && !is_good ? ROUTE_REFLECTORS : route;
    }
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (!is_finite) {
      store_group_nan(made_r, n * (n / ELEMENT_PARTS), at.item);
      store_group_nan(made, shape.m * n, at.item);
    }
  }
}
