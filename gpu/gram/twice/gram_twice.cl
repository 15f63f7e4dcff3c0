// SPDX-License-Identifier: Apache-2.0
// gram_twice.cl: QR in float64 by Gram matrices in two passes (CholeskyQR2), in squares of 128
// columns, for devices that multiply blocks of float64 at full speed (LAPACK potrf, trsm).
//
//   pass 0:  A'A = L1 L1',    Q1 = A L1'^-1        pass 1:  Q1'Q1 = L2 L2',  Q = Q1 L2'^-1
//   R = (L1 L2)'
//
//   launches of a pass, in this order                                   one group per
//   sum_slab         X'X over a slab of rows, X = A or Q1               slab x tile
//   add_slabs        the sum of the slabs, if there are several         part of a tile
//   settle_gram      ||G - I|| in the second pass                       tile
//   begin_series     in the second pass: L2 if G is close to I          tile on the diagonal
//   for every square b, unless L2 is known:
//     factor_squares G(d, c) -= L(d, b - 1) L(c, b - 1)'  b <= c <= d   square, pairs of tiles
//                    and one group factors the square: G(b, b) -> L(b, b)
//     divide_panel   L(c, b) L(b, b)' = G(c, b)           c > b         tile
//   in the first pass:
//   measure_first_inverse  ||D L1^-1||, R alone of many rows   block row of L1^-1
//   judge_first_pass are its factors final?                             matrix
//   for every square b, from left to right:
//     update_rows    X(:, b) -= Q(:, l) L(b, l)'          l < b         64 rows x square
//     divide_rows    Q(:, b) L(b, b)' = X(:, b)                         64 rows
//   store_first_factor  in the first pass: R := L1'                     tile
//   after both passes:
//   multiply_factors R(b, c)' = sum of R(l, c)' L2(l, b)  b <= l <= c   tile below the diagonal
//   turn_factor      R from its transpose                               tile
//   finish_twice     the route                                          matrix
// sum_squares and update_big_rows (big_groups.clh) are sum_slab and update_rows in squares, for
// devices with enough of them. The kernels of a matrix whose factors are final (departure.clh), or
// which is known to be refused, return at once.
//
// The guard. Q1 is stored before Q1'Q1 is computed from it, and so ||G - I||, G = Q1'Q1, is
// measured. If it is at most 1/4, then the condition of Q1 is at most sqrt(5/3), and the second
// pass loses nothing: with u = 2^-53,
//   - the substitution gives |A - Q1 R1| <= c n u |Q1| |R1|, whatever the condition of A (Higham,
//     Accuracy and Stability of Numerical Algorithms, 8.1), and likewise |Q1 - Q R2| <= c n u |Q|
//     |R2| and |R - R2 R1| <= c n u |R2| |R1|. All norms here are within a small factor of 1 and of
//     ||A||, so that ||A - Q R|| <= c' n u ||A||;
//   - ||I - Q'Q|| is at most the error of G and of its factor, c (m + n) u ||Q1||^2, times
//     ||R2^-1||^2 <= 4/3, plus c n u from the substitution (Yamamoto, Nakatsukasa, Yanagisawa,
//     Fukaya, ETNA 44, 2015, theorem 3.3).
// The sums run over slabs of rows, on the diagonal also over parts of 64 rows (gram_sums.clh), and
// errors grow like the square root of the number of terms. A pivot that is not positive gives NaN,
// and the matrix is refused at once. The test passes for conditions (columns scaled to norm 1) up
// to some 1e7. Norms of columns outside 2^-450 .. 2^500 also fail, because their squares or
// products may underflow or overflow; further passes scale them. Pivots outside a narrower range
// are scaled here (cholesky.clh).
//
// Defines, set in gram_twice.cpp            range      meaning
//   SUB_GROUP_BODY, MMA                                common.clh, mma.clh
//   VECTOR                                  1, 2       copy.clh; divides n
//   COLUMNS                                 1..129     columns of A; 129 stands for more
// A is m x n, m >= n. Signs of R's diagonal: positive.
#ifndef COLUMNS
#define COLUMNS 129
#endif
#include "gpu/gram/twice/decide.clh"
#include "gpu/gram/twice/gram_sums.clh"
#include "gpu/gram/twice/products_of_r.clh"
#include "gpu/gram/twice/rows.clh"
#include "gpu/gram/twice/big_groups.clh"

// ---- finish

INLINE void store_nan_twice(__global double* to, index_t count, int item) {
  for (index_t i = item; i < count; i += GROUP_SIZE) to[i] = NAN;
}

// Groups: one per matrix.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void finish_twice(
    __global double* q, __global double* r, __global int* magnitudes, __global int* routes,
    __global double* work, FactorShape shape, TwiceShape twice, int first) {
  __local double sums[WARPS], room[32];
  __local ulong all[GROUP_SIZE];
  const Place at = place_of(room);
  const index_t matrix = first + get_group_id(0);
  __global const double* slot = slot_of(work, twice, get_group_id(0));
  const bool is_final = is_done(slot, twice), is_lost = slot[DONE_AT(twice, 1)] == IS_LOST;
  const double departure = sum_departures(&at, slot, twice, sums);
  const bool can_square = norms_are_in_range(&at, slot, twice, shape.n, sums);
  ulong bits = 0;
  for (int i = at.item; i < twice.slabs * twice.tiles; i += GROUP_SIZE) {
    bits = max(bits, as_ulong(slot[twice.largest + i]));
  }
  all[at.item] = bits;
  sync_group();
  for (int width = GROUP_SIZE / 2; width > 0; width /= 2) {
    if (at.item < width) all[at.item] = max(all[at.item], all[at.item + width]);
    sync_group();
  }
  const double largest = as_double(all[0]);
  const bool is_finite = largest < INFINITY;
  if (at.item == 0) {
    const bool is_good = !is_lost && (is_final || (departure <= MOST_DEPARTURE && can_square));
    const int route = is_final ? ROUTE_FIRST_PASS : ROUTE_SECOND_PASS;
    routes[matrix] = is_finite && !is_good ? ROUTE_REFLECTORS : route;
    magnitudes[matrix] = magnitude_code(largest, is_finite);
  }
  if (!is_finite) {
    store_nan_twice(r + matrix * shape.n * shape.n, shape.n * (index_t)shape.n, at.item);
    if (shape.q_cols > 0) {
      store_nan_twice(q + matrix * shape.m * shape.n, shape.m * (index_t)shape.n, at.item);
    }
  }
}
