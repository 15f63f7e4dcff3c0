// SPDX-License-Identifier: Apache-2.0
// weigh.cl: rows of systems with weights, or with missing entries, before they are solved.
//
//   weigh_rows         row := row sqrt(w) in A and b; 0 where w = 0, or     rows of a group
//                      where a row is missing: NaN in A or b; these rows
//                      of each system are counted
//
// A is m x n and b has m entries, packed, for each system; with shares_a the A of all systems is
// `source`, and each gets a copy of its own. Some neighbours, shape.row_items of them, a power of
// two, share a row. Where a product is so small that it may lose digits it becomes NaN, so that the
// host solves the system.
//
// Defines, set in weights.cpp   range   meaning
//   STORED                              common.clh
//   GROUP                       32 ..   work-items of a group; a multiple of shape.row_items
// Work-group: GROUP. Local memory: GROUP integers.
#include "gpu/common/common.clh"

#ifndef GROUP
#define GROUP 128
#endif

#define LEAST_PRODUCT (sizeof(STORED) == 4 ? 0x1p-100 : 0x1p-900)

INLINE STORED weigh(STORED x, double factor) {
  const double product = (double)x * factor;
  return factor == 0 ? 0
         : x != 0 && fabs(product) < LEAST_PRODUCT ? (STORED)NAN
                                                   : (STORED)product;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void weigh_rows(
    __global const STORED* source, __global STORED* a, __global STORED* b, __global const STORED* w,
    __global int* left_out, WeighShape shape, int shares_a) {
  __local int is_missing[GROUP];
  const int items = shape.row_items, own = (int)get_local_id(0) / items;
  const int item = (int)get_local_id(0) - own * items;
  const index_t row = (index_t)get_group_id(0) * (GROUP / items) + own;
  const bool exists = row < shape.rows;
  __global STORED* to = a + (exists ? row : 0) * shape.n;
  __global const STORED* from = shares_a ? source + (exists ? row % shape.m : 0) * shape.n : to;
  is_missing[get_local_id(0)] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  bool has_nan = exists && isnan(b[row]);
  for (int j = item; exists && j < shape.n; j += items) has_nan = has_nan || isnan(from[j]);
  // Those who write, write the same.
  if (has_nan) is_missing[own] = 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!exists) return;
  double factor = 1;
  if (shape.weights == WEIGHTS_OF_ALL) factor = sqrt((double)w[row % shape.m]);
  if (shape.weights == WEIGHTS_OF_EACH) factor = sqrt((double)w[row]);
  if (shape.skips_missing && is_missing[own]) factor = 0;
  if (factor == 1 && !shares_a) return;
  for (int j = item; j < shape.n; j += items) to[j] = weigh(from[j], factor);
  if (item > 0) return;
  b[row] = weigh(b[row], factor);
  if (factor == 0) atomic_inc(left_out + row / shape.m);
}
