// SPDX-License-Identifier: Apache-2.0
// normal_sums.cl: A'A and A'b of systems with so many rows that several work-groups share them, in
// float64 and one pass over A, for tall_normal.cl.
//
//   sum_normal_slabs    A'A and A'b over one slab of rows      system x slab
//   combine_normal      over all slabs                         system x 32 numbers
//
// A system has COLUMNS_OF_A^2 numbers, of which the upper triangle of A'A is there, and then A'b.
// The slabs depend on the shape alone, so that the bits do not depend on the device.
//
// Defines, set in normal_sums.cpp           range   meaning
//   STORED                                          common.clh
//   COLUMNS_OF_A, GRAM_BODY, GRAM_GROUP,            tall_sums.clh
//   DOUBLE_ROWS                                     tall_sums.clh
//   HAS_RIGHT_SIDE                          1       tall_sums.clh
// Work-group: GRAM_GROUP, COMBINE_GROUP. Local memory: GRAM_SCRATCH doubles, or a double each.
#ifndef HAS_RIGHT_SIDE
#define HAS_RIGHT_SIDE 1
#endif
#include "gpu/common/tall_sums.clh"

#define SUMMED_NUMBERS (N * N + N)
#define COMBINE_GROUP 256
#define AT_ONCE 32

__kernel __attribute__((reqd_work_group_size(GRAM_GROUP, 1, 1))) void sum_normal_slabs(
    __global const STORED* a, __global const STORED* b, __global double* partial,
    SystemShape shape, SlabShape slabs) {
  __local double scratch[GRAM_SCRATCH] __attribute__((aligned(16)));
  index_t system;
  const int slab = split_group(slabs.count, &system), first = slab * slabs.rows;
  float largest = 0;
  sum_gram_rows(partial + (system * slabs.count + slab) * SUMMED_NUMBERS, &largest,
                a + system * shape.m * N, b + system * shape.m, first,
                min(first + slabs.rows, shape.m), 2 * slab >= slabs.count, scratch);
}

__kernel __attribute__((reqd_work_group_size(COMBINE_GROUP, 1, 1))) void combine_normal(
    __global const double* partial, __global double* sums, SlabShape slabs) {
  __local double parts[COMBINE_GROUP];
  index_t system;
  const int item = get_local_id(0);
  const int entry =
      split_group((SUMMED_NUMBERS + AT_ONCE - 1) / AT_ONCE, &system) * AT_ONCE + item % AT_ONCE;
  const bool is_set = entry < SUMMED_NUMBERS && (entry >= N * N || entry / N <= entry % N);
  partial += system * slabs.count * SUMMED_NUMBERS + entry;
  double sum = 0;
#pragma unroll 8
  for (int slab = item / AT_ONCE; slab < slabs.count; slab += COMBINE_GROUP / AT_ONCE)
    if (is_set) sum += partial[(index_t)slab * SUMMED_NUMBERS];
  parts[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item >= AT_ONCE || !is_set) return;
  for (int part = 1; part < COMBINE_GROUP / AT_ONCE; ++part) sum += parts[item + AT_ONCE * part];
  sums[system * SUMMED_NUMBERS + entry] = sum;
}
