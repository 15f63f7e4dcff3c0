// SPDX-License-Identifier: Apache-2.0
// tall.cl: QR of tall matrices by one of two routes. If the Cholesky factor of A'A in float64 is
// accurate enough, R is that factor and Q = A R^-1. Else a tree of Householder factorizations gives
// R and Q. The device chooses the route of each matrix (LAPACK latsqr, getsqrhrt; Fukaya et al.,
// CholeskyQR; Demmel et al., TSQR; Benson et al., direct TSQR).
//
//   launches, in this order                                                  one group per
//   (with GRAM_BODY 3 after measure_columns and choose_scales)
//   sum_gram             A'A over one slab of rows                           slab
//   sum_slabs            A'A                                                 32 entries
//   factor_tall_gram     A'A = L D L'; R, R^-1 and the route                 matrix
//   or, if GRAM_BODY is 0:
//   measure_columns      the largest entry of each column in one slab        slab
//   choose_scales        the scale of each column; the route is the tree     matrix
//   then, for matrices on the tree, where further passes have left some:
//   factor_level l       factors blocks of MATRIX_ROWS rows. R becomes rows of  `span` blocks
//                        the next level, Q overwrites the block. Level 0
//                        reads A 2^-e. The last level has one block and
//                        stores R. One launch takes several levels if a
//                        group has all the blocks that it needs for them.
//   then, for all matrices:
//   find_signs           LAPACK's signs, if wanted, from the top rows of Q   matrix
//   form_q_gram          Q := A R^-1, not for matrices on the tree           rows
//   multiply_level l     Q_l := Q_l C for each block, C the rows of Q_(l+1)  block x 64 rows
//                        that belong to the block, l = last - 1, .., 0;
//                        for matrices on the tree
//
//        level 0      level 1     level 2
//      A0 = Q0 R0 \                           The last block of a level may have fewer rows than
//      A1 = Q1 R1 -- [R0 R1 R2] = Q R \       columns. Its R then has rows of zeros, and the
//      A2 = Q2 R2 /                    |      columns of Q for them are zero.
//      A3 = Q3 R3 \                    + R
//      A4 = Q4 R4 -- [R3 R4 R5] = Q R /
//      A5 = Q5 R5 /
//
// The guard is a theorem. The columns of A have norms a_j, u = 2^-53, and X is the computed R^-1.
// With t roundings of an entry at most, one after the other, E = R'R - A'A has |E_ij| <= t u a_i
// a_j to first order, since no partial sum is larger than a_i a_j: neither of rows, by Cauchy and
// Schwarz, nor in the elimination, where they are entries of Schur complements. Hence
//
//   ||X'E X||_F  <=  t u (sum_i a_i ||X(i, :)||)^2  <=  t u ||A||_F^2 ||X||_F^2.
//
// X R = I + F with |F| <= n u |X||R|, by elimination, so that A F X, which is the error of A X, is
// at most n u ||A||_F^2 ||X||_F^2; it counts twice in Q'Q. The product A X adds no more than n u.
// Columns are scaled by powers of two. `limit` is the largest ||A||_F^2 ||X||_F^2 that keeps Q,
// rounded to float32, within its bar (tall.cpp). It also bounds the error of R: ||A - QR|| with the
// best orthonormal Q is at most ||X'E||_F <= ||X'E X||_F ||R||_2.
//
// In pairs of floats (GRAM_BODY 3, wide.clh) columns are scaled to a largest entry of 1/2 .. 1, and
// t counts units of 2^-48. A sum of 16 rows loses at most 2^-36.8, in the roundings of what is
// summed beside the multiples of 2^-18 (tall_sums.clh): 136 of 2^-44, and 16 of 2^-44. All rows
// lose m 2^-40.8, which is 2^-30 a_i a_j at most where a_i^2 >= 2^-10 m. R^-1 and its product with
// A are of float32: a sum of eight terms, sums of these in a pair, and the roundings of X and Q are
// ten units of 2^-24, so that the product is off by 10 2^-24 ||A||_F ||X||_F at most.
//
// Defines, set in tall.cpp            range          meaning
//   STORED, REAL, SUB_GROUP_BODY                     common.clh
//   COLUMNS_OF_A                      1..128         n
//   GRAM_BODY                         0 .. 3         tall_sums.clh; 0 for float64
//   LANE_ROWS, LANE_COLUMNS, LANES_ACROSS,           tile.clh: MATRIX_ROWS >= 2 n
//   ROW_SPLITS, COLUMN_STEP
//   WANT_Q                            0, 1           1: Q is formed, or its first n rows for
//                                                    LAPACK's signs
//   GRAM_GROUP                        128, 256       tall_sums.clh; sum_gram
//   FACTOR_GROUP                      256            tall_square.clh; factor_tall_gram
//   PRODUCT_GROUP                     128, 256       tall_product.clh; form_q_gram
// Group size: LANES_ACROSS ROW_SPLITS for factor_level, 256 for kernels not in this table.
// Local memory: at most 36 KiB (tall.cpp computes it).
// Buffers per matrix: slab_sums slabs x n x n wide, slab_codes slabs x n int, inverse n x n
// wide, codes n int, routes 1 int, signs n REAL, tops n x n REAL, and for find_signs 2 x n x n
// wide; levels: the rows of all levels above the first, n wide_t per row.
#ifndef MATRICES
#define MATRICES 1
#endif
#ifndef LANE_ROWS
#define LANE_ROWS 16
#endif
#ifndef LANE_COLUMNS
#define LANE_COLUMNS 5
#endif
#ifndef LANES_ACROSS
#define LANES_ACROSS 8
#endif
#ifndef ROW_SPLITS
#define ROW_SPLITS 32
#endif
#include "gpu/common/tall_sums.clh"
#include "gpu/reflectors/tall/tall_plain_product.clh"
#if GRAM_BODY == 2
#include "gpu/reflectors/tall/tall_product.clh"
#endif
#include "gpu/common/tile.clh"

#ifndef WANT_Q
#define WANT_Q 1
#endif
#ifndef PRODUCT_GROUP
#define PRODUCT_GROUP 256
#endif

#define ROUTE_NOT_FINITE 0
#define ROUTE_GRAM ROUTE_FIRST_PASS
#define ROUTE_TREE ROUTE_REFLECTORS
// With A'A, factor_tall_gram stores R of a matrix that is not finite. Without it, the tree must do
// so, and store_root_r writes NaN.
#if GRAM_BODY
#define IS_ON_TREE(route) ((route) == ROUTE_TREE)
#else
#define IS_ON_TREE(route) 1
#endif
// The places where store_block_q stores a block of Q; they can be combined.
#define STORE_IN_LEVEL 1
#define STORE_IN_Q 2
#define STORE_TOP 4

#include "gpu/reflectors/tall/tall_gram.clh"

// ---- the tree

// slab_codes := the magnitude codes of the columns over one slab of rows.
__kernel IN_PLAIN_GROUPS void measure_columns(__global const STORED* a, __global int* slab_codes,
                                              FactorShape shape, SlabShape slabs) {
  __local int codes[N];
  index_t matrix;
  const int slab = split_group(slabs.count, &matrix), item = get_local_id(0);
  const int first = slab * slabs.rows, last = min(first + slabs.rows, shape.m);
  if (item < N) codes[item] = MAGNITUDE_ZERO;
  barrier(CLK_LOCAL_MEM_FENCE);
  STORED largest = 0, nan_if_not_finite = 0;
  const int lanes = PLAIN_GROUP / N, col = item % N;
  a += matrix * shape.m * N + col;
#pragma unroll 8
  for (int row = first + item / N; row < last && item < lanes * N; row += lanes) {
    const STORED x = a[(index_t)row * N];
    largest = fmax(largest, fabs(x));
    nan_if_not_finite = fma(x, (STORED)0, nan_if_not_finite);
  }
  if (item < lanes * N) atomic_max(&codes[col], magnitude_code(largest, nan_if_not_finite == 0));
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < N) slab_codes[(matrix * slabs.count + slab) * N + item] = codes[item];
}

// codes := the exponents by which the columns are scaled; routes and magnitudes := the route and
// the code of the matrix. One group per matrix.
__kernel IN_PLAIN_GROUPS void choose_scales(__global const int* slab_codes, __global int* codes,
                                            __global int* routes, __global REAL* signs,
                                            __global int* magnitudes, SlabShape slabs) {
  __local int code, of_columns[N];
  const index_t matrix = get_group_id(0), count = (index_t)slabs.count * N;
  const int item = get_local_id(0);
  if (item == 0) code = MAGNITUDE_ZERO;
  if (item < N) of_columns[item] = MAGNITUDE_ZERO;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (index_t i = item; i < count; i += PLAIN_GROUP) {
    atomic_max(&of_columns[(int)i % N], slab_codes[matrix * count + i]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < N) {
    atomic_max(&code, of_columns[item]);
    codes[matrix * N + item] = scale_of(of_columns[item]);
    signs[matrix * N + item] = 1;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) {
    magnitudes[matrix] = code;
    routes[matrix] = code == MAGNITUDE_NON_FINITE ? ROUTE_NOT_FINITE : ROUTE_TREE;
  }
}

// tile := Q of the block. Its columns >= k are zero; a block with fewer rows than columns has them.
INLINE void form_q_tile(const Lane* at, LaneTile tile, int k) {
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    if (at->p + c * LANES_ACROSS >= k) {
#pragma unroll
      for (int i = 0; i < LANE_ROWS; ++i) tile[c][i] = 0;
    }
  }
  reflect_tile(at, tile, k);
}

// tile := the rows of a block, zeros around them: of A 2^-e on the first level, else of `levels`.
INLINE void load_tree_block(const Lane* at, LaneTile tile, __global const STORED* a,
                            __global const wide_t* levels, __global const int* codes, int rows,
                            bool is_first) {
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    const int col = at->p + c * LANES_ACROSS;
    const int e = col < N && is_first ? -codes[col] : 0;
    const REAL half_scale = pow2(e / 2), rest = pow2(e - e / 2);
#pragma unroll
    for (int i = 0; i < LANE_ROWS; ++i) {
      const int row = i * ROW_SPLITS + at->s, index = row * N + col;
      REAL x = 0;
      if (row < rows && col < N) x = is_first ? (REAL)a[index] : (REAL)levels[index];
      tile[c][i] = x * half_scale * rest;
    }
  }
}

// next := R with zeros below the diagonal, as n rows of the next level.
INLINE void store_block_r(const Lane* at, LaneTile tile, __global wide_t* next) {
#pragma unroll
  for (int i = 0; i < LANE_ROWS; ++i) {
    const int row = i * ROW_SPLITS + at->s;
#pragma unroll
    for (int c = 0; c < LANE_COLUMNS; ++c) {
      const int col = at->p + c * LANES_ACROSS;
      if (row < N && col < N) next[row * N + col] = row <= col ? (wide_t)tile[c][i] : (wide_t)0;
    }
  }
}

// r := R of A with a diagonal >= 0, scaled back by 2^e; NaN if A is not finite. The + 0 turns -0
// into +0.
INLINE void store_root_r(const Lane* at, LaneTile tile, __global const int* codes,
                         __global REAL* signs, __global STORED* r, bool is_finite) {
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    const int col = at->p + c * LANES_ACROSS;
    if (col < N) {
      const int e = codes[col];
#pragma unroll
      for (int i = 0; i < LANE_ROWS; ++i) {
        const int row = i * ROW_SPLITS + at->s;
        if (row < N) {
          const REAL x = row <= col ? scale_by(tile[c][i] * at->signs[row], e) + 0 : (REAL)0;
          r[row * N + col] = is_finite ? (STORED)x : (STORED)NAN;
        }
      }
      if (at->s == 0) signs[col] = at->signs[col];
    }
  }
}

// Stores Q of the block. In a level it overwrites the rows of the block. STORE_TOP also copies the
// top n rows of the first block of A to tops, from which find_signs takes the signs.
INLINE void store_block_q(const Lane* at, LaneTile tile, __global STORED* q,
                          __global wide_t* levels, __global REAL* tops, int rows, int where) {
#pragma unroll
  for (int i = 0; i < LANE_ROWS; ++i) {
    const int row = i * ROW_SPLITS + at->s;
#pragma unroll
    for (int c = 0; c < LANE_COLUMNS; ++c) {
      const int col = at->p + c * LANES_ACROSS, index = row * N + col;
      if (row < rows && col < N) {
        if (where & STORE_IN_LEVEL) levels[index] = (wide_t)tile[c][i];
        if (where & STORE_IN_Q) q[index] = (STORED)tile[c][i];
        if ((where & STORE_TOP) && row < N) tops[index] = tile[c][i];
      }
    }
  }
}

// Factors `span` blocks of a level in each group, then the blocks of the next levels that consist
// of their R factors, `levels` levels in all.
__kernel __attribute__((reqd_work_group_size(LANES_GROUP, 1, 1))) void factor_level(
    __global const STORED* a, __global STORED* q, __global wide_t* levels,
    __global const int* codes, __global const int* routes, __global REAL* signs,
    __global REAL* tops, __global STORED* r, FactorShape shape, LevelShape first_level) {
  __local real4 shown[SHOWN_STRIDE / 4];
  __local REAL weights[MATRIX_COLUMNS], heads[MATRIX_COLUMNS], own_signs[MATRIX_COLUMNS], alphas[2],
      scratch[SCRATCH];
  // A work-item changes its own copy: PoCL keeps one argument for all work-items.
  LevelShape level = first_level;
  index_t matrix;
  const int part = split_group(level.groups, &matrix), lane = get_local_id(0);
  const Lane at = {lane,
                   lane / ROW_SPLITS,
                   lane % ROW_SPLITS,
                   (__local REAL*)shown,
                   weights,
                   heads,
                   own_signs,
                   alphas,
                   scratch,
                   0,
                   0};
  const int route = routes[matrix];
  const bool takes_part = IS_ON_TREE(route);
  a += matrix * shape.m * N;
  q += matrix * shape.m * shape.q_cols;
  levels += matrix * level.entries;
  codes += matrix * N;
  LaneTile tile;
#pragma unroll 1
  for (int l = 0; l < level.levels; ++l) {
    const int blocks = takes_part ? (level.rows + MATRIX_ROWS - 1) / MATRIX_ROWS : 0;
    const int last = min(blocks, (part + 1) * level.span);
#pragma unroll 1
    for (int block = part * level.span; block < last; ++block) {
      const int rows = min(MATRIX_ROWS, level.rows - block * MATRIX_ROWS), k = min(N, rows);
      const index_t first = (index_t)block * MATRIX_ROWS * N;
      for (int i = lane; i < MATRIX_COLUMNS; i += LANES_GROUP) {
        heads[i] = 0;
        own_signs[i] = 1;
      }
      sync_tile();
      load_tree_block(&at, tile, a + first, levels + level.offset + first, codes, rows,
                      level.is_first);
      factor_lanes(&at, tile, k);
      sync_tile();
      if (level.rows <= MATRIX_ROWS) {
        store_root_r(&at, tile, codes, signs + matrix * N, r + matrix * N * N, route == ROUTE_TREE);
      } else {
        store_block_r(&at, tile, levels + level.next + (index_t)block * N * N);
      }
      if (WANT_Q) {
        form_q_tile(&at, tile, k);
        const int where = (!level.is_first    ? STORE_IN_LEVEL
                           : shape.q_cols > 0 ? STORE_IN_Q
                                              : 0) |
                          (level.is_first && block == 0 && !shape.positive ? STORE_TOP : 0);
        store_block_q(&at, tile, q + first, levels + level.offset + first, tops + matrix * N * N,
                      rows, where);
      }
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    level.span = (level.span + MATRIX_ROWS / N - 1) / (MATRIX_ROWS / N);
    level.rows = blocks * N;
    level.offset = level.next;
    level.next += (index_t)level.rows * N;
    level.is_first = 0;
  }
}

#include "gpu/reflectors/tall/tall_q.clh"
