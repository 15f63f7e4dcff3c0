// SPDX-License-Identifier: Apache-2.0
// small.cl: Householder QR of a batch of small matrices. A few lanes hold a whole matrix, the tile,
// in their registers (LAPACK geqr2, org2r).
//
//   load             tile := A D with zeros around it; D = diag(2^-e_j) brings the largest entry of
//                    each column to 1/2..1
//   factor_lanes     for j = 0, 1, ..: the lanes that own column j copy its reflector to local
//                    memory, and every lane applies it to its own columns (tile.clh has the steps,
//                    tile_lanes.clh has the layout)
//   store_r_of_tile  R := the upper part of the tile times D^-1, with signs. With RAW it stores
//                    V\R, that is R with the reflectors V below its diagonal, and
//                    store_tau_of_tile stores tau.
//   form_q_in_tile   for j = k-1, .., 0: the owners show the reflector again, column j becomes e_j,
//                    and every lane applies the reflector to its columns >= j. Q overwrites the
//                    reflectors.
//
// Defines, set in small.cpp            range          meaning
//   STORED, REAL, SUB_GROUP_BODY                      common.clh
//   LANE_ROWS, LANE_COLUMNS, LANES_ACROSS, ROW_SPLITS, MATRICES, COLUMN_STEP     tile_lanes.clh
//   WANT_Q                             0, 1           1: Q is formed
//   RAW                                0, 1           1: the kernel stores V\R and tau, not R
//   FILLED                             0, 1           1: A, Q and R fill the tile
//   FLAGGED                            0, 1, s        common.clh
// The matrix has at most LANE_ROWS ROW_SPLITS rows. A and Q have at most c = LANE_COLUMNS
// LANES_ACROSS columns each. Group size: MATRICES LANES_ACROSS ROW_SPLITS.
// Local memory per matrix: SHOWN_STRIDE + 3 c + 2 REAL and c int. If the lanes that share a column
// have no shuffles, each lane needs 2 LANE_COLUMNS + 1 REAL more.
// One launch: factor_small with ceil(count / MATRICES) groups. If FLAGGED = s > 1, the launch has
// ceil(count / (s MATRICES)) groups.
#include "gpu/common/tile.clh"

#ifndef WANT_Q
#define WANT_Q 1
#endif
#ifndef RAW
#define RAW 0
#endif
#ifndef FILLED
#define FILLED 0
#endif

// True if entry tile[c][i] of this lane is inside a matrix of rows x columns. If FILLED is set,
// only the number of rows needs a test, and it is a constant.
#define HAS_ENTRY(i, c, rows, columns)       \
  (FILLED ? ((i) + 1) * ROW_SPLITS <= (rows) \
          : at->s < (rows) - (i)*ROW_SPLITS && at->p < (columns) - (c)*LANES_ACROSS)

// tile := Q = H_0 H_1 .. H_(k-1)
INLINE void form_q_in_tile(const Lane* at, LaneTile tile, int k) {
  // A complete Q has more than k columns. The columns >= k start as columns of the identity.
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    const int col = at->p + c * LANES_ACROSS;
    if (!FILLED && col >= k) {
#pragma unroll
      for (int i = 0; i < LANE_ROWS; ++i) {
        tile[c][i] = i * ROW_SPLITS + at->s == col ? (REAL)1 : (REAL)0;
      }
    }
  }
  reflect_tile(at, tile, k);
}

// tile := A D with zeros around it. exponents[c] receives e_j of the lane's column c, and
// *matrix_code the magnitude code of A. Returns true if A is finite.
INLINE bool load(const Lane* at, LaneTile tile, int exponents[LANE_COLUMNS],
                 __global const STORED* a, int m, int n, __local int* column_codes,
                 int* matrix_code) {
  STORED largest[LANE_COLUMNS], nan_if_not_finite[LANE_COLUMNS];
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) largest[c] = nan_if_not_finite[c] = 0;
  a += at->s * n + at->p;
#pragma unroll
  for (int i = 0; i < LANE_ROWS; ++i) {
#pragma unroll
    for (int c = 0; c < LANE_COLUMNS; ++c) {
      const STORED x =
          HAS_ENTRY(i, c, FILLED ? MATRIX_ROWS : m, n) ? a[c * LANES_ACROSS] : (STORED)0;
      largest[c] = fmax(largest[c], fabs(x));
      nan_if_not_finite[c] = fma(x, (STORED)0, nan_if_not_finite[c]);
      tile[c][i] = (REAL)x;
    }
    a += ROW_SPLITS * n;
  }
  scale_tile(at, tile, largest, nan_if_not_finite, exponents, column_codes);
  int code = MAGNITUDE_ZERO;
#pragma unroll 1
  for (int i = 0; i < MATRIX_COLUMNS; ++i) code = max(code, column_codes[i]);
  *matrix_code = code;
  return code != MAGNITUDE_NON_FINITE;
}

// r := R with zeros below the diagonal, or V\R if RAW is set. The + 0 of the fma turns -0 into +0.
INLINE void store_r_of_tile(const Lane* at, LaneTile tile, int exponents[LANE_COLUMNS],
                            __global STORED* r, FactorShape shape, bool is_finite) {
  const int rows = FILLED ? (RAW ? MATRIX_ROWS : MATRIX_COLUMNS) : RAW ? shape.m : shape.r_rows;
  const STORED nothing = is_finite ? (STORED)0 : (STORED)NAN;
  REAL factors[LANE_COLUMNS], inverse[LANE_COLUMNS];
  int last_row[LANE_COLUMNS];  // the last row of R in each column; -1 if A is not finite
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    factors[c] = pow2(exponents[c]);
    last_row[c] = is_finite ? at->p + c * LANES_ACROSS : -1;
    const REAL top = at->tops[at->p + c * LANES_ACROSS];
    inverse[c] = top != 0 ? 1 / top : (REAL)0;
  }
  r += at->s * shape.n + at->p;
#pragma unroll
  for (int i = 0; i < LANE_ROWS; ++i) {
    const int row = i * ROW_SPLITS + at->s;
    const REAL sign =
        shape.positive && row < shape.k ? at->signs[min(row, MATRIX_COLUMNS - 1)] : (REAL)1;
#pragma unroll
    for (int c = 0; c < LANE_COLUMNS; ++c) {
      if (HAS_ENTRY(i, c, rows, shape.n)) {
        const STORED upper = (STORED)fma(tile[c][i], factors[c] * sign, (REAL)0);
        const STORED lower = RAW && is_finite ? (STORED)(tile[c][i] * inverse[c]) : nothing;
        r[c * LANES_ACROSS] = row <= last_row[c] ? upper : lower;
      }
    }
    r += ROW_SPLITS * shape.n;
  }
}

// tau := 2 / v'v for the rounded v that is stored, so that I - tau v v' is orthogonal.
INLINE void store_tau_of_tile(const Lane* at, LaneTile tile, __global STORED* tau, int k,
                              bool is_finite) {
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    const int col = at->p + c * LANES_ACROSS;
    const REAL top = at->tops[col], inverse = top != 0 ? 1 / top : (REAL)0;
    REAL sum[LANE_COLUMNS] = {0};
#pragma unroll
    for (int i = 0; i < LANE_ROWS; ++i) {
      const REAL y = i * ROW_SPLITS + at->s > col ? (REAL)(STORED)(tile[c][i] * inverse) : (REAL)0;
      sum[c] = fma(y, y, sum[c]);
    }
    exchange_sums(at, sum, c);
    if (at->s == 0 && col < k) {
      const REAL x = top != 0 ? 2 / (1 + sum[c]) : (REAL)0;
      tau[col] = is_finite ? (STORED)x : (STORED)NAN;
    }
    sync_tile();
  }
}

// q := Q; column i has the sign of row i of R, so that Q R stays the same.
INLINE void store_q_of_tile(const Lane* at, LaneTile tile, __global STORED* q, FactorShape shape,
                            bool is_finite) {
  REAL signs[LANE_COLUMNS];
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    const int col = at->p + c * LANES_ACROSS;
    signs[c] = shape.positive && col < shape.k ? at->signs[col] : (REAL)1;
  }
  q += at->s * shape.q_cols + at->p;
#pragma unroll
  for (int i = 0; i < LANE_ROWS; ++i) {
#pragma unroll
    for (int c = 0; c < LANE_COLUMNS; ++c) {
      if (HAS_ENTRY(i, c, FILLED ? MATRIX_ROWS : shape.m, shape.q_cols)) {
        q[c * LANES_ACROSS] = is_finite ? (STORED)(tile[c][i] * signs[c]) : (STORED)NAN;
      }
    }
    q += ROW_SPLITS * shape.q_cols;
  }
}

// The kernel works on sets of MATRICES matrices. A group has one set. If FLAGGED > 1 it looks
// through FLAGGED sets and works on those in which at least one matrix is flagged.
#if FLAGGED > 1
INLINE bool any_to_do(index_t set, FactorShape shape FLAGS_ARGUMENT) {
  bool any = false;
  for (index_t matrix = set * MATRICES; matrix < (set + 1) * MATRICES; ++matrix) {
    any = any || (matrix < shape.count && IS_TO_DO(matrix));
  }
  return any;
}
#define FOR_SETS(set)                                       \
  const index_t first = (index_t)get_group_id(0) * FLAGGED; \
  for (index_t set = first; set < first + FLAGGED; ++set)   \
    if (any_to_do(set, shape, routes))
#else
#define FOR_SETS(set) const index_t set = get_group_id(0);
#endif

// If RAW is set, the buffer r receives V\R and the buffer q receives tau.
__kernel __attribute__((reqd_work_group_size(LANES_GROUP, 1, 1))) void factor_small(
    __global const STORED* a, __global STORED* q, __global STORED* r, __global int* magnitudes,
    FactorShape shape FLAGS_ARGUMENT) {
  __local real4 shown[MATRICES * SHOWN_STRIDE / 4];
  __local REAL weights[MATRICES * MATRIX_COLUMNS], tops[MATRICES * MATRIX_COLUMNS],
      signs[MATRICES * MATRIX_COLUMNS];
  __local REAL alphas[MATRICES * 2], scratch[SCRATCH];
  __local int column_codes[MATRICES * MATRIX_COLUMNS];
  const int item = get_local_id(0), slot = item / MATRIX_LANES, lane = item % MATRIX_LANES;
  const Lane at = {lane,
                   lane / ROW_SPLITS,
                   lane % ROW_SPLITS,
                   (__local REAL*)shown + slot * SHOWN_STRIDE,
                   weights + slot * MATRIX_COLUMNS,
                   tops + slot * MATRIX_COLUMNS,
                   signs + slot * MATRIX_COLUMNS,
                   alphas + slot * 2,
                   scratch,
                   0,
                   0};
  FOR_SETS(set) {
    const index_t matrix = set * MATRICES + slot;
    // Lanes without a matrix, or whose matrix is not flagged, compute too, because all lanes must
    // reach the barriers. They store nothing.
    const bool exists = matrix < shape.count && IS_TO_DO(matrix);
    for (int i = lane; i < MATRIX_COLUMNS; i += MATRIX_LANES) {
      column_codes[slot * MATRIX_COLUMNS + i] = MAGNITUDE_ZERO;
      tops[slot * MATRIX_COLUMNS + i] = 0;
      signs[slot * MATRIX_COLUMNS + i] = 1;
    }
    sync_tile();
    LaneTile tile;
    int exponents[LANE_COLUMNS], code;
    const bool is_finite =
        load(&at, tile, exponents, a + (exists ? matrix : 0) * shape.m * shape.n,
             FILLED || exists ? shape.m : 0, shape.n, column_codes + slot * MATRIX_COLUMNS, &code);
    if (exists && lane == 0) magnitudes[matrix] = code;

    factor_lanes(&at, tile, shape.k);
    sync_tile();
    const index_t r_rows = RAW ? shape.m : shape.r_rows;
    if (exists)
      store_r_of_tile(&at, tile, exponents, r + matrix * r_rows * shape.n, shape, is_finite);
    if (RAW) {
      store_tau_of_tile(&at, tile, q + matrix * shape.k, exists ? shape.k : 0, is_finite);
    }
    if (WANT_Q) {
      form_q_in_tile(&at, tile, shape.k);
      if (exists) store_q_of_tile(&at, tile, q + matrix * shape.m * shape.q_cols, shape, is_finite);
    }
    if (FLAGGED > 1) sync_tile();  // the next set uses the same local memory
  }
}
