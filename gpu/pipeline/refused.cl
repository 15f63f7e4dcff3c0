// SPDX-License-Identifier: Apache-2.0
// scale_refused.cl: finds the matrices that `gram` or `gram_group` has refused because columns are
// too large or too small to be squared. They begin again with scaled columns: the host launches the
// variant once more, with the define SCALED (engine.cpp). Kernels without it have no register left
// for this.
//
// Defines, set in engine.cpp            range      meaning
//   STORED, REAL                                   common.clh
//   ELEMENT_PARTS                       1, 2       complex_blocks.clh
// One launch: scale_refused, one group per matrix.
#include "gpu/common/column_range.clh"

#define RANGE_GROUP 64

// Finds refused matrices in which no column is zero and some may have a squared norm outside
// LEAST_SQUARE .. MOST_SQUARE. `to`, the place of the first Q, gets their scaled columns, and their
// route becomes ROUTE_SCALED. The magnitude of a matrix is found from its entries, of which the
// guard may have seen the upper words alone. One group per matrix.
__kernel __attribute__((reqd_work_group_size(RANGE_GROUP, 1, 1))) void scale_refused(
    __global const STORED* a, __global STORED* to, __global int* magnitudes, __global int* routes,
    FactorShape shape) {
  __local int most, negative;  // of the smallest exponent
  const int item = get_local_id(0), matrix = get_group_id(0);
  const bool is_refused = routes[matrix] == ROUTE_REFLECTORS;
  const index_t first = matrix * ((index_t)shape.m * shape.n);
  if (item == 0) most = MAGNITUDE_ZERO;
  if (item == 0) negative = -MAGNITUDE_NON_FINITE;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!is_refused) shape.n = 0;
  const ColumnRange range = bring_into_range(a + first, to + first, shape, item, RANGE_GROUP);
  atomic_max(&most, range.most);
  atomic_max(&negative, -range.least);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0 && is_refused) {
    const int least = -negative;
    const bool is_outside = least != MAGNITUDE_ZERO && (least <= -125 || most >= 138);
    magnitudes[matrix] = most == MAGNITUDE_ZERO ? most : most + 1;
    if (is_outside) routes[matrix] = ROUTE_SCALED;
  }
}
