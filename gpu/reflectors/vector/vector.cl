// SPDX-License-Identifier: Apache-2.0
// vector.cl: Householder QR of batches on CPU devices (LAPACK geqr2, org2r). A work-item factors
// LANES matrices at a time, one in each lane of its vectors. There is no barrier and no local
// memory: on a CPU, a barrier cuts the kernel into loops over the work-items, and the private
// variables that cross it go to memory.
//
//     matrices in memory              a pack: vectors, four columns side by side
//     a a a   b b b   c c c   ...     [a b c ..] [a b c ..] [a b c ..]
//     a a a   b b b   c c c           [a b c ..] [a b c ..] [a b c ..]
//
//   load_lane          pack := A D, D = diag(2^-e_j), for one lane
//   factor_pack        for j = 0, .., k-1: sums over column j give one reflector per lane; it is
//                      applied to four columns at a time
//   form_q_of_pack     Q := I, then for j = k-1, .., 0: H_j is applied to rows and columns >= j
//   store_r_of_pack    R = the upper part times D^-1, with signs
//
// Defines, set in vector.cpp            range    meaning
//   STORED, REAL                                 common.clh
//   LANES                               8, 16    matrices per work-item: 64 bytes of REAL
// Local memory: none. Group size: 1. Each group has a slot in global memory. In vectors of LANES
// REAL it holds the pack (m x n) and Q (m x q_cols), both with their columns rounded up to a
// multiple of four, then k vectors of tau and n vectors of codes (LANES int).
// One launch: factor_vector, min(packs, slots) groups. A group takes several packs in turn.
#include "gpu/common/common.clh"

#ifndef LANES
#define LANES 16
#endif
// Rows that are summed together. Rounding errors of rows that are alike have one sign, so that a
// long sum of such rows would miss the bar.
#define PLAIN_SUM_ROWS 16

typedef JOIN(REAL, LANES) realv;

// The first vector of the four columns that column c is part of, and that of column c itself, in a
// matrix with m rows.
#define FOUR_AT(m, c) (((c) / 4) * (m)*4)
#define COLUMN_AT(m, c) (FOUR_AT(m, c) + (c) % 4)

// Views the lanes of the vectors as single numbers.
INLINE __global REAL* lanes_of(__global realv* x) { return (__global REAL*)x; }

// Lane l of the pack := A D of one matrix. codes[j LANES + l] receives the magnitude code of column
// j. Returns the code of the matrix.
INLINE int load_lane(__global const STORED* a, int m, int n, int l, __global realv* pack,
                     __global int* codes) {
  int matrix_code = MAGNITUDE_ZERO;
  for (int j = 0; j < n; ++j) {
    STORED largest = 0;
    int is_finite = 1;
    for (int i = 0; i < m; ++i) {
      const STORED x = fabs(a[(index_t)i * n + j]);
      largest = fmax(largest, x);
      is_finite &= isfinite(x);
    }
    const int code = magnitude_code(largest, is_finite), e = -scale_of(code);
    const REAL down = pow2(e / 2), down_again = pow2(e - e / 2);
    codes[j * LANES + l] = code;
    matrix_code = max(matrix_code, code);
    __global REAL* column = lanes_of(pack + COLUMN_AT((index_t)m, j)) + l;
    for (int i = 0; i < m; ++i)
      column[(index_t)i * 4 * LANES] = (REAL)a[(index_t)i * n + j] * down * down_again;
  }
  return matrix_code;
}

// Forms the reflector of column j in every lane. beta replaces the diagonal entry, and v replaces
// the entries below it (v is 1 on the diagonal).
INLINE void make_reflectors(__global realv* column, int j, int m, __global realv* tau) {
  realv tail = 0, raised_tail = 0;
  for (int first = j + 1; first < m; first += PLAIN_SUM_ROWS) {
    realv part = 0, raised_part = 0;
    for (int i = first; i < min(first + PLAIN_SUM_ROWS, m); ++i) {
      const realv x = column[i * 4], raised = x * RAISE;
      part = fma(x, x, part);
      raised_part = fma(raised, raised, raised_part);
    }
    tail += part;
    raised_tail += raised_part;
  }
  realv alpha = column[j * 4], inverse, taus;
  for (int l = 0; l < LANES; ++l) {
    const Reflector h =
        make_reflector(((REAL*)&alpha)[l], ((REAL*)&tail)[l], ((REAL*)&raised_tail)[l]);
    ((REAL*)&alpha)[l] = h.beta;
    ((REAL*)&inverse)[l] = h.inverse;
    ((REAL*)&taus)[l] = h.tau;
  }
  column[j * 4] = alpha;
  tau[j] = taus;
  for (int i = j + 1; i < m; ++i) column[i * 4] *= inverse;
}

// x := H_j x for four columns; those before number `first` (0..3) stay unchanged. v is column j
// below the diagonal, and 1 in row j.
INLINE void apply_reflector_to_pack(__global const realv* v, realv tau, int j, int m,
                                    __global realv* x, int first) {
  __global realv* top = x + j * 4;
  realv w0 = top[0], w1 = top[1], w2 = top[2], w3 = top[3];
  for (int begin = j + 1; begin < m; begin += PLAIN_SUM_ROWS) {
    realv p0 = 0, p1 = 0, p2 = 0, p3 = 0;
    for (int i = begin; i < min(begin + PLAIN_SUM_ROWS, m); ++i) {
      const realv v_i = v[i * 4];
      p0 = fma(v_i, x[i * 4], p0);
      p1 = fma(v_i, x[i * 4 + 1], p1);
      p2 = fma(v_i, x[i * 4 + 2], p2);
      p3 = fma(v_i, x[i * 4 + 3], p3);
    }
    w0 += p0;
    w1 += p1;
    w2 += p2;
    w3 += p3;
  }
  w0 = first > 0 ? (realv)0 : w0 * tau;
  w1 = first > 1 ? (realv)0 : w1 * tau;
  w2 = first > 2 ? (realv)0 : w2 * tau;
  w3 *= tau;
  top[0] -= w0;
  top[1] -= w1;
  top[2] -= w2;
  top[3] -= w3;
  for (int i = j + 1; i < m; ++i) {
    const realv v_i = v[i * 4];
    x[i * 4] = fma(-v_i, w0, x[i * 4]);
    x[i * 4 + 1] = fma(-v_i, w1, x[i * 4 + 1]);
    x[i * 4 + 2] = fma(-v_i, w2, x[i * 4 + 2]);
    x[i * 4 + 3] = fma(-v_i, w3, x[i * 4 + 3]);
  }
}

INLINE void factor_pack(__global realv* pack, int m, int n, int k, __global realv* tau) {
  for (int j = 0; j < k; ++j) {
    __global realv* column = pack + COLUMN_AT((index_t)m, j);
    make_reflectors(column, j, m, tau);
    if (j % 4 < 3)
      apply_reflector_to_pack(column, tau[j], j, m, pack + FOUR_AT((index_t)m, j), j % 4 + 1);
    for (int c = (j / 4 + 1) * 4; c < n; c += 4)
      apply_reflector_to_pack(column, tau[j], j, m, pack + FOUR_AT((index_t)m, c), 0);
  }
}

INLINE void form_q_of_pack(__global const realv* pack, int m, int k, int q_cols,
                           __global const realv* tau, __global realv* q) {
  for (index_t e = 0; e < (index_t)m * ((q_cols + 3) / 4 * 4); ++e) q[e] = 0;
  for (int c = 0; c < q_cols; ++c) q[COLUMN_AT((index_t)m, c) + (index_t)c * 4] = 1;
  for (int j = k - 1; j >= 0; --j)
    for (int c = j / 4 * 4; c < q_cols; c += 4)
      apply_reflector_to_pack(pack + COLUMN_AT((index_t)m, j), tau[j], j, m,
                              q + FOUR_AT((index_t)m, c), 0);
}

// signs[j] := the sign by which row j of R is multiplied. It overwrites tau, which is used up.
INLINE void choose_signs(__global const realv* pack, int m, int k, int positive,
                         __global realv* signs) {
  for (int j = 0; j < k; ++j) {
    const realv diagonal = pack[COLUMN_AT((index_t)m, j) + (index_t)j * 4];
    realv sign = 1;
    for (int l = 0; l < LANES; ++l)
      if (positive && ((const REAL*)&diagonal)[l] < 0) ((REAL*)&sign)[l] = -1;
    signs[j] = sign;
  }
}

INLINE void store_r_of_pack(__global realv* pack, FactorShape s, int l, __global realv* signs,
                            __global const int* codes, bool is_finite, __global STORED* r) {
  for (int j = 0; j < s.n; ++j) {
    const int e = scale_of(codes[j * LANES + l]);
    const REAL up = pow2(e / 2), up_again = pow2(e - e / 2);
    __global const REAL* column = lanes_of(pack + COLUMN_AT((index_t)s.m, j)) + l;
    for (int i = 0; i < s.r_rows; ++i) {
      STORED x = 0;
      if (i <= j && i < s.k)
        x = (STORED)(lanes_of(signs + i)[l] * column[(index_t)i * 4 * LANES] * up * up_again) +
            (STORED)0;
      r[(index_t)i * s.n + j] = is_finite ? x : (STORED)NAN;
    }
  }
}

INLINE void store_q_of_pack(__global realv* pack, FactorShape s, int l, __global realv* signs,
                            bool is_finite, __global STORED* q) {
  for (int j = 0; j < s.q_cols; ++j) {
    const REAL sign = j < s.k ? lanes_of(signs + j)[l] : (REAL)1;
    __global const REAL* column = lanes_of(pack + COLUMN_AT((index_t)s.m, j)) + l;
    for (int i = 0; i < s.m; ++i)
      q[(index_t)i * s.q_cols + j] =
          is_finite ? (STORED)(sign * column[(index_t)i * 4 * LANES]) : (STORED)NAN;
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void factor_vector(
    __global const STORED* a, __global STORED* q_out, __global STORED* r_out,
    __global int* magnitudes, __global realv* slots, FactorShape s, int groups) {
  const index_t a_vectors = (index_t)s.m * ((s.n + 3) / 4 * 4);
  const index_t q_vectors = (index_t)s.m * ((s.q_cols + 3) / 4 * 4);
  __global realv* pack = slots + get_group_id(0) * (a_vectors + q_vectors + s.k + s.n);
  __global realv *q = pack + a_vectors, *tau = q + q_vectors;
  __global int* codes = (__global int*)(tau + s.k);
  const index_t step = (index_t)groups * LANES;
  for (index_t first = (index_t)get_group_id(0) * LANES; first < s.count; first += step) {
    const int count = (int)min((index_t)LANES, s.count - first);
    for (index_t e = FOUR_AT((index_t)s.m, s.n); e < a_vectors; ++e) pack[e] = 0;
    // Lanes without a matrix of their own compute the first matrix again.
    for (int l = 0; l < LANES; ++l) {
      const index_t matrix = first + (l < count ? l : 0);
      const int code = load_lane(a + matrix * s.m * s.n, s.m, s.n, l, pack, codes);
      if (l < count) magnitudes[matrix] = code;
    }
    factor_pack(pack, s.m, s.n, s.k, tau);
    if (s.q_cols > 0) form_q_of_pack(pack, s.m, s.k, s.q_cols, tau, q);
    choose_signs(pack, s.m, s.k, s.positive, tau);
    for (int l = 0; l < count; ++l) {
      const index_t matrix = first + l;
      const bool is_finite = magnitudes[matrix] != MAGNITUDE_NON_FINITE;
      store_r_of_pack(pack, s, l, tau, codes, is_finite, r_out + matrix * s.r_rows * s.n);
      if (s.q_cols > 0) store_q_of_pack(q, s, l, tau, is_finite, q_out + matrix * s.m * s.q_cols);
    }
  }
}
