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
// For R alone Q1 is in work memory, and Q is not computed.
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
//   - otherwise, or if a pivot is not positive, the matrix is refused. Further passes or reflectors
//     go on. If the square of a column's norm is outside LEAST_SQUARE .. MOST_SQUARE, the route is
//     ROUTE_SCALED in float64, and this kernel goes on with SCALED, for matrices whose scaled
//     columns are in the place of Q (refused.cl).
//
// With REFUSED the kernel takes real matrices that the guard of any variant has refused, through
// more passes of the same kind (shifted CholeskyQR). They may have any condition and any rank.
//
//   pass 0:  L L' = A'A + s diag(A'A)    X := (A + E) L'^-1, stored;   R := L'
//   pass p:  as above, with Q1 := X, where d is at most 1/4; else with the shift:
//            L L' = X'X + s diag(X'X)    X := X L'^-1, stored;         R := L' R
//
// E is noise of about a quarter of a rounding error of float32 in each column, or of two of
// float64. A column of zeros is noise alone in A + E, and is zero in R. Why it is right: let u be
// 2^-53, s = 16 t u, where t bounds the roundings of an entry of A'A.
//   - The orthogonality: the guard and its proof are those above, whatever X is.
//   - The residual: in each pass X L' is what X was, plus an error of which each column is at most
//     a rounding error of the type times sqrt(n), from storing X, and c n u ||X|| ||L||, from
//     the substitution. E has at most 1.5 x 2^-25, or 1.5 x 2^-52.
//   - What remains is that the condition becomes small: narrow_passes.cl says why the second pass
//     is the last one of most float32 matrices. In float64 noise is as small as 2^-52, so that the
//     condition of X is some 2^26 at first, and a further shifted pass makes it small. Pivots are
//     factored column by column: the shift is above their errors, too. If `passes` are not enough,
//     the matrix stays refused.
// If the squared norm of a column is outside the range, scaled columns begin again
// (column_range.clh). A matrix without an entry below its diagonal is its own R, up to signs, and Q
// is the identity: so Householder's method has it, and so it stays exact. The noise at (i, j)
// follows from i and j alone: a matrix has the same bits in any batch.
//
// Local memory: stages of rows of X; or two columns of blocks of G and room for a pivot; or two
// columns of L. With REFUSED also the noise of each column. Slot: two factors and X' = L^-1 of the
// pivots, in blocks of 16 x 16, and with REFUSED X if Q is not wanted. The factors are L1 and L2,
// or the product of those of all passes so far and that of this pass. A group takes one matrix
// after another.
//
// Defines, set in gram_group.cpp            range      meaning
//   SUB_GROUP_BODY, MMA                                common.clh, mma.clh
//   VECTOR                                  1, 2       copy.clh; divides n
//   BLOCKS                                  1..10      blocks of 16 columns
//   LAST_HALVES                             1, 2       halves of 8 columns of the last of them
//   SPARE                                   0, 1       group_blocks.clh
//   ELEMENT_PARTS                           1, 2       complex_blocks.clh; 1 with REFUSED
//   SCALED                                  0, 1       1: matrices with scaled columns; set in
//                                                      refused.cpp
//   REFUSED                                 0, 1       1: the matrices of a list
//   STORED                                             common.clh
// A is m x n, m >= n. Signs of R's diagonal: positive. Where A is complex, n counts the columns of
// its real form, m >= n / 2, and G and L are the real forms of the complex ones: all of the above
// holds for the real form of A, and d is sqrt(2) times the complex one.
#ifndef SCALED
#define SCALED 0
#endif
#ifndef REFUSED
#define REFUSED 0
#endif
#if REFUSED
#include "gpu/gram/steps/column_pivots.clh"
#define MORE_ARGUMENTS , __global const int *list, __global const int *listed
#else
#define MORE_ARGUMENTS , __global int* magnitudes
#endif
#include "gpu/common/column_range.clh"
#include "gpu/common/common.clh"
#include "gpu/common/own_r.clh"
#include "gpu/gram/group/group_divide.clh"

#if REFUSED
// The size of the noise in each column; below zero for a column of zeros, whose noise has a norm
// between 1 and 2.
INLINE void take_amplitudes(const GroupPlace* at, Block own[OWN_BLOCKS], __local double* amplitudes,
                            double noise, int m) {
#pragma unroll
  for (int s = FIRST_DIAGONAL; s < OWN_BLOCKS; ++s) {
    if (OWN_ROW(s, at) == OWN_COL(s, at)) {
#pragma unroll
      for (int w = 0; w < BLOCK_WORDS; ++w) {
        const int i = BLOCK_ROW(w, at->warp.g);
        const double square = own[s][w], size = square > 0 ? noise * sqrt(square) : -1.0;
        if (i == BLOCK_COL(w, at->warp.t)) {
          amplitudes[16 * OWN_ROW(s, at) + i] = size / sqrt((double)m);
        }
      }
    }
  }
}

// G := G + shift diag(G), with ones for zeros.
INLINE void shift_diagonal(const GroupPlace* at, Block own[OWN_BLOCKS], double shift) {
#pragma unroll
  for (int s = FIRST_DIAGONAL; s < OWN_BLOCKS; ++s) {
    if (OWN_ROW(s, at) == OWN_COL(s, at)) {
#pragma unroll
      for (int w = 0; w < BLOCK_WORDS; ++w) {
        const double x = own[s][w];
        if (BLOCK_ROW(w, at->warp.g) == BLOCK_COL(w, at->warp.t)) {
          own[s][w] = x != 0 ? fma(shift, x, x) : 1.0;
        }
      }
    }
  }
}
#else
// The route of a matrix with a column whose squared norm is outside the range.
#define ROUTE_OUTSIDE \
  (SCALED ? ROUTE_REFLECTORS : sizeof(STORED) == 8 ? ROUTE_SCALED : ROUTE_REFLECTORS)

INLINE void store_group_nan(__global STORED* to, int count, int item) {
  for (int i = item; i < count; i += GROUP_SIZE) to[i] = NAN;
}
#endif

// Groups: any number; each takes one matrix after another, with REFUSED one of the `listed` ones.
__kernel SIZE_OF_GROUP void factor_group(__global const STORED* a, __global STORED* q,
                                         __global STORED* r, __global int* routes,
                                         __global double* work, FactorShape shape,
                                         GroupPasses how MORE_ARGUMENTS) {
  __local double shared[SHARED_ROOM] __attribute__((aligned(16)));
  __local double sums[WARPS];
  __local int plain[BLOCKS];
#if REFUSED
  __local double amplitudes[PADDED_COLUMNS];
  const index_t count = *listed;
#else
  __local double* const amplitudes = 0;
  const index_t count = shape.count;
#endif
  const int n = shape.n, group = get_group_id(0);
  __global double* const slot = work + group * how.slot;
  __global double* const inverses = slot + 2 * SLOT_FACTOR;
  const double most = MOST_PLAIN(shape.m, n / ELEMENT_PARTS);
#pragma unroll 1
  for (index_t number = group; number < count; number += how.groups) {
#if REFUSED
    const index_t matrix = list[number];
    __global STORED* const made =
        shape.q_cols > 0 ? q + matrix * shape.m * n : (__global STORED*)(slot + how.rows);
    const GroupPlace here = place_in_group();
    const int has_below = has_entry_below(a + matrix * shape.m * n, n, n, shape.m * (index_t)n,
                                          here.item, GROUP_SIZE);
    const bool is_own_r = largest_of_group(&here, has_below, sums) == 0;
    bool is_scaled = false, is_done = false;
    int passes = is_own_r ? 0 : how.passes;
#else
    const index_t matrix = number;
    __global STORED* const made = q + matrix * shape.m * n;
    const int passes = 2;
    bool is_finite = true, is_in_range = true, is_good = true;
#endif
    __global const STORED* const first = a + matrix * shape.m * n;
    __global const STORED* x = first;
#if SCALED
    if (routes[matrix] != ROUTE_SCALED) continue;
    const int size = magnitudes[matrix];
    x = made;
#endif
    bool is_final = false;
#pragma unroll 1
    for (int pass = 0; pass < passes; ++pass) {
      const GroupPlace at = place_in_group();
      __global double* const factors = slot + (REFUSED ? min(pass, 1) : pass) * SLOT_FACTOR;
      Block own[OWN_BLOCKS];
      int largest = 0;
      FactorShape summed = shape;
#if !REFUSED
      summed.m = is_good ? shape.m : 0;
#endif
      sum_group_rows(&at, own, (__local STORED*)shared, x, summed, &largest);
      const double departure =
          sum_of_all_warps(&at, pass == 0 ? 0.0 : departure_of_own(&at, own), sums);
      const bool is_near_one = pass > 0 && departure <= MOST_DEPARTURE;
      is_final = is_near_one && departure <= how.enough;
      const bool is_near = is_near_one && departure <= BAR_UNITS * SERIES_DEPARTURE(shape.m, n);
#if REFUSED
      // Squares of float32 numbers stay in the range of float64.
      const int outside = pass == 0 && !is_scaled && has_outside(&at, own);
      bool is_wild = false;
      if (sizeof(STORED) == 8) is_wild = largest_of_group(&at, outside, sums) != 0;
      if (pass == 0) take_amplitudes(&at, own, amplitudes, how.noise, shape.m);
      shift_diagonal(&at, own, is_near_one ? 0.0 : how.shift);
      const bool goes_on = !is_final && !is_wild, is_wanted = true;
#else
      const int outside = pass == 0 && has_outside(&at, own);
      // Inf, as a size, is larger than all finite numbers.
      largest = largest_of_group(&at, largest, sums);
      if (pass == 0) {
        is_finite = largest < 0x7ff00000;
        if (at.item == 0) {
          magnitudes[matrix] = magnitude_code((STORED)as_double((int2)(0, largest)), is_finite);
        }
        is_in_range = largest_of_group(&at, outside, sums) == 0;
      }
      is_good = pass == 0 ? is_in_range : is_good && is_near_one;
      const bool goes_on = is_good && !is_final, is_wanted = pass == 0 || shape.q_cols > 0;
#endif
      if (is_near && goes_on) {
        take_own_series(&at, own, factors, inverses);
        for (int b = at.item; b < BLOCKS; b += GROUP_SIZE) plain[b] = plain_of(16, most);
      }
      factor_own(&at, own, shared, plain, factors, inverses, is_near || !goes_on ? 0 : BLOCKS,
                 most);
      sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      const bool is_lost = goes_on && (plain[BLOCKS - 1] & PIVOT_LOST) != 0;
      FactorShape rest = shape;
      rest.m = goes_on && is_wanted && !is_lost ? shape.m : 0;
      divide_matrix(&at, x, made, rest, shared, factors, inverses, plain, amplitudes,
                    REFUSED && pass == 0);
#if REFUSED
      if (is_wild) bring_into_range(first, made, shape, at.item, GROUP_SIZE);
#endif
      sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      x = made;
#if REFUSED
      is_done = is_near_one;
      // More passes follow: the product takes this factor.
      form_r(&at, shared, slot, factors, false, true, r, n, pass > 0 && !is_done ? BLOCKS : 0);
      sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      passes = is_done ? pass : passes;
      // Scaled columns begin again.
      is_scaled = is_scaled || is_wild;
      pass -= is_wild;
#else
      is_good = is_good && !is_lost;
#endif
    }
    const GroupPlace at = place_in_group();
    __global STORED* const made_r = r + matrix * n * (n / ELEMENT_PARTS);
#if REFUSED
    form_r(&at, shared, slot, slot + SLOT_FACTOR, is_final, false, made_r, is_done ? n : 0,
           is_done ? BLOCKS : 0);
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int j = 0; j < n; ++j) {
      const int rows = is_done && !is_scaled && amplitudes[j] < 0 ? n : 0;
      for (int i = at.item; i < rows; i += GROUP_SIZE) made_r[i * n + j] = 0;
    }
    // This makes columns of zeros zero, too.
    scale_r_back(first, made_r, shape, is_done && is_scaled ? n : 0, at.item, GROUP_SIZE);
    if (is_own_r) store_own_r(first, made, made_r, shape, at.item, GROUP_SIZE);
    if (at.item == 0 && (is_done || is_own_r)) routes[matrix] = ROUTE_FURTHER_PASSES;
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
#else
    form_r(&at, shared, slot, slot + SLOT_FACTOR, is_final, false, made_r, is_good ? n : 0,
           is_good ? BLOCKS : 0);
    if (at.item == 0) {
      const int refused = is_in_range ? ROUTE_REFLECTORS : ROUTE_OUTSIDE;
      const int route = is_final ? ROUTE_FIRST_PASS : ROUTE_SECOND_PASS;
      routes[matrix] = is_finite && !is_good ? refused : route;
    }
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (!is_finite) {
      store_group_nan(made_r, n * (n / ELEMENT_PARTS), at.item);
      store_group_nan(made, shape.m * n, at.item);
    }
#if SCALED
    if (at.item == 0) magnitudes[matrix] = size;
    scale_r_back(first, made_r, shape, n / ELEMENT_PARTS, at.item, GROUP_SIZE);
#endif
#endif
  }
}
