// SPDX-License-Identifier: Apache-2.0
// complex.cl: QR of complex matrices by Householder reflectors in float64, one group of work-items
// per matrix (LAPACK zgeqr2, zung2r).
//
//   for each column k:   alpha = x_kk, beta = -sign(Re alpha) ||x(k:m, k)||, v = x / (alpha - beta)
//                        H = I - tau v v^H, where v_k = 1; R_kk = beta, which is real
//                        x := H^H x for the columns right of k
//   for each column k, backward:  x := H x for the columns right of k, column k := H e_k
//
// LAPACK's tau is t = ((beta - Re alpha) / beta, -Im alpha / beta). H is unitary where
// 2 Re tau = |tau|^2 v^H v; the rounded v has its own v^H v, so that t is multiplied by
// 2 Re t / (|t|^2 v^H v).
//
// The group has GROUP / TEAM teams, and each team takes a column at a time: its work-items share
// the rows. The matrix is stored by columns, with the columns that Q has beyond A's, in local
// memory or in `work`.
//
// Defines, set in complex.cpp   range           meaning
//   STORED, REAL, FLAGGED                       common.clh: the types of real and imaginary parts
//   GROUP                       32..256         work-items of a group
//   TEAM                        1..32           work-items of a team
//   COLUMN_PLACES               1..2048         at least the columns of A and of Q
//   LOCAL_ENTRIES               0..1024         of local memory for the matrix; 0: it is in `work`
// Local memory: 16 LOCAL_ENTRIES + 32 GROUP + 12 COLUMN_PLACES + 4 bytes.
// One launch: factor_complex, one group per matrix. `work` has m max(n, q_cols) complex numbers for
// a matrix, and `taus` has k.
#include "gpu/common/common.clh"

#ifndef GROUP
#define GROUP 64
#endif
#ifndef TEAM
#define TEAM 2
#endif
#ifndef COLUMN_PLACES
#define COLUMN_PLACES 32
#endif
#ifndef LOCAL_ENTRIES
#define LOCAL_ENTRIES 0
#endif
#define COLUMN_TEAMS (GROUP / TEAM)
#define IN_MATRIX_GROUPS GROUP_OF(GROUP)
#if LOCAL_ENTRIES > 0
#define SPACE __local
#else
#define SPACE __global
#endif
// A column whose norm is below 2^-450 where its largest entry was 1 counts as zero.
#define NO_SQUARES 0x1p-900

typedef JOIN(STORED, 2) stored2;

// x y and conj(x) y, both added to sum.
INLINE real2 add_product(real2 sum, real2 x, real2 y) {
  return (real2)(fma(-x.y, y.y, fma(x.x, y.x, sum.x)), fma(x.y, y.x, fma(x.x, y.y, sum.y)));
}
INLINE real2 add_conjugate_product(real2 sum, real2 x, real2 y) {
  return (real2)(fma(x.y, y.y, fma(x.x, y.x, sum.x)), fma(-x.y, y.x, fma(x.x, y.y, sum.y)));
}

typedef struct {
  real2 tau, inverse;  // v = x * inverse below its leading 1
  REAL beta;
} ComplexReflector;

// tail = sum |x_i|^2 over the entries below alpha. H = I where no more than rounding errors are
// left, with a norm of at most `least`.
INLINE ComplexReflector make_complex_reflector(real2 alpha, REAL tail, REAL least) {
  ComplexReflector h = {(real2)(0), (real2)(0), alpha.x};
  const REAL squares = fma(alpha.x, alpha.x, fma(alpha.y, alpha.y, tail));
  if (squares < NO_SQUARES) h.beta = 0;
  if (squares <= least * least || (tail == 0 && alpha.y == 0)) return h;
  h.beta = alpha.x >= 0 ? -sqrt(squares) : sqrt(squares);
  const real2 away = (real2)(alpha.x - h.beta, alpha.y);  // |alpha - beta| >= |beta|
  const REAL distance = fma(away.x, away.x, away.y * away.y);
  h.inverse = (real2)(away.x / distance, -away.y / distance);
  const real2 t = (real2)(-away.x / h.beta, -away.y / h.beta);
  const REAL size = fma(t.x, t.x, t.y * t.y), of_v = 1 + tail / distance;
  h.tau = t * (2 * t.x / (size * of_v));
  return h;
}

// The sum of `own` over the group, for every work-item.
INLINE REAL total_of_group(__local REAL* sums, REAL own) {
  const int item = get_local_id(0);
  sums[item] = own;
  for (int width = GROUP / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < width) sums[item] += sums[item + width];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const REAL sum = sums[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

// x := x - factor v (v^H x) for the columns k + 1 .. columns - 1, where v is below the diagonal of
// column k, and its entry there is 1. All work-items of the group call it.
INLINE void reflect_columns(SPACE real2* x, int rows, int k, int columns, real2 factor,
                            __local real2* sums) {
  const int item = get_local_id(0), team = item / TEAM, lane = item % TEAM;
  SPACE const real2* v = x + (index_t)k * rows;
  int turn = 0;  // teams that are ahead write into the other half of `sums`
  for (int first = k + 1; first < columns; first += COLUMN_TEAMS, turn = GROUP - turn) {
    const int col = first + team;
    const int end = col < columns ? rows : 0;  // a team past the last column reads nothing
    SPACE real2* own = x + (index_t)col * rows;
    real2 sum = end > 0 && lane == 0 ? own[k] : (real2)(0);
    for (int i = k + 1 + lane; i < end; i += TEAM) sum = add_conjugate_product(sum, v[i], own[i]);
    sums[turn + item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum = (real2)(0);
    for (int l = 0; l < TEAM; ++l) sum += sums[turn + team * TEAM + l];
    const real2 change = add_product((real2)(0), -factor, sum);
    if (end > 0 && lane == 0) own[k] += change;
    for (int i = k + 1 + lane; i < end; i += TEAM) own[i] = add_product(own[i], change, v[i]);
  }
  barrier(FENCE);
}

INLINE stored2 scaled_back(real2 x, int e) {
  return (stored2)((STORED)scale_by(x.x, e), (STORED)scale_by(x.y, e));
}

// The magnitude codes of the columns of A. Returns that of the matrix, which is the largest.
INLINE int find_codes(__global const stored2* a, __local int* codes, __local int* largest, int rows,
                      int n) {
  const int item = get_local_id(0);
  if (item == 0) *largest = MAGNITUDE_ZERO;
  for (int col = item; col < n; col += GROUP) codes[col] = MAGNITUDE_ZERO;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int e = item; e < rows * n; e += GROUP) {
    const stored2 z = a[e];
    const int is_finite = isfinite(z.x) && isfinite(z.y);
    atomic_max(&codes[e % n], magnitude_code(fmax(fabs(z.x), fabs(z.y)), is_finite));
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int col = item; col < n; col += GROUP) atomic_max(largest, codes[col]);
  barrier(CLK_LOCAL_MEM_FENCE);
  return *largest;
}

__kernel IN_MATRIX_GROUPS void factor_complex(__global const stored2* a, __global stored2* q_or_tau,
                                               __global stored2* r_or_v, __global int* magnitudes,
                                               __global real2* work, __global real2* taus,
                                               FactorShape shape FLAGS_ARGUMENT) {
  __local real2 sums[2 * GROUP];
  __local REAL signs[COLUMN_PLACES];
  __local int codes[COLUMN_PLACES], largest;
  const index_t matrix = get_group_id(0);
  const int item = get_local_id(0), m = shape.m, n = shape.n, k_end = shape.k;
  if (!IS_TO_DO(matrix)) return;
  a += matrix * m * n;
  taus += matrix * k_end;
#if LOCAL_ENTRIES > 0
  __local real2 kept[LOCAL_ENTRIES];
  __local real2* x = kept;
#else
  __global real2* x = work + matrix * m * max(n, shape.q_cols);
#endif

  const int code = find_codes(a, codes, &largest, m, n);
  const bool is_finite = code != MAGNITUDE_NON_FINITE;
  if (item == 0) magnitudes[matrix] = code;
  for (int e = item; e < m * n; e += GROUP) {
    const int scale = -scale_of(codes[e % n]);
    x[(index_t)(e % n) * m + e / n] = (real2)(scale_by(a[e].x, scale), scale_by(a[e].y, scale));
  }
  barrier(FENCE);

  for (int k = 0; k < k_end; ++k) {
    SPACE real2* own = x + (index_t)k * m;
    REAL squares = 0;
    for (int i = k + 1 + item; i < m; i += GROUP)
      squares = fma(own[i].x, own[i].x, fma(own[i].y, own[i].y, squares));
    const REAL tail = total_of_group((__local REAL*)sums, squares);
    const ComplexReflector h = make_complex_reflector(own[k], tail, LEAST_REST(m));
    for (int i = k + 1 + item; i < m; i += GROUP)
      own[i] = add_product((real2)(0), own[i], h.inverse);
    barrier(FENCE);
    if (item == 0) {
      own[k] = (real2)(h.beta, 0);
      taus[k] = h.tau;
      signs[k] = shape.positive && h.beta < 0 ? (REAL)-1 : (REAL)1;
    }
    reflect_columns(x, m, k, n, (real2)(h.tau.x, -h.tau.y), sums);
  }
  barrier(FENCE);

  const stored2 no_number = (stored2)(NAN, NAN);
  if (shape.raw) {
    q_or_tau += matrix * k_end;
    r_or_v += matrix * m * n;
    for (int k = item; k < k_end; k += GROUP) {
      const real2 tau = taus[k];
      q_or_tau[k] = is_finite ? (stored2)((STORED)tau.x, (STORED)tau.y) : no_number;
    }
    for (int e = item; e < m * n; e += GROUP) {
      const int row = e / n, col = e % n;
      const int scale = row <= col ? scale_of(codes[col]) : 0;
      r_or_v[e] = is_finite ? scaled_back(x[(index_t)col * m + row], scale) : no_number;
    }
    return;
  }
  r_or_v += matrix * shape.r_rows * n;
  for (int e = item; e < shape.r_rows * n; e += GROUP) {
    const int row = e / n, col = e % n;
    stored2 z = (stored2)(0);
    if (row < k_end && row <= col)
      z += scaled_back(x[(index_t)col * m + row] * signs[row], scale_of(codes[col]));
    r_or_v[e] = is_finite ? z : no_number;
  }
  if (shape.q_cols == 0) return;
  barrier(FENCE);

  for (int e = item; e < (shape.q_cols - k_end) * m; e += GROUP)
    x[(index_t)k_end * m + e] = (real2)(e % m == k_end + e / m ? 1 : 0, 0);
  barrier(FENCE);
  for (int k = k_end - 1; k >= 0; --k) {
    SPACE real2* own = x + (index_t)k * m;
    const real2 tau = taus[k];
    reflect_columns(x, m, k, shape.q_cols, tau, sums);
    for (int i = item; i < m; i += GROUP) {
      const real2 z = add_product((real2)(0), -tau, own[i]);
      own[i] = i < k ? (real2)(0) : i == k ? (real2)(1 - tau.x, -tau.y) : z;
    }
    barrier(FENCE);
  }
  q_or_tau += matrix * m * shape.q_cols;
  for (int e = item; e < m * shape.q_cols; e += GROUP) {
    const int row = e / shape.q_cols, col = e % shape.q_cols;
    const real2 z = x[(index_t)col * m + row] * (col < k_end ? signs[col] : (REAL)1);
    q_or_tau[e] = is_finite ? (stored2)((STORED)z.x, (STORED)z.y) : no_number;
  }
}
