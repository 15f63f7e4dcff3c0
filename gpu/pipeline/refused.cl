// SPDX-License-Identifier: Apache-2.0
// refused.cl: finds the matrices that the guard of a variant has refused (refused.cpp).
//
//   scale_refused  scales columns. ROUTE_SCALED is what `gram` and `gram_group` in float64 give to
//                  matrices whose columns are too large or too small to be squared. They begin
//                  again: the host launches the variant once more, with the define SCALED. Kernels
//                  without it have no register left for this.
//   list_refused   for further passes, a list of all of them
//
// Defines, set in refused.cpp           range      meaning
//   STORED, REAL                                   common.clh
//   ELEMENT_PARTS                       1, 2       complex_blocks.clh
#include "gpu/common/column_range.clh"

#define RANGE_GROUP 64
#define LIST_GROUP 256

// `to`, the place of the first Q, gets the scaled columns of the matrices of ROUTE_SCALED. With a
// column of zeros the route becomes ROUTE_REFLECTORS. The magnitude of such a matrix is found from
// its entries, of which the guard has seen the upper words alone. One group per matrix.
__kernel __attribute__((reqd_work_group_size(RANGE_GROUP, 1, 1))) void scale_refused(
    __global const STORED* a, __global STORED* to, __global int* magnitudes, __global int* routes,
    FactorShape shape) {
  __local int most, negative;  // of the smallest exponent
  const int item = get_local_id(0), matrix = get_group_id(0);
  const bool is_outside = routes[matrix] == ROUTE_SCALED;
  const index_t first = matrix * ((index_t)shape.m * shape.n);
  if (item == 0) most = MAGNITUDE_ZERO;
  if (item == 0) negative = -MAGNITUDE_NON_FINITE;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!is_outside) shape.n = 0;
  const ColumnRange range = bring_into_range(a + first, to + first, shape, item, RANGE_GROUP);
  atomic_max(&most, range.most);
  atomic_max(&negative, -range.least);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0 && is_outside) {
    magnitudes[matrix] = most == MAGNITUDE_ZERO ? most : most + 1;
    if (-negative == MAGNITUDE_ZERO) routes[matrix] = ROUTE_REFLECTORS;
  }
}

// list: the numbers of refused matrices, in any order; listed: how many there are. One group.
__kernel __attribute__((reqd_work_group_size(LIST_GROUP, 1, 1))) void list_refused(
    __global const int* routes, __global int* list, __global int* listed, int count) {
  __local int found;
  const int item = get_local_id(0);
  if (item == 0) found = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 8
  for (int matrix = item; matrix < count; matrix += LIST_GROUP) {
    if (routes[matrix] == ROUTE_REFLECTORS) list[atomic_inc(&found)] = matrix;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) *listed = found;
}
