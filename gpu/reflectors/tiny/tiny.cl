// SPDX-License-Identifier: Apache-2.0
// tiny.cl: Householder QR of a batch of tiny matrices, each in the registers of one work-item
// (LAPACK geqr2, org2r).
//
//   copy_in         a group copies its GROUP matrices to local memory; adjacent work-items copy
//                   adjacent entries
//   take_matrix     x := A D in registers; D = diag(2^-e_j) brings the largest entry of each column
//                   to 1/2..1
//   reflect_column  for j = 0, 1, ..: H_j = I - g v v', v = [0; top; x below row j of column j], is
//                   applied to the columns right of j. v is not scaled, as in tile.clh.
//   put_r           R := the upper part of x times D^-1, with signs, through local memory
//   reflect_back    for j = k-1, .., 0: column j becomes H_j e_j, and H_j is applied to the columns
//                   right of it. Q overwrites the reflectors.
//
// Defines, set in tiny.cpp       range      meaning
//   STORED, REAL, SUB_GROUP_BODY            common.clh
//   ROWS                        1 .. 8      rows of A
//   COLUMNS                     1 .. 64     columns of A; ROWS COLUMNS <= 64
//   GROUP                       32 .. 256   work-items of a group, each with a matrix
//   WANT_Q                      0, 1        1: Q is formed
// Local memory: GROUP LD STORED; LD is odd, so that the work-items read from different banks.
// One launch: factor_tiny with ceil(count / GROUP) groups.
#include "gpu/common/common.clh"

#ifndef ROWS
#define ROWS 4
#endif
#ifndef COLUMNS
#define COLUMNS 4
#endif
#ifndef GROUP
#define GROUP 64
#endif
#ifndef WANT_Q
#define WANT_Q 1
#endif
#define SMALLER_SIDE (ROWS < COLUMNS ? ROWS : COLUMNS)
#define LD (ROWS * COLUMNS | 1)

// A sum is added in this number of parts: the errors of a long plain sum of equal terms are biased.
#define PARTIAL_SUMS 4

typedef REAL TinyMatrix[COLUMNS][ROWS];  // by columns

// local := `entries` entries of each of the group's matrices, of which `left` exist.
INLINE void copy_in(__local STORED* room, __global const STORED* from, const int entries,
                    index_t left) {
  for (int i = get_local_id(0); i < GROUP * entries && i < left; i += GROUP) {
    room[i / entries * LD + i % entries] = from[i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
INLINE void copy_out(__global STORED* to, __local const STORED* room, const int entries,
                     index_t left) {
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_local_id(0); i < GROUP * entries && i < left; i += GROUP) {
    to[i] = room[i / entries * LD + i % entries];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// x := A D. Returns the magnitude code of A.
INLINE int take_matrix(TinyMatrix x, int exponents[COLUMNS], __local const STORED* a) {
  int code = MAGNITUDE_ZERO;
#pragma unroll
  for (int c = 0; c < COLUMNS; ++c) {
    STORED largest = 0, nan_if_not_finite = 0;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      const STORED entry = a[i * COLUMNS + c];
      largest = fmax(largest, fabs(entry));
      nan_if_not_finite = fma(entry, (STORED)0, nan_if_not_finite);
      x[c][i] = (REAL)entry;
    }
    const int column_code = magnitude_code(largest, nan_if_not_finite == 0);
    code = max(code, column_code);
    exponents[c] = scale_of(column_code);
    const REAL factor = pow2(-exponents[c]);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) x[c][i] *= factor;
  }
  return code;
}

// The sum of x_i y_i over the rows below row j.
INLINE REAL dot_below(const REAL x[ROWS], const REAL y[ROWS], const int j) {
  REAL parts[PARTIAL_SUMS] = {0};
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    if (i > j) parts[i % PARTIAL_SUMS] = fma(x[i], y[i], parts[i % PARTIAL_SUMS]);
  }
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// Column j of x := beta and v below it; x(:, c) := H_j x(:, c), c > j.
INLINE void reflect_column(TinyMatrix x, const int j, REAL* top, REAL* g) {
  REAL alpha = x[j][j], tail = dot_below(x[j], x[j], j), lower = 1;
  const bool is_small = !(fma(alpha, alpha, tail) >= TINY_SQUARED);
  if (is_small) {
    lower = pow2(-RAISE_EXPONENT);
    alpha *= pow2(RAISE_EXPONENT);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      if (i > j) x[j][i] *= pow2(RAISE_EXPONENT);
    }
    tail = dot_below(x[j], x[j], j);
  }
  const REAL squares = fma(alpha, alpha, tail);
  const bool is_identity = !(tail > 0) || (is_small && squares < ZERO_SQUARED);
  const REAL norm = square_root(is_identity ? (REAL)1 : squares);
  const REAL beta = is_identity ? alpha : alpha >= 0 ? -norm : norm;
  *top = is_identity ? (REAL)0 : alpha - beta;
  *g = is_identity ? (REAL)0 : 2 * reciprocal(fma(alpha - beta, alpha - beta, tail));
  x[j][j] = beta * lower;
#pragma unroll
  for (int c = 0; c < COLUMNS; ++c) {
    if (c > j) {
      const REAL s = *g * fma(*top, x[c][j], dot_below(x[j], x[c], j));
      x[c][j] = fma(-s, *top, x[c][j]);
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        if (i > j) x[c][i] = fma(-s, x[j][i], x[c][i]);
      }
    }
  }
}

// r := R with zeros below the diagonal. The + 0 of the fma turns -0 into +0.
INLINE void put_r(TinyMatrix x, const int exponents[COLUMNS], const REAL signs[SMALLER_SIDE],
                  __local STORED* r, bool is_finite) {
#pragma unroll
  for (int c = 0; c < COLUMNS; ++c) {
    const REAL factor = pow2(exponents[c]);
#pragma unroll
    for (int i = 0; i < SMALLER_SIDE; ++i) {
      const STORED upper = i <= c ? (STORED)fma(x[c][i], factor * signs[i], (REAL)0) : (STORED)0;
      r[i * COLUMNS + c] = is_finite ? upper : (STORED)NAN;
    }
  }
}

// The first columns of x := those of Q = H_0 H_1 .. H_(k-1), with the signs of R's rows.
INLINE void reflect_back(TinyMatrix x, const REAL tops[SMALLER_SIDE], const REAL gs[SMALLER_SIDE],
                         const REAL signs[SMALLER_SIDE]) {
#pragma unroll
  for (int j = SMALLER_SIDE - 1; j >= 0; --j) {
    const REAL weight = gs[j] * tops[j];
#pragma unroll
    for (int c = 0; c < SMALLER_SIDE; ++c) {
      if (c > j) {
        const REAL dot = dot_below(x[j], x[c], j), s = gs[j] * dot;
        x[c][j] = -weight * dot;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
          if (i > j) x[c][i] = fma(-s, x[j][i], x[c][i]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      if (i < j) x[j][i] = 0;
      if (i > j) x[j][i] *= -weight * signs[j];
    }
    x[j][j] = signs[j] * fma(-weight, tops[j], (REAL)1);
  }
}

INLINE void put_q(TinyMatrix x, __local STORED* q, bool is_finite) {
#pragma unroll
  for (int c = 0; c < SMALLER_SIDE; ++c) {
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      q[i * SMALLER_SIDE + c] = is_finite ? (STORED)x[c][i] : (STORED)NAN;
    }
  }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void factor_tiny(
    __global const STORED* a, __global STORED* q, __global STORED* r, __global int* magnitudes,
    FactorShape shape) {
  __local STORED room[GROUP * LD];
  const int item = get_local_id(0);
  const index_t first = (index_t)get_group_id(0) * GROUP, left = shape.count - first;
  __local STORED* own = room + item * LD;
  // Work-items without a matrix factor zeros and store nothing.
  if (item >= left) {
    for (int i = 0; i < ROWS * COLUMNS; ++i) own[i] = 0;
  }
  copy_in(room, a + first * (ROWS * COLUMNS), ROWS * COLUMNS, left * (ROWS * COLUMNS));
  TinyMatrix x;
  int exponents[COLUMNS];
  REAL tops[SMALLER_SIDE], gs[SMALLER_SIDE], signs[SMALLER_SIDE];
  const int code = take_matrix(x, exponents, own);
  const bool is_finite = code != MAGNITUDE_NON_FINITE;
  if (item < left) magnitudes[first + item] = code;
#pragma unroll
  for (int j = 0; j < SMALLER_SIDE; ++j) reflect_column(x, j, tops + j, gs + j);
#pragma unroll
  for (int j = 0; j < SMALLER_SIDE; ++j) {
    signs[j] = shape.positive && x[j][j] < 0 ? (REAL)-1 : (REAL)1;
  }
  put_r(x, exponents, signs, own, is_finite);
  copy_out(r + first * (SMALLER_SIDE * COLUMNS), room, SMALLER_SIDE * COLUMNS,
           left * (SMALLER_SIDE * COLUMNS));
  if (WANT_Q) {
    reflect_back(x, tops, gs, signs);
    put_q(x, own, is_finite);
    copy_out(q + first * (ROWS * SMALLER_SIDE), room, ROWS * SMALLER_SIDE,
             left * (ROWS * SMALLER_SIDE));
  }
}
