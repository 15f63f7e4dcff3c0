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
//   - otherwise, or if the square of a column's norm is outside LEAST_SQUARE .. MOST_SQUARE, the
//     matrix is refused. Further passes or reflectors go on, or this kernel with SCALED, for
//     matrices whose scaled columns are in the place of Q (refused.cl).
//
// Local memory: stages of rows of X; or two columns of blocks of G and room for a pivot; or two
// columns of L. Slot: L1, L2 and X' = L^-1 of the pivots, in blocks of 16 x 16. A group takes one
// matrix after another.
//
// Defines, set in gram_group.cpp            range      meaning
//   SUB_GROUP_BODY, MMA                                common.clh, mma.clh
//   VECTOR                                  1, 2       copy.clh; divides n
//   BLOCKS                                  1..10      blocks of 16 columns
//   LAST_HALVES                             1, 2       halves of 8 columns of the last of them
//   SPARE                                   0, 1       group_blocks.clh
//   ELEMENT_PARTS                           1, 2       complex_blocks.clh
//   SCALED                                  0, 1       1: matrices with scaled columns; set in
//                                                      refused.cpp
//   STORED                                             common.clh
// A is m x n, m >= n. Signs of R's diagonal: positive. Where A is complex, n counts the columns of
// its real form, m >= n / 2, and G and L are the real forms of the complex ones: all of the above
// holds for the real form of A, and d is sqrt(2) times the complex one.
#ifndef SCALED
#define SCALED 0
#endif
#include "gpu/common/column_range.clh"
#include "gpu/common/common.clh"
#include "gpu/gram/group/group_divide.clh"

// Both factors, and the inverses of pivots.
#define SLOT_ENTRIES (2 * SLOT_FACTOR + BLOCKS * 256)

INLINE void store_group_nan(__global STORED* to, int count, int item) {
  for (int i = item; i < count; i += GROUP_SIZE) to[i] = NAN;
}

// Groups: any number; each takes one matrix after another.
__kernel SIZE_OF_GROUP void factor_group(
    __global const STORED* a, __global STORED* q, __global STORED* r, __global int* magnitudes,
    __global int* routes, __global double* work, FactorShape shape, double enough, int groups) {
  __local double shared[SHARED_ROOM] __attribute__((aligned(16)));
  __local double sums[WARPS];
  __local int plain[BLOCKS];
  const int n = shape.n, group = get_group_id(0);
  __global double* const slot = work + group * (index_t)SLOT_ENTRIES;
  __global double* const inverses = slot + 2 * SLOT_FACTOR;
  const double most = MOST_PLAIN(shape.m, n / ELEMENT_PARTS);
#pragma unroll 1
  for (index_t matrix = group; matrix < shape.count; matrix += groups) {
    __global STORED* const made = q + matrix * shape.m * n;
#if SCALED
    if (routes[matrix] != ROUTE_SCALED) continue;
    const int size = magnitudes[matrix];
    __global const STORED* x = made;
#else
    __global const STORED* x = a + matrix * shape.m * n;
#endif
    bool is_finite = true, is_good = true, is_final = false;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {
      const GroupPlace at = place_in_group();
      __global double* const factors = slot + pass * SLOT_FACTOR;
      Block own[OWN_BLOCKS];
      int largest = 0;
      sum_group_rows(&at, own, (__local STORED*)shared, x, shape, &largest);
      const double departure =
          sum_of_all_warps(&at, pass == 0 ? 0.0 : departure_of_own(&at, own), sums);
      const int outside = pass == 0 && has_outside(&at, own);
      // Inf, as a size, is larger than all finite numbers.
      largest = largest_of_group(&at, largest, sums);
      if (pass == 0) {
        is_finite = largest < 0x7ff00000;
        if (at.item == 0) {
          magnitudes[matrix] = magnitude_code((STORED)as_double((int2)(0, largest)), is_finite);
        }
        is_good = largest_of_group(&at, outside, sums) == 0;
      } else {
        is_good = is_good && departure <= MOST_DEPARTURE;
      }
      is_final = pass == 1 && departure <= enough;
      const bool is_near = pass == 1 && departure <= BAR_UNITS * SERIES_DEPARTURE(shape.m, n);
      if (is_near && !is_final) {
        take_own_series(&at, own, factors, inverses);
        for (int b = at.item; b < BLOCKS; b += GROUP_SIZE) plain[b] = plain_of(16, most);
      }
      const bool goes_on = is_good && !is_final;
      factor_own(&at, own, shared, plain, factors, inverses, is_near || !goes_on ? 0 : BLOCKS,
                 most);
      sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      FactorShape rest = shape;
      const bool is_wanted = pass == 0 || shape.q_cols > 0;
      rest.m = goes_on && is_wanted ? shape.m : 0;
      divide_matrix(&at, x, made, rest, shared, factors, inverses, plain, 0, false);
      sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      x = made;
    }
    const GroupPlace at = place_in_group();
    __global STORED* const made_r = r + matrix * n * (n / ELEMENT_PARTS);
    form_r(&at, shared, slot, slot + SLOT_FACTOR, is_final, false, made_r, n, BLOCKS);
    if (at.item == 0) {
      const int route = is_final ? ROUTE_FIRST_PASS : ROUTE_SECOND_PASS;
      routes[matrix] = is_finite && !is_good ? ROUTE_REFLECTORS : route;
    }
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (!is_finite) {
      store_group_nan(made_r, n * (n / ELEMENT_PARTS), at.item);
      store_group_nan(made, shape.m * n, at.item);
    }
#if SCALED
    if (at.item == 0) magnitudes[matrix] = size;
    scale_r_back(a + matrix * shape.m * n, made_r, shape, n / ELEMENT_PARTS, at.item, GROUP_SIZE);
#endif
  }
}
