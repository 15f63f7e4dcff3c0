// SPDX-License-Identifier: Apache-2.0
// small.cl: Householder QR of a batch of small matrices, each wholly in the registers of a few
// lanes (LAPACK geqr2, org2r).
//
//   load     A D -> tile, D = diag(2^-e_j), largest entry of a column 1/2..1; zeros around it
//   factor   column j = 0, 1, ..: its owners show it to the others through local memory; every lane
//            finds the same reflector and applies it to its own columns
//   store_r  the upper part of the tile times D^-1, with signs; or V\R and tau
//   form_q   column j = k-1, .., 0: the reflector is shown again and applied to columns > j; column
//            j itself becomes (I - tau v v') e_j. Q takes the place of the reflectors.
//
//   A lane owns whole columns: dot products need no exchange beyond ROW_SPLITS lanes.
//
//               columns ->                   lane = (p, s): columns p, p + LANES_ACROSS, ..
//         p=0  p=1  p=2  p=3  p=0 ..                       rows s, s + ROW_SPLITS, ..
//   s=0 | .    .    .    .    .              adjacent lanes: s of one p, then the next p
//   s=1 | .    .    .    .    .
//   s=0 | .    .    .    .    .              example: LANES_ACROSS 4, ROW_SPLITS 2
//
// Columns are taken in blocks of COLUMN_STEP with one first row, known at compile time: the rows
// above it are left out of all loops. Within a block, rows above j are masked.
//
// Defines, set in variants/small.cpp   range          meaning
//   STORED, REAL, SUB_GROUP_BODY                      common.clh
//   TILE_ROWS                          4..128, 4 i    rows per lane
//   LANE_COLUMNS                       1..4           columns per lane
//   LANES_ACROSS                       1..64, 2^k     lanes side by side
//   ROW_SPLITS                         1..32, 2^k     lanes that share a column
//   MATRICES                           1..128         matrices per work-group
//   COLUMN_STEP                        1..LANES_ACROSS, 2^k
//   WANT_Q, RAW                        0, 1           whether Q is formed; V\R and tau in place of R
// The matrix has at most TILE_ROWS ROW_SPLITS rows; it and Q at most LANE_COLUMNS LANES_ACROSS
// columns. Group size: MATRICES LANES_ACROSS ROW_SPLITS.
// Local memory per matrix: 2 (TILE_ROWS ROW_SPLITS + 4) + 2 columns REAL; body 0 adds 1 REAL per
// lane. One launch: factor_small, groups = ceil(count / MATRICES).
#include "common.clh"

#ifndef TILE_ROWS
#define TILE_ROWS 16
#endif
#ifndef LANE_COLUMNS
#define LANE_COLUMNS 2
#endif
#ifndef LANES_ACROSS
#define LANES_ACROSS 8
#endif
#ifndef ROW_SPLITS
#define ROW_SPLITS 1
#endif
#ifndef MATRICES
#define MATRICES 4
#endif
#ifndef COLUMN_STEP
#define COLUMN_STEP 8
#endif
#ifndef WANT_Q
#define WANT_Q 1
#endif
#ifndef RAW
#define RAW 0
#endif

#define LANES (LANES_ACROSS * ROW_SPLITS)
#define GROUP_SIZE (MATRICES * LANES)
#define COLUMNS (LANE_COLUMNS * LANES_ACROSS)
#define ROWS (TILE_ROWS * ROW_SPLITS)
#define WORDS (TILE_ROWS / 4)
// Four more, so that the columns of neighbouring matrices begin in different banks.
#define SHOWN_WORDS (ROWS / 4 + 1)
#define BLOCKS (LANES_ACROSS / COLUMN_STEP)
// The end of a block of columns. Columns past k are zero below their diagonal, H = I: they may be
// worked on, and are where sync_lanes is a barrier, since compilers for CPUs copy whatever follows a
// loop with a barrier that may be skipped, once more per loop.
#define BLOCK_END(first, k) \
  (SUB_GROUP_BODY == 1 ? min((first) + COLUMN_STEP, k) : (first) + COLUMN_STEP)
// Lanes that share the sum over a shown column.
#define NORM_LANES (LANES < WIDEST_SUM ? LANES : WIDEST_SUM)
// Terms that are added plainly before a compensated sum takes them over.
#define NORM_TERMS (ROWS < 16 * NORM_LANES ? (ROWS + NORM_LANES - 1) / NORM_LANES : 16)

// A lane's place, and what of local memory belongs to its matrix.
typedef struct {
  int lane, p, s;
  __local REAL* shown;    // 2 x SHOWN_WORDS words: the column at hand, twice by turns
  __local REAL* taus;     // COLUMNS
  __local REAL* signs;    // COLUMNS, of R's diagonal
  __local REAL* scratch;  // GROUP_SIZE, body 0
} Lane;

// Rows of the lane's word i: four of them, ROW_SPLITS apart.
INLINE mask4_t rows_of(const Lane* at, int i) {
  return (mask4_t)(0, 1, 2, 3) * (mask_t)ROW_SPLITS + (mask_t)(4 * i * ROW_SPLITS + at->s);
}
// Whether word i has no row below `row`.
#define ENDS_ABOVE(i, row) ((4 * (i) + 4) * ROW_SPLITS <= (row))
// Whether word i may have rows above row + COLUMN_STEP: they need a mask.
#define NEEDS_MASK(i, row) (4 * (i) * ROW_SPLITS < (row) + COLUMN_STEP)

// Puts column c of the owners' tiles where all lanes of the matrix see it; split s at s TILE_ROWS.
INLINE void show_column(const Lane* at, real4 tile[LANE_COLUMNS][WORDS], const int c, int j,
                        const int first_row) {
  __local real4* words = (__local real4*)(at->shown) + (j & 1) * SHOWN_WORDS + at->s * WORDS;
  if (at->p == j % LANES_ACROSS) {
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      if (!ENDS_ABOVE(i, first_row)) words[i] = tile[c][i];
    }
  }
  sync_lanes(LANES);
}

INLINE __local const REAL* shown_column(const Lane* at, int j) {
  return at->shown + (j & 1) * 4 * SHOWN_WORDS;
}

// Entry (j, j), which column j shows; past the last row there is none.
INLINE REAL shown_pivot(const Lane* at, int j) {
  const int row = min(j, ROWS - 1);
  return shown_column(at, j)[row % ROW_SPLITS * TILE_ROWS + row / ROW_SPLITS];
}

// The reflector of the shown column j: sums over its rows below j.
INLINE Reflector reflector_of(const Lane* at, int j) {
  __local const REAL* x = shown_column(at, j);
  REAL tail = 0, tail_rest = 0, raised_tail = 0, raised_rest = 0;
  for (int first = at->lane % NORM_LANES; first < ROWS; first += NORM_TERMS * NORM_LANES) {
    REAL part = 0, raised_part = 0;
#pragma unroll
    for (int term = 0; term < NORM_TERMS; ++term) {
      const int i = first + term * NORM_LANES, row = i % TILE_ROWS * ROW_SPLITS + i / TILE_ROWS;
      const REAL y = i < ROWS && row > j ? x[i] : (REAL)0, raised = y * RAISE;
      part = fma(y, y, part);
      raised_part = fma(raised, raised, raised_part);
    }
    add_compensated(part, &tail, &tail_rest);
    add_compensated(raised_part, &raised_tail, &raised_rest);
  }
  tail = sum_over_lanes(tail, NORM_LANES, at->scratch);
  raised_tail = sum_over_lanes(raised_tail, NORM_LANES, at->scratch);
  return make_reflector(shown_pivot(at, j), tail, raised_tail);
}

// Word i of the vector [0; top; x below j] of the shown column.
INLINE real4 vector_word(const Lane* at, __local const real4* words, int i, int j, REAL top,
                         const int first_row) {
  real4 v = words[i];
  if (NEEDS_MASK(i, first_row)) {
    const mask4_t rows = rows_of(at, i);
    v = select(v, (real4)(0), rows < (mask_t)j);
    v = select(v, (real4)(top), rows == (mask_t)j);
  }
  return v;
}

// Columns c >= first_c of the lane that lie right of j: a -= weight v (v'a). v = [0; top; x].
INLINE void apply_reflector(const Lane* at, real4 tile[LANE_COLUMNS][WORDS], int j, REAL top,
                            REAL inner_weight, REAL outer_weight, const int first_c,
                            const int first_row) {
  __local const real4* words = (__local const real4*)shown_column(at, j) + at->s * WORDS;
  real4 sums[LANE_COLUMNS];
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) sums[c] = (real4)(0);
#pragma unroll
  for (int i = 0; i < WORDS; ++i) {
    if (!ENDS_ABOVE(i, first_row)) {
      const real4 v = vector_word(at, words, i, j, top, first_row);
#pragma unroll
      for (int c = 0; c < LANE_COLUMNS; ++c) {
        if (c >= first_c) sums[c] = fma(v, tile[c][i], sums[c]);
      }
    }
  }
  REAL weights[LANE_COLUMNS];
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    weights[c] = 0;
    // Where the sum has barriers they stand outside conditions.
    if (SUB_GROUP_BODY == 0 || c >= first_c) {
      const REAL sum = sum_over_lanes((sums[c].x + sums[c].y) + (sums[c].z + sums[c].w),
                                      ROW_SPLITS, at->scratch);
      if (at->p + c * LANES_ACROSS > j) weights[c] = -(sum * inner_weight) * outer_weight;
    }
  }
#pragma unroll
  for (int i = 0; i < WORDS; ++i) {
    if (!ENDS_ABOVE(i, first_row)) {
      const real4 v = vector_word(at, words, i, j, top, first_row);
#pragma unroll
      for (int c = 0; c < LANE_COLUMNS; ++c) {
        if (c >= first_c) tile[c][i] = fma((real4)(weights[c]), v, tile[c][i]);
      }
    }
  }
}

// The owners' column c becomes R above row j, beta in row j, v below it.
INLINE void keep_reflector(const Lane* at, real4 tile[LANE_COLUMNS][WORDS], const int c, int j,
                           Reflector h, const int first_row) {
  const bool owns = at->p == j % LANES_ACROSS;
  const REAL factor = owns ? h.inverse : (REAL)1;
#pragma unroll
  for (int i = 0; i < WORDS; ++i) {
    if (!ENDS_ABOVE(i, first_row)) {
      real4 below = tile[c][i] * factor;
      if (NEEDS_MASK(i, first_row)) {
        const mask4_t rows = rows_of(at, i);
        below = select(below, tile[c][i], rows < (mask_t)j);
        if (owns) below = select(below, (real4)(h.beta), rows == (mask_t)j);
      }
      tile[c][i] = below;
    }
  }
  if (at->lane == 0) {
    at->taus[j] = h.tau;
    at->signs[j] = h.beta < 0 ? (REAL)-1 : (REAL)1;
  }
}

// tile := V\R
INLINE void factor(const Lane* at, real4 tile[LANE_COLUMNS][WORDS], int k) {
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
#pragma unroll
    for (int block = 0; block < BLOCKS; ++block) {
      const int first = c * LANES_ACROSS + block * COLUMN_STEP;
#pragma unroll 1
      for (int j = first; j < BLOCK_END(first, k); ++j) {
        show_column(at, tile, c, j, first);
        const Reflector h = reflector_of(at, j);
        // v = [1; x inverse]; here [1 / inverse; x], and inverse twice in the weight.
        const REAL top = shown_pivot(at, j) - h.beta;
        apply_reflector(at, tile, j, top, h.inverse, h.tau * h.inverse, c, first);
        keep_reflector(at, tile, c, j, h, first);
      }
    }
  }
}

// Columns from k on start as columns of the identity (a complete Q has them).
INLINE void start_q(const Lane* at, real4 tile[LANE_COLUMNS][WORDS], int k) {
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    const int col = at->p + c * LANES_ACROSS;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      const real4 unit = select((real4)(0), (real4)(1), rows_of(at, i) == (mask_t)col);
      if (col >= k) tile[c][i] = unit;
    }
  }
}

// The owners' column c becomes e_j - tau v.
INLINE void start_column(const Lane* at, real4 tile[LANE_COLUMNS][WORDS], const int c, int j,
                         REAL tau, const int first_row) {
  if (at->p == j % LANES_ACROSS) {
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      if (ENDS_ABOVE(i, first_row)) {
        tile[c][i] = (real4)(0);
      } else {
        real4 q = tile[c][i] * -tau;
        if (NEEDS_MASK(i, first_row)) {
          const mask4_t rows = rows_of(at, i);
          q = select(q, (real4)(0), rows < (mask_t)j);
          q = select(q, (real4)(1 - tau), rows == (mask_t)j);
        }
        tile[c][i] = q;
      }
    }
  }
}

// tile := Q
INLINE void form_q(const Lane* at, real4 tile[LANE_COLUMNS][WORDS], int k) {
  start_q(at, tile, k);
#pragma unroll
  for (int c = LANE_COLUMNS - 1; c >= 0; --c) {
#pragma unroll
    for (int block = BLOCKS - 1; block >= 0; --block) {
      const int first = c * LANES_ACROSS + block * COLUMN_STEP;
#pragma unroll 1
      for (int j = BLOCK_END(first, k) - 1; j >= first; --j) {
        show_column(at, tile, c, j, first);
        const REAL tau = at->taus[j];
        apply_reflector(at, tile, j, (REAL)1, tau, (REAL)1, c, first);
        start_column(at, tile, c, j, tau, first);
      }
    }
  }
}

// tile := A D, zeros around it. codes[c]: of the lane's columns.
INLINE void load(const Lane* at, real4 tile[LANE_COLUMNS][WORDS], int codes[LANE_COLUMNS],
                 __global const STORED* a, int m, int n, __local int* column_codes) {
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    const int col = at->p + c * LANES_ACROSS;
    STORED largest = 0;
    int is_finite = 1;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      STORED x[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = (4 * i + e) * ROW_SPLITS + at->s;
        x[e] = row < m && col < n ? a[row * n + col] : (STORED)0;
        largest = fmax(largest, fabs(x[e]));
        is_finite &= isfinite(x[e]);
      }
      tile[c][i] = (real4)((REAL)x[0], (REAL)x[1], (REAL)x[2], (REAL)x[3]);
    }
    codes[c] = magnitude_code(largest, is_finite);
    if (ROW_SPLITS > 1) {
      atomic_max(&column_codes[col], codes[c]);
    } else {
      column_codes[col] = codes[c];
    }
  }
  sync_lanes(LANES);
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    codes[c] = column_codes[at->p + c * LANES_ACROSS];
    const int e = -scale_of(codes[c]);
#pragma unroll
    for (int i = 0; i < WORDS; ++i) tile[c][i] = tile[c][i] * pow2(e / 2) * pow2(e - e / 2);
  }
}

// R, or V\R: zeros or v below the diagonal. + 0 turns -0 into +0.
INLINE void store_r(const Lane* at, real4 tile[LANE_COLUMNS][WORDS], int codes[LANE_COLUMNS],
                    __global STORED* r, FactorShape shape, bool is_finite) {
  const int rows = RAW ? shape.m : shape.r_rows;
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    const int col = at->p + c * LANES_ACROSS, e = scale_of(codes[c]);
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      const REAL x[4] = {tile[c][i].x, tile[c][i].y, tile[c][i].z, tile[c][i].w};
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int row = (4 * i + part) * ROW_SPLITS + at->s;
        if (row < rows && col < shape.n) {
          const bool flips = shape.positive && row < shape.k && at->signs[min(row, COLUMNS - 1)] < 0;
          const STORED upper = (STORED)scale_by(flips ? -x[part] : x[part], e) + (STORED)0;
          const STORED lower = RAW ? (STORED)x[part] : (STORED)0;
          r[row * shape.n + col] = !is_finite ? (STORED)NAN : row <= col ? upper : lower;
        }
      }
    }
  }
}

// tau; where V is rounded, tau = 2 / v'v of the rounded v keeps I - tau v v' orthogonal.
INLINE void store_tau(const Lane* at, real4 tile[LANE_COLUMNS][WORDS], __global STORED* tau, int k,
                      bool is_finite) {
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    const int col = at->p + c * LANES_ACROSS;
    REAL sum = 0;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      const REAL x[4] = {tile[c][i].x, tile[c][i].y, tile[c][i].z, tile[c][i].w};
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int row = (4 * i + part) * ROW_SPLITS + at->s;
        const REAL y = row > col ? (REAL)(STORED)x[part] : (REAL)0;
        sum = fma(y, y, sum);
      }
    }
    sum = sum_over_lanes(sum, ROW_SPLITS, at->scratch);
    if (at->s == 0 && col < k) {
      REAL x = at->taus[col];
      if (sizeof(STORED) < sizeof(REAL) && x != 0) x = 2 / (1 + sum);
      tau[col] = is_finite ? (STORED)x : (STORED)NAN;
    }
  }
}

// Q, its columns with the signs of R's rows.
INLINE void store_q(const Lane* at, real4 tile[LANE_COLUMNS][WORDS], __global STORED* q,
                    FactorShape shape, bool is_finite) {
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    const int col = at->p + c * LANES_ACROSS;
    const bool flips = shape.positive && col < shape.k && at->signs[col] < 0;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      const REAL x[4] = {tile[c][i].x, tile[c][i].y, tile[c][i].z, tile[c][i].w};
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int row = (4 * i + part) * ROW_SPLITS + at->s;
        if (row < shape.m && col < shape.q_cols) {
          const STORED y = (STORED)(flips ? -x[part] : x[part]);
          q[row * shape.q_cols + col] = is_finite ? y : (STORED)NAN;
        }
      }
    }
  }
}

// r is V\R and q is tau where RAW is set.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void factor_small(
    __global const STORED* a, __global STORED* q, __global STORED* r, __global int* magnitudes,
    FactorShape shape) {
  __local real4 shown[MATRICES * 2 * SHOWN_WORDS];
  __local REAL taus[MATRICES * COLUMNS], signs[MATRICES * COLUMNS];
  __local REAL scratch[SUB_GROUP_BODY == 0 ? GROUP_SIZE : 1];
  __local int column_codes[MATRICES * COLUMNS];
  const int item = get_local_id(0), slot = item / LANES, lane = item % LANES;
  const index_t matrix = (index_t)get_group_id(0) * MATRICES + slot;
  // Lanes past the last matrix do as the others, on zeros, and store nothing.
  const bool exists = matrix < shape.count;
  const Lane at = {lane, lane / ROW_SPLITS, lane % ROW_SPLITS,
                   (__local REAL*)(shown + slot * 2 * SHOWN_WORDS), taus + slot * COLUMNS,
                   signs + slot * COLUMNS, scratch};

  for (int i = lane; i < COLUMNS; i += LANES) column_codes[slot * COLUMNS + i] = MAGNITUDE_ZERO;
  sync_lanes(LANES);
  real4 tile[LANE_COLUMNS][WORDS];
  int codes[LANE_COLUMNS];
  load(&at, tile, codes, a + (exists ? matrix : 0) * shape.m * shape.n, exists ? shape.m : 0,
       shape.n, column_codes + slot * COLUMNS);
  int code = MAGNITUDE_ZERO;
  for (int i = 0; i < COLUMNS; ++i) code = max(code, column_codes[slot * COLUMNS + i]);
  const bool is_finite = code != MAGNITUDE_NON_FINITE;
  if (exists && lane == 0) magnitudes[matrix] = code;

  factor(&at, tile, shape.k);
  sync_lanes(LANES);
  const index_t r_rows = RAW ? shape.m : shape.r_rows;
  if (exists) store_r(&at, tile, codes, r + matrix * r_rows * shape.n, shape, is_finite);
  if (RAW) {
    store_tau(&at, tile, q + matrix * shape.k, exists ? shape.k : 0, is_finite);
  }
  if (WANT_Q) {
    form_q(&at, tile, shape.k);
    if (exists) {
      store_q(&at, tile, q + matrix * shape.m * shape.q_cols, shape, is_finite);
    }
  }
}
