// SPDX-License-Identifier: Apache-2.0
// narrow_passes.cl: QR of float32 matrices of at most 128 columns that the guard of a variant by
// Gram matrices has refused, by more passes of the same kind (shifted CholeskyQR). Factors are
// computed in float64, and rows stay in float32. A matrix may have any condition and any rank.
//
//   pass 0:  L L' = A'A + s diag(A'A)    X := (A + E) L'^-1, rounded;  R := L'
//   pass p:  L L' = X'X                  Q := X L'^-1, R := L' R, if the guard of tall.cl holds
//            else, with the shift:       X := X L'^-1, rounded;        R := L' R
//
// E is noise of about a quarter of a rounding error of float32 in each column. A column of zeros is
// noise alone in A + E, and is zero in R.
//
//   launches, in this order                                                  one group per
//   in each pass:
//   sum_narrow        A'A or X'X over one slab of rows (not A'A after tall)  slab
//   add_narrow_slabs  the sum of several slabs, or in pass 0 of those of     32 entries
//                     tall
//   factor_narrow     L and its inverse, if this pass may be the last one    matrix
//   factor_narrow     the same with the shift, if it is not                  matrix
//   divide_narrow_a   (A + E) L'^-1, in pass 0                               rows
//   divide_narrow_x   X L'^-1, in other passes                               rows
//   at the end:
//   finish_narrow     R; the route                                           16 rows of R
//
// Why it is right. Let u be 2^-53, s = 16 t u, where t bounds the roundings of an entry of A'A
// (tall.cpp), and let columns be scaled by powers of two to norms near 1.
//   - The orthogonality. The guard of tall.cl proves it for the last pass, whatever X is.
//   - The residual. In each pass X L' is what X was, plus an error of which each column is at most
//     2^-24 sqrt(n), from rounding X, and n u ||X|| ||L^-1|| ||L||, from the product: L^-1 is at
//     most s^-1/2 < 2^21 in norm, so that this is below 2^-24, too. E has at most 1.5 x 2^-25. The
//     bar is 16 x 2^-24 or more.
//   - What remains is that the condition becomes small. L'^-1 divides singular values sigma of
//     A + E by sqrt(sigma^2 + s), and the noise keeps sigma near 2^-25 or above: the condition of X
//     is some 2^25 s^1/2 < 2^8, and more for square matrices, since noise that is square has small
//     singular values too. These may take a third pass. If a pivot is not positive in spite of the
//     shift, the matrix stays refused.
// A matrix without an entry below its diagonal is its own R, up to signs, and Q is the identity: so
// Householder's method has it, and so it stays exact.
//
// The noise at (i, j) follows from i and j alone: a matrix has the same bits in any batch.
//
// Defines, set in narrow_passes.cpp  range        meaning
//   STORED, REAL, SUB_GROUP_BODY                  common.clh; STORED is float, REAL is double
//   COLUMNS_OF_A                     1..128       n
//   GRAM_BODY                        1, 2         tall_sums.clh
//   GRAM_GROUP                       128, 256     tall_sums.clh; sum_narrow
//   FACTOR_GROUP                     256          tall_square.clh; factor_narrow
//   PRODUCT_GROUP                    128, 256     tall_product.clh; both divisions
// A is m x n, m >= n. Signs of R's diagonal: positive.
#include "gpu/common/tall_sums.clh"  // first: it decides on MMA

#include "gpu/common/own_r.clh"
#include "gpu/reflectors/tall/tall_square.clh"
#if GRAM_BODY == 2
#include "gpu/reflectors/tall/tall_product.clh"
#else
#include "gpu/reflectors/tall/tall_plain_product.clh"
#endif

#ifndef PRODUCT_GROUP
#define PRODUCT_GROUP 256
#endif

// The state of a matrix: how many passes it took; or not yet finished, its own R, or failed.
#define STATE_OPEN 0
#define STATE_OWN_R (-1)
#define STATE_FAILED (-2)

INLINE int state_of(__global const double* slot, NarrowShape at) { return (int)slot[at.state]; }

// X after a pass.
INLINE __global STORED* rows_after(int pass, __global double* slot, NarrowShape at) {
  return (__global STORED*)(slot + at.rows + pass % 2 * at.rows_apart);
}

// The sums of one slab; in pass 0 also whether A has an entry below its diagonal there. Groups: for
// each matrix of the list, slabs.
__kernel __attribute__((reqd_work_group_size(GRAM_GROUP, 1, 1))) void sum_narrow(
    __global const STORED* a, __global const int* list, __global double* work, FactorShape shape,
    NarrowShape at) {
  __local double scratch[GRAM_SCRATCH] __attribute__((aligned(16)));
  __local int below;
  index_t index;
  const int slab = split_group(at.slabs, &index), first = slab * at.slab_rows;
  __global double* slot = work + index * at.slot;
  __global const STORED* rows = a + list[at.first + index] * ((index_t)shape.m * N);
  if (at.pass > 0) rows = rows_after(at.pass - 1, slot, at);
  const bool is_open = at.pass == 0 || state_of(slot, at) == STATE_OPEN;
  const int last = is_open ? min(first + at.slab_rows, shape.m) : first;
  float largest = 0;
  if (get_local_id(0) == 0) below = 0;
  sum_gram_rows(slot + at.slab_sums + slab * (index_t)(N * N), &largest, rows, 0, first,
                at.has_sums ? first : last, 2 * slab >= at.slabs, scratch);
  const index_t begin = first * (index_t)N, end = at.pass == 0 ? last * (index_t)N : begin;
  const int found = has_entry_below(rows, N, begin, end, get_local_id(0), GRAM_GROUP);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (found) atomic_max(&below, 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) == 0 && at.pass == 0) slot[at.below + slab] = below;
}

// The sums of all slabs. They are those of sum_narrow, or in pass 0 those that the variant before
// has left, of all matrices of the batch. Groups: for each matrix of the list, SUM_GROUPS.
__kernel IN_PLAIN_GROUPS void add_narrow_slabs(__global const int* list,
                                               __global const double* left_sums,
                                               __global double* work, NarrowShape at) {
  __local double scratch[PLAIN_GROUP];
  index_t index;
  const int group = split_group(SUM_GROUPS, &index);
  __global double* slot = work + index * at.slot;
  const bool is_open = at.pass == 0 || state_of(slot, at) == STATE_OPEN;
  const index_t left = list[at.first + index] * ((index_t)at.slabs * (N * N));
  add_tall_slabs(at.has_sums ? left_sums + left : slot + at.slab_sums, slot + at.gram,
                 is_open ? at.slabs : 0, group, scratch);
}

// Computes L' and its inverse from A'A or X'X, and the state. Without the shift it does so only if
// the guard holds. Groups: one for each matrix of the list.
__kernel __attribute__((reqd_work_group_size(FACTOR_GROUP, 1, 1))) void factor_narrow(
    __global double* work, FactorShape shape, NarrowShape at) {
  __local double rows[2 * 16 * SQUARE_COLUMNS + 16], roots[16 * SQUARE_COLUMNS],
      scratch[FACTOR_GROUP];
  __local double up[16 * SQUARE_COLUMNS], down[16 * SQUARE_COLUMNS];  // powers of two
  __local int below;
  const int item = get_local_id(0), ty = item / 16, tx = item % 16;
  __global double* slot = work + get_group_id(0) * at.slot;
  const bool is_first = at.pass == 0;
  if (item == 0) below = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int slab = item; slab < at.slabs && is_first; slab += FACTOR_GROUP) {
    if (slot[at.below + slab] != 0) atomic_max(&below, 1);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const bool is_own_r = is_first && below == 0;
  const bool is_open = !is_own_r && (is_first || state_of(slot, at) == STATE_OPEN);
  if (is_own_r && item == 0) slot[at.state] = STATE_OWN_R;
  if (!is_open) return;
  __global const double* gram = slot + at.gram;
  double trace_part = 0;
  if (item < 16 * SQUARE_COLUMNS) {
    const double square = item < N ? gram[item * (N + 1)] : 0.0;
    const int exponent = square > 0 ? ilogb(square) >> 1 : 0;
    up[item] = pow2_double(exponent);
    down[item] = pow2_double(-exponent);
    trace_part = square * down[item] * down[item];
    if (is_first) {
      // A column that is zero is noise of norm 1 in A + E; the sign says that it is zero in R.
      const double size = square > 0 ? at.noise * sqrt(square) : -1.0;
      slot[at.amplitudes + item] = item < N ? size * rsqrt((double)shape.m) : 0.0;
    }
  }
  // Also for global memory: all have read the state before it changes.
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  Square g;
  load_gram(g, gram, down);
#pragma unroll
  for (int u = 0; u < SQUARE_ROWS; ++u) {
#pragma unroll
    for (int w = 0; w < SQUARE_COLUMNS; ++w) {
      if (ty + FACTOR_DOWN * u == tx + 16 * w) {
        const double shifted = fma(at.is_shifted ? at.shift : 0.0, g[u][w], g[u][w]);
        g[u][w] = shifted > 0 || !at.is_shifted ? shifted : 1.0;
      }
    }
  }
  const bool is_good = eliminate_gram(g, rows, 0.0);
  take_roots(g, is_good, roots);
  const double trace = sum_of_factor_group(trace_part, scratch);
  barrier(CLK_LOCAL_MEM_FENCE);
  const double squares = sum_of_factor_group(squares_of_inverse(g, roots), scratch);
  const bool is_last = is_good && !at.is_shifted && squares * trace <= at.most;
  if (item == 0) {
    slot[at.state] = is_last ? at.pass + 1 : is_good || !at.is_shifted ? STATE_OPEN : STATE_FAILED;
  }
  __global double* factor = slot + at.factors + at.pass * (N * N);
  __global double* inverse = slot + at.inverse;
  const bool stores = is_last || at.is_shifted;
#pragma unroll
  for (int u = 0; u < SQUARE_ROWS; ++u) {
#pragma unroll
    for (int w = 0; w < SQUARE_COLUMNS; ++w) {
      const int i = ty + FACTOR_DOWN * u, j = tx + 16 * w;
      if (i < N && j < N && stores) {
        // Entry (j, i) of L'^-1 comes from entry (i, j) of L^-1.
        inverse[j * N + i] = j > i ? 0.0 : (i == j ? 1 : g[u][w]) * roots[i] * down[j];
        factor[i * N + j] = j < i ? 0.0 : g[u][w] * roots[i] * up[j];
      }
    }
  }
}

// How many rows of a matrix this pass divides.
INLINE int divided_rows(__global const double* slot, FactorShape shape, NarrowShape at) {
  const int state = state_of(slot, at);
  return state == STATE_OPEN || (state == at.pass + 1 && at.wants_q) ? shape.m : 0;
}

#if GRAM_BODY == 2
#define DIVIDE_NARROW(from, to, amplitudes, rows) \
  multiply_rows(from, to, slot + at.inverse, 0, amplitudes, part, at.parts, rows)
#else
#define DIVIDE_NARROW(from, to, amplitudes, rows)                                                 \
  __local wide_t left[PRODUCT_ROWS * LEFT_STRIDE], right[16 * 16 * ACROSS];                       \
  _Pragma("unroll 1") for (int row = part * PRODUCT_ROWS; row < rows;                             \
                           row += at.parts * PRODUCT_ROWS) {                                      \
    const index_t e = row * (index_t)N;                                                           \
    const Rows place = {from + e, to + e, 0, false, true, amplitudes, row};                       \
    multiply_rows_of_q(&place, slot + at.inverse, 0, min(PRODUCT_ROWS, rows - row), left, right); \
  }
#endif

// X of the current pass, or Q if it is the last one. Groups: for each matrix of the list, `parts`.
// In pass 0, Q is the identity where A is its own R.
__kernel __attribute__((reqd_work_group_size(PRODUCT_GROUP, 1, 1))) void divide_narrow_a(
    __global const STORED* a, __global STORED* q, __global const int* list, __global double* work,
    FactorShape shape, NarrowShape at) {
  index_t index;
  const int part = split_group(at.parts, &index);
  __global double* slot = work + index * at.slot;
  const index_t entries = shape.m * (index_t)N, matrix = list[at.first + index];
  a += matrix * entries;
  q += matrix * entries;
  const index_t end = state_of(slot, at) == STATE_OWN_R && at.wants_q ? entries : 0;
  for (index_t e = part * PRODUCT_GROUP + get_local_id(0); e < end; e += at.parts * PRODUCT_GROUP) {
    q[e] = e / N != e % N ? (STORED)0 : a[e] < 0 ? (STORED)-1 : (STORED)1;
  }
  const int rows = divided_rows(slot, shape, at);
  __global STORED* x = rows_after(0, slot, at);
  DIVIDE_NARROW(a, x, slot + at.amplitudes, rows);
}
__kernel __attribute__((reqd_work_group_size(PRODUCT_GROUP, 1, 1))) void divide_narrow_x(
    __global STORED* q, __global const int* list, __global double* work, FactorShape shape,
    NarrowShape at) {
  index_t index;
  const int part = split_group(at.parts, &index);
  __global double* slot = work + index * at.slot;
  __global const STORED* x = rows_after(at.pass - 1, slot, at);
  const bool goes_on = state_of(slot, at) == STATE_OPEN;
  __global STORED* to =
      goes_on ? rows_after(at.pass, slot, at) : q + list[at.first + index] * ((index_t)shape.m * N);
  const int rows = divided_rows(slot, shape, at);
  DIVIDE_NARROW(x, to, 0, rows);
}

// Stores R, the product of the factors of all passes, and the route of each finished matrix.
// Groups: for each matrix of the list, strips of STRIP_OF_R rows of R.
#define STRIP_OF_R 16
__kernel IN_PLAIN_GROUPS void finish_narrow(__global const STORED* a, __global STORED* r,
                                            __global const int* list, __global int* routes,
                                            __global const double* work, FactorShape shape,
                                            NarrowShape at) {
  __local double strip[2][STRIP_OF_R * N];
  index_t index;
  const int first = split_group((N + STRIP_OF_R - 1) / STRIP_OF_R, &index) * STRIP_OF_R;
  const int item = get_local_id(0), rows = min(STRIP_OF_R, N - first);
  __global const double* slot = work + index * at.slot;
  const index_t matrix = list[at.first + index];
  a += matrix * shape.m * N;
  r += (matrix * N + first) * N;
  const int state = state_of(slot, at);
  const bool is_own_r = state == STATE_OWN_R;
  const int factors = max(state, 0), entries = factors > 0 || is_own_r ? rows * N : 0;
  __global const double* factor = slot + at.factors + (index_t)(factors - 1) * (N * N);
  for (int e = item; e < entries; e += PLAIN_GROUP) {
    strip[0][e] = is_own_r ? 0.0 : factor[first * N + e];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
  for (int f = 1; f < factors; ++f) {
    factor -= N * N;
    __local const double* from = strip[(f - 1) % 2];
    for (int e = item; e < entries; e += PLAIN_GROUP) {
      const int row = e / N, col = e % N;
      double sum = 0;
#pragma unroll 4
      for (int k = first + row; k <= col; ++k) {
        sum = fma(from[row * N + k], factor[k * N + col], sum);
      }
      strip[f % 2][e] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int e = item; e < entries; e += PLAIN_GROUP) {
    const int i = first + e / N, j = e % N;
    STORED x = (STORED)strip[max(factors - 1, 0) % 2][e];
    if (is_own_r) {
      x = a[i * (N + 1)] >= 0 ? a[i * N + j] : -a[i * N + j];
    } else if (slot[at.amplitudes + j] < 0) {
      x = 0;
    }
    r[e] = i <= j ? x : (STORED)0;
  }
  if (entries > 0 && first == 0 && item == 0) routes[matrix] = ROUTE_FURTHER_PASSES;
}
