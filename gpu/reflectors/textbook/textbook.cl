// SPDX-License-Identifier: Apache-2.0
// textbook.cl: Householder QR of small square matrices, written as in a textbook. It forms each
// reflector as a full matrix P and computes the full products R := P R and Q := Q P. This takes
// 4 n^4 operations. The other variants are measured against it; it is too slow for other use.
//
//   for each column j:   v = x - beta e_j,  P = I - 2 v v' / v'v   (v is zero above row j)
//                        R := P R,  Q := Q P                       work-item t computes column t
//                                                                  of R and row t of Q
//
// P - I is stored, and a product with it is added to R or Q. With P itself, rows that are alike had
// made entries of P and products that all rounded one way: 10 of 3000 matrices of 17x17 in float64
// were above their bar.
//
// Defines, set in textbook.cpp            range    meaning
//   STORED, REAL                                   common.clh
//   SIZE                                  1..64    rows, columns and work-items per group
// Local memory: SIZE REAL and 1 int. The work buffer of a matrix holds R, the next R, Q, the next Q
// and P - I, each SIZE x SIZE REAL.
// One launch: factor, one group per matrix.
#include "gpu/common/common.clh"

#ifndef SIZE
#define SIZE 16
#endif
#define ENTRIES (SIZE * SIZE)
// A sum of SIZE products is added in parts of SUM_TERMS. If it were added one by one, the rounding
// errors of all SIZE steps together would exceed the accuracy bar (core/report/ratios.hpp).
#define SUM_TERMS 8

// Writes column t of r := A D and of q := I. Returns the magnitude code of the column of A.
INLINE int load_column(__global const STORED* a, __global REAL* r, __global REAL* q) {
  const int t = get_local_id(0);
  STORED largest = 0;
  int is_finite = 1;
  for (int i = 0; i < SIZE; ++i) {
    const STORED x = a[i * SIZE + t];
    largest = fmax(largest, fabs(x));
    is_finite &= isfinite(x);
  }
  const int code = magnitude_code(largest, is_finite);
  for (int i = 0; i < SIZE; ++i) {
    r[i * SIZE + t] = scale_by((REAL)a[i * SIZE + t], -scale_of(code));
    q[i * SIZE + t] = i == t ? (REAL)1 : (REAL)0;
  }
  return code;
}

// Writes column t of p := P - I = -tau v v', where P is the reflector for column j of r.
INLINE void form_p(__global const REAL* r, int j, __global REAL* p) {
  const int t = get_local_id(0);
  REAL tail = 0, raised_tail = 0;
  for (int i = j + 1; i < SIZE; ++i) {
    const REAL x = r[i * SIZE + j], raised = x * RAISE;
    tail = fma(x, x, tail);
    raised_tail = fma(raised, raised, raised_tail);
  }
  const Reflector h = make_reflector(r[j * SIZE + j], tail, raised_tail);
  // tau = 2 / v'v for the rounded v, so that P is orthogonal up to the rounding of its entries.
  REAL squares = 1, rest = 0;
  for (int i = j + 1; i < SIZE; ++i) {
    const REAL v_i = r[i * SIZE + j] * h.inverse;
    add_compensated(v_i * v_i, &squares, &rest);
  }
  const REAL tau = h.tau != 0 ? 2 / squares : (REAL)0;
  const REAL v_t = t < j ? (REAL)0 : t == j ? (REAL)1 : r[t * SIZE + j] * h.inverse;
  for (int i = 0; i < SIZE; ++i) {
    const REAL v_i = i < j ? (REAL)0 : i == j ? (REAL)1 : r[i * SIZE + j] * h.inverse;
    p[i * SIZE + t] = -tau * v_i * v_t;
  }
}

__kernel __attribute__((reqd_work_group_size(SIZE, 1, 1))) void factor(
    __global const STORED* a, __global REAL* work, __global STORED* q_out, __global STORED* r_out,
    __global int* magnitudes, FactorShape shape) {
  __local REAL signs[SIZE];
  __local int code;
  const index_t matrix = get_group_id(0);
  const int t = get_local_id(0);
  work += matrix * 5 * ENTRIES;
  __global REAL *r = work, *next_r = work + ENTRIES, *q = work + 2 * ENTRIES,
                *next_q = work + 3 * ENTRIES, *p = work + 4 * ENTRIES;

  if (t == 0) code = MAGNITUDE_ZERO;
  barrier(CLK_LOCAL_MEM_FENCE);
  const int column_code = load_column(a + matrix * ENTRIES, r, q);
  atomic_max(&code, column_code);
  barrier(FENCE);

  for (int j = 0; j + 1 < SIZE; ++j) {
    form_p(r, j, p);
    barrier(FENCE);
    for (int i = 0; i < SIZE; ++i) {
      REAL new_r = 0, new_q = 0;
      for (int first = 0; first < SIZE; first += SUM_TERMS) {
        REAL part_r = 0, part_q = 0;
        for (int l = first; l < min(first + SUM_TERMS, SIZE); ++l) {
          part_r = fma(p[i * SIZE + l], r[l * SIZE + t], part_r);
          part_q = fma(q[t * SIZE + l], p[l * SIZE + i], part_q);
        }
        new_r += part_r;
        new_q += part_q;
      }
      // These entries are zero in exact arithmetic, so their rounding errors are dropped.
      next_r[i * SIZE + t] = t == j && i > j ? (REAL)0 : r[i * SIZE + t] + new_r;
      next_q[t * SIZE + i] = q[t * SIZE + i] + new_q;
    }
    barrier(FENCE);
    __global REAL* swap = r;
    r = next_r;
    next_r = swap;
    swap = q;
    q = next_q;
    next_q = swap;
  }

  signs[t] = shape.positive && r[t * SIZE + t] < 0 ? (REAL)-1 : (REAL)1;
  barrier(CLK_LOCAL_MEM_FENCE);
  const bool is_finite = code != MAGNITUDE_NON_FINITE;
  for (int i = 0; i < SIZE; ++i) {
    const STORED x = (STORED)scale_by(signs[i] * r[i * SIZE + t], scale_of(column_code));
    const STORED y = (STORED)(signs[t] * q[i * SIZE + t]);
    const index_t at = matrix * ENTRIES + i * SIZE + t;
    r_out[at] = !is_finite ? (STORED)NAN : i <= t ? x + (STORED)0 : (STORED)0;
    if (shape.q_cols > 0) q_out[at] = is_finite ? y : (STORED)NAN;
  }
  if (t == 0) magnitudes[matrix] = code;
}
