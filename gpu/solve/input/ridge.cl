// SPDX-License-Identifier: Apache-2.0
// ridge.cl: the rows of a ridge l, n rows l^1/2 I below A and zeros below b.
//
//   add_rows_below        to := [ from ]  of m x n matrices; E is zero or     row of a result
//                               [  E   ]  diagonal, or the same number
//
// Some neighbours, `items` of them, a power of two, share a row.
//
// Defines, set in ridge.cpp     range   meaning
//   STORED                              common.clh
//   GROUP                       32 ..   work-items of a group; a multiple of items
// Work-group: GROUP. Local memory: none.
#include "gpu/common/common.clh"

#ifndef GROUP
#define GROUP 128
#endif

// rows: of all results, which have all_m each. Row t of E has `first` (t = 0) or `diagonal` in
// column t.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void add_rows_below(
    __global const STORED* from, __global STORED* to, long rows, int m, int all_m, int n, int items,
    double first, double diagonal, double others) {
  const int own = (int)get_local_id(0) / items, item = (int)get_local_id(0) - own * items;
  const index_t row = (index_t)get_group_id(0) * (GROUP / items) + own;
  if (row >= rows) return;
  const index_t matrix = row / all_m;
  const int i = (int)(row - matrix * all_m), added = i - m;
  from += (matrix * m + min(i, m - 1)) * n;
  to += row * n;
  for (int j = item; j < n; j += items)
    to[j] = added < 0 ? from[j] : (STORED)(added != j ? others : j == 0 ? first : diagonal);
}
