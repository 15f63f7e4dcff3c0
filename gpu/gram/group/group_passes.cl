// SPDX-License-Identifier: Apache-2.0
// group_passes.cl: QR of matrices of at most 160 columns that the guard of a variant by Gram
// matrices has refused, by more passes of the same kind (shifted CholeskyQR). A group of warps
// takes a matrix through all of its passes, with the steps of gram_group.cl. Factors are computed
// in float64; rows have the type of A. A matrix may have any condition and any rank.
//
//   pass 0:  L L' = A'A + s diag(A'A)    X := (A + E) L'^-1, stored;   R := L'
//   pass p:  d = ||X'X - I||_F is measured, and then
//            d at most `enough`:         Q := X
//            d at most 1/4:              L L' = X'X, Q := X L'^-1;     R := L' R
//            else:                       as in pass 0, without noise;  R := L' R
//
// E is noise of about a quarter of a rounding error of float32 in each column, or of two of
// float64. A column of zeros is noise alone in A + E, and is zero in R. `enough` is that of
// gram_group.cl.
//
// Why it is right. Let u be 2^-53, s = 16 t u, where t bounds the roundings of an entry of A'A.
//   - The orthogonality: the guard is that of gram_group.cl, and so is its proof, whatever X is.
//   - The residual: in each pass X L' is what X was, plus an error of which each column is at most
//     a rounding error of the type times sqrt(n), from storing X, and c n u ||X|| ||L||, from
//     the substitution. E has at most 1.5 x 2^-25, or 1.5 x 2^-52.
//   - What remains is that the condition becomes small: narrow_passes.cl says why the second pass
//   is
//     the last one of most float32 matrices. In float64 noise is as small as 2^-52, so that the
//     condition of X is some 2^26 at first, and a further shifted pass makes it small. Pivots are
//     factored column by column: the shift is above their errors, too. If `passes` are not enough,
//     the matrix stays refused.
// If the squared norm of a column is outside LEAST_SQUARE .. MOST_SQUARE, scaled columns begin
// again (column_range.clh).
// A matrix without an entry below its diagonal is its own R, up to signs, and Q is the identity: so
// Householder's method has it, and so it stays exact.
//
// The noise at (i, j) follows from i and j alone, and a group sums the rows of a matrix in one
// order: a matrix has the same bits in any batch.
//
// Local memory is that of gram_group.cl, and the noise of each column. Slot: L of
// each pass and X' of the pivots of this pass, as in gram_group.cl, and X if Q is not wanted.
//
// Defines, set in group_passes.cpp          range      meaning
//   SUB_GROUP_BODY, MMA                                common.clh, mma.clh
//   VECTOR                                  1, 2       copy.clh; divides n
//   BLOCKS                                  1..10      blocks of 16 columns
//   LAST_HALVES                             1, 2       halves of 8 columns of the last of them
//   SPARE                                   0, 1       group_blocks.clh
//   STORED                                             common.clh
// A is m x n, m >= n, real. Signs of R's diagonal: positive.
#include "gpu/gram/steps/column_pivots.clh"
#include "gpu/common/column_range.clh"
#include "gpu/common/own_r.clh"
#include "gpu/gram/group/group_divide.clh"

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

// Q := the identity and R := A, with signs that make R's diagonal positive.
INLINE void store_own_r(__global const STORED* a, __global STORED* q, __global STORED* r,
                        FactorShape shape, bool wants_q, int item) {
  const int n = shape.n, entries = wants_q ? shape.m * n : 0;
  for (int e = item; e < entries; e += GROUP_SIZE) {
    q[e] = e / n != e % n ? (STORED)0 : a[e] < 0 ? (STORED)-1 : (STORED)1;
  }
  for (int e = item; e < n * n; e += GROUP_SIZE) {
    const STORED x = a[e / n * (n + 1)] < 0 ? -a[e] : a[e];
    r[e] = e / n <= e % n ? x : (STORED)0;
  }
}

// Groups: any number; each takes one of the `listed` matrices of the list after another.
__kernel SIZE_OF_GROUP void factor_refused_matrix(__global const STORED* a, __global STORED* q,
                                                  __global STORED* r, __global const int* list,
                                                  __global const int* listed, __global int* routes,
                                                  __global double* work, FactorShape shape,
                                                  GroupPasses how) {
  __local double shared[SHARED_ROOM] __attribute__((aligned(16)));
  __local double sums[WARPS], amplitudes[PADDED_COLUMNS];
  __local int plain[BLOCKS];
  const int n = shape.n, group = get_group_id(0);
  __global double* const slot = work + group * how.slot;
  __global double* const inverses = slot + how.passes * SLOT_FACTOR;
  const double most = MOST_PLAIN(shape.m, n);
#pragma unroll 1
  for (index_t number = group; number < *listed; number += how.groups) {
    const index_t matrix = list[number];
    __global const STORED* const first = a + matrix * shape.m * n;
    __global STORED* const made_r = r + matrix * n * n;
    __global STORED* const made =
        how.wants_q ? q + matrix * shape.m * n : (__global STORED*)(slot + how.rows);
    __global const STORED* x = first;
    const GroupPlace here = place_in_group();
    const bool is_own_r =
        largest_of_group(&here,
                         has_entry_below(first, n, n, shape.m * (index_t)n, here.item, GROUP_SIZE),
                         sums) == 0;
    bool is_scaled = false, is_done = false;
    int passes = is_own_r ? 0 : how.passes, factors = 0;
#pragma unroll 1
    for (int pass = 0; pass < passes; ++pass) {
      const GroupPlace at = place_in_group();
      __global double* const factor = slot + pass * SLOT_FACTOR;
      Block own[OWN_BLOCKS];
      int largest = 0;
      sum_group_rows(&at, own, (__local STORED*)shared, x, shape, &largest);
      const bool is_first = pass == 0;
      const double departure =
          sum_of_all_warps(&at, is_first ? 0.0 : departure_of_own(&at, own), sums);
      const bool is_near_one = !is_first && departure <= MOST_DEPARTURE;
      const bool is_final = is_near_one && departure <= how.enough;
      // Squares of float32 numbers stay in the range of float64.
      const int outside = is_first && !is_scaled && has_outside(&at, own);
      bool is_wild = false;
      if (sizeof(STORED) == 8) is_wild = largest_of_group(&at, outside, sums) != 0;
      if (is_first) take_amplitudes(&at, own, amplitudes, how.noise, shape.m);
      shift_diagonal(&at, own, is_near_one ? 0.0 : how.shift);
      const bool is_near = is_near_one && departure <= BAR_UNITS * SERIES_DEPARTURE(shape.m, n);
      const bool goes_on = !is_final && !is_wild;
      if (is_near && goes_on) {
        take_own_series(&at, own, factor, inverses);
        for (int b = at.item; b < BLOCKS; b += GROUP_SIZE) plain[b] = plain_of(16, most);
      }
      factor_own(&at, own, shared, plain, factor, inverses, is_near || !goes_on ? 0 : BLOCKS, most);
      sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      FactorShape rest = shape;
      rest.m = goes_on ? shape.m : 0;
      divide_matrix(&at, x, made, rest, shared, factor, inverses, plain, amplitudes, is_first);
      if (is_wild) bring_into_range(first, made, shape, at.item, GROUP_SIZE);
      sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      is_done = is_near_one;
      passes = is_done ? pass : passes;
      factors += goes_on;
      // Scaled columns begin again.
      is_scaled = is_scaled || is_wild;
      pass -= is_wild;
      x = made;
    }
    const GroupPlace at = place_in_group();
    const int last = is_done ? factors - 1 : 0;
#pragma unroll 1
    for (int f = 1; f < last; ++f) {
      form_r(&at, shared, slot, slot + f * SLOT_FACTOR, false, true, made_r, n, BLOCKS);
      sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    form_r(&at, shared, slot, slot + last * SLOT_FACTOR, last == 0, false, made_r, is_done ? n : 0,
           is_done ? BLOCKS : 0);
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int j = 0; j < n; ++j) {
      const int rows = is_done && !is_scaled && amplitudes[j] < 0 ? n : 0;
      for (int i = at.item; i < rows; i += GROUP_SIZE) made_r[i * n + j] = 0;
    }
    // This makes columns of zeros zero, too.
    scale_r_back(first, made_r, shape, is_done && is_scaled ? n : 0, at.item, GROUP_SIZE);
    if (is_own_r) store_own_r(first, made, made_r, shape, how.wants_q, at.item);
    if (at.item == 0 && (is_done || is_own_r)) routes[matrix] = ROUTE_FURTHER_PASSES;
    sync_items(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
}
