// SPDX-License-Identifier: Apache-2.0
// range.cl: the exponent of the largest entry of every matrix, and whether R is finite: all that is
// said about matrices whose errors are not measured.
//
//   step             what it does                                   group per
//   find_magnitudes  max |a_ij| as an exponent, or NaN and Inf      matrix x RANGE_NUMBERS
//   look_at_r        whether R is finite on and above its diagonal  matrix x RANGE_NUMBERS
//   give_statuses    the same as numbers of Status                  256 matrices
//
// Complex matrices are rows of real numbers. The host has set each magnitude to MAGNITUDE_ZERO, and
// all words of `found` to other numbers than 0.
//
// Defines, set in range.cpp      range            meaning
//   STORED                       float, double    common.clh
//   ELEMENT_PARTS                1, 2             real numbers in an element
//   RANGE_NUMBERS                256 .. 2^20      real numbers that a group looks at
//   IS_NON_FINITE, OVERFLOWS,
//   IS_UNCHECKED                 2, 3, 4          numbers of Status
// Work-group: 256.
#include "gpu/common/common.clh"

#ifndef ELEMENT_PARTS
#define ELEMENT_PARTS 1
#endif
#ifndef RANGE_NUMBERS
#define RANGE_NUMBERS 16384
#endif
#define RANGE_ITEMS 256
#ifndef IS_UNCHECKED
#define IS_NON_FINITE 2
#define OVERFLOWS 3
#define IS_UNCHECKED 4
#endif

__kernel __attribute__((reqd_work_group_size(RANGE_ITEMS, 1, 1))) void find_magnitudes(
    __global const STORED* a, __global int* magnitudes, const RangeShape shape) {
  __local int code;
  index_t matrix;
  const int item = get_local_id(0), part = split_group(shape.parts, &matrix);
  const index_t first = (index_t)part * RANGE_NUMBERS;
  const int numbers = (int)min((index_t)RANGE_NUMBERS, (index_t)shape.numbers - first);
  __global const STORED* x = a + matrix * shape.numbers + first;
  if (item == 0) code = MAGNITUDE_ZERO;
  barrier(CLK_LOCAL_MEM_FENCE);
  STORED largest = 0;
  int is_finite = 1;
  for (int i = item; i < numbers; i += RANGE_ITEMS) {
    largest = fmax(largest, fabs(x[i]));
    is_finite &= isfinite(x[i]);
  }
  atomic_max(&code, magnitude_code(largest, is_finite));
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) atomic_max(magnitudes + matrix, code);
}

// R is the first rows of r, which are packed: shape.numbers of them. V\R is one too.
__kernel __attribute__((reqd_work_group_size(RANGE_ITEMS, 1, 1))) void look_at_r(
    __global const STORED* r, __global const int* magnitudes, __global DeviceErrors* found,
    const RangeShape shape) {
  index_t matrix;
  const int item = get_local_id(0), part = split_group(shape.parts, &matrix);
  const index_t first = (index_t)part * RANGE_NUMBERS;
  const int numbers = (int)min((index_t)RANGE_NUMBERS, (index_t)shape.numbers - first);
  const index_t first_row = first / shape.columns;
  const uint begin = (uint)(first - first_row * shape.columns), columns = (uint)shape.columns;
  __global const STORED* x = r + matrix * shape.stride + first;
  bool is_finite = true;
  for (int i = item; i < numbers; i += RANGE_ITEMS) {
    const uint row = (begin + (uint)i) / columns, col = begin + (uint)i - row * columns;
    const bool is_above = (index_t)(col / ELEMENT_PARTS) >= first_row + row;
    is_finite = is_finite && (!is_above || isfinite(x[i]));
  }
  if (part == 0 && item == 0) found[matrix].magnitude = magnitudes[matrix];
  if (!is_finite) found[matrix].r_is_finite = 0;
}

__kernel __attribute__((reqd_work_group_size(RANGE_ITEMS, 1, 1))) void give_statuses(
    __global const DeviceErrors* found, __global int* statuses, const int count) {
  const int matrix = get_group_id(0) * RANGE_ITEMS + get_local_id(0);
  if (matrix >= count) return;
  const bool is_finite = found[matrix].magnitude != MAGNITUDE_NON_FINITE;
  const int of_r = found[matrix].r_is_finite == 0 ? OVERFLOWS : IS_UNCHECKED;
  statuses[matrix] = is_finite ? of_r : IS_NON_FINITE;
}
