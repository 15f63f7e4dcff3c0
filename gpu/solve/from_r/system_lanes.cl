// SPDX-License-Identifier: Apache-2.0
// system_lanes.cl: what measures.cl and the check of systems.cl find, for systems of at most eight
// columns, by one work-item each, without local memory and barriers.
//
//   measure_lane_factors    ||R||, condition numbers, weights of columns, norms    system
//                           of the rows of R^-1
//   check_lane_solutions    r = b - A x, g = A'r for the stored x; the least of    system x right
//                           the bounds of bounds.clh; standard errors              side
//
// Adjacent work-items read rows of different systems; the rows of a system are adjacent, and a
// sector of the memory stays in the cache until it is used up.
//
// Defines, set in system_lanes.cpp   range     meaning
//   STORED                                     common.clh
//   COLUMNS                          1 .. 8    columns of A
//   GROUP                            1 ..      work-items of a group
#include "gpu/common/common.clh"
#include "gpu/solve/parts/lane_triangle.clh"
#include "gpu/solve/parts/least_bound.clh"

#ifndef GROUP
#define GROUP 128
#endif

// Rows of packed matrices are read in parts of so many entries, and lie at multiples of it.
#define ROW_PART (COLUMNS % 4 == 0 ? 4 : COLUMNS % 2 == 0 ? 2 : 1)
#if COLUMNS % 4 == 0
typedef JOIN(STORED, 4) RowPart;
#elif COLUMNS % 2 == 0
typedef JOIN(STORED, 2) RowPart;
#else
typedef STORED RowPart;
#endif
typedef union {
  RowPart parts[COLUMNS / ROW_PART];
  STORED entries[COLUMNS];
} RowOfLane;

// A function that returned the row would be one that Oclgrind 21.10 cannot run.
INLINE void take_row_of_lane(RowOfLane* row, __global const STORED* from) {
#pragma unroll
  for (int p = 0; p < COLUMNS / ROW_PART; ++p) row->parts[p] = ((__global const RowPart*)from)[p];
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void measure_lane_factors(
    __global const STORED* r, __global FactorFindings* findings, __global double* of_columns,
    SystemShape shape) {
  const index_t system = (index_t)get_group_id(0) * GROUP + get_local_id(0);
  if (system >= shape.count) return;
  r += system * COLUMNS * COLUMNS;
  double l[LOWER_ENTRIES], inverse[COLUMNS];
#pragma unroll
  for (int i = 0; i < COLUMNS; ++i) {
    RowOfLane row;
    take_row_of_lane(&row, r + i * COLUMNS);
    inverse[i] = 1 / (double)row.entries[i];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
      if (j >= i) l[LOWER(j, i)] = row.entries[j];
  }
  FactorFindings found;
  double sizes[COLUMNS];
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) sizes[j] = 1;
  find_conditions(l, inverse, sizes, &found);
  findings[system] = found;
  of_columns += system * NUMBERS_OF_COLUMNS;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    double column = 0;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i)
      if (i <= j) column = fma(l[LOWER(j, i)], l[LOWER(j, i)], column);
    of_columns[j] = weight_of_column(column);
  }
  if (!shape.wants_se) return;
  double squares[COLUMNS];
  square_inverse_rows(l, inverse, squares);
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) of_columns[COLUMNS + j] = sqrt(squares[j]);
}

// ||R^-T g||
INLINE double norm_of_transposed(__global const STORED* r, double g[COLUMNS]) {
#pragma unroll
  for (int i = 0; i < COLUMNS; ++i) {
    RowOfLane row;
    take_row_of_lane(&row, r + i * COLUMNS);
    g[i] /= (double)row.entries[i];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
      if (j > i) g[j] = fma(-g[i], (double)row.entries[j], g[j]);
  }
  return norm_of_columns(g);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void check_lane_solutions(
    __global const STORED* a, __global const STORED* b, __global const STORED* r,
    __global const STORED* x, __global const FactorFindings* findings,
    __global const double* of_columns, __global SolutionErrors* errors, __global STORED* se,
    SystemShape shape) {
  const index_t number = (index_t)get_group_id(0) * GROUP + get_local_id(0);
  const index_t system = number / shape.sides;
  if (system >= shape.count) return;
  const int side = (int)(number - system * shape.sides);
  const index_t to = system * shape.x_system + side * shape.x_side;
  a += system * shape.m * COLUMNS;
  b += system * shape.b_system + side * shape.b_side;
  double own_x[COLUMNS], g[COLUMNS], r_squares = 0, b_squares = 0;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    own_x[j] = x[to + j * shape.x_step];
    g[j] = 0;
  }
#pragma unroll 4
  for (int i = 0; i < shape.m; ++i) {
    RowOfLane row;
    take_row_of_lane(&row, a + (index_t)i * COLUMNS);
    const double right = b[i * shape.b_step];
    double residual = right;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) residual = fma(-(double)row.entries[j], own_x[j], residual);
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) g[j] = fma((double)row.entries[j], residual, g[j]);
    r_squares = fma(residual, residual, r_squares);
    b_squares = fma(right, right, b_squares);
  }
  const FactorFindings found = findings[system];
  double weight[COLUMNS];
  of_columns += system * NUMBERS_OF_COLUMNS;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) weight[j] = of_columns[j];
  divide_entries(own_x, weight);
  const double norm_b = sqrt(b_squares), norm_x = norm_of_columns(own_x);
  const double norm_r = sqrt(r_squares), norm_g = norm_of_weighted(g, weight);
  SolutionErrors of_x;
  of_x.residual_norm = norm_r;
  of_x.error =
      checked_bound(&found, shape.least_value, norm_b, norm_x, norm_r, norm_g, INFINITY);
  if (of_x.error > shape.clear) {
    const double transposed = norm_of_transposed(r + system * COLUMNS * COLUMNS, g);
    of_x.error =
        checked_bound(&found, shape.least_value, norm_b, norm_x, norm_r, norm_g, transposed);
  }
  errors[number] = of_x;
  if (!shape.wants_se) return;
  const double sigma = norm_r / sqrt((double)(shape.m - COLUMNS));
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j)
    se[to + j * shape.x_step] = (STORED)(sigma * of_columns[COLUMNS + j]);
}
