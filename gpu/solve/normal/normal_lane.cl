// SPDX-License-Identifier: Apache-2.0
// normal_lane.cl: least squares by normal equations in float64, as normal.cl, for systems of at
// most four columns: a work-item solves one, without local memory and barriers.
//
//   A'A = G,  A'b = y                       row by row
//   G = L D L'
//   x = L'^-1 D^-1 L^-1 y
//   float64 A: g = A'(b - A x),  x += L'^-1 D^-1 L^-1 g  until ||d|| <= enough ||x||
//   R = D^(1/2) L'                          for the check (systems.cl)
//
// The work-items of a warp read rows of different systems. A row, or two, fill a sector of the
// memory, and so each sector is read once. normal.cl says why one step is enough for float32, and
// what is left to R of a variant.
//
// Defines, set in normal_lane.cpp   range     meaning
//   STORED                                    common.clh
//   COLUMNS                         1..4      columns of A
//   KEPT                            0, m      m: A and b stay in registers for the corrections
//   GROUP                           1 ..      work-items of a group
//   MOST_STEPS                      1 ..      the first step and the corrections
#include "gpu/common/common.clh"
#include "gpu/solve/parts/columns.clh"

#ifndef COLUMNS
#define COLUMNS 4
#endif
#ifndef KEPT
#define KEPT 0
#endif
#ifndef GROUP
#define GROUP 128
#endif
#ifndef MOST_STEPS
#define MOST_STEPS 4
#endif

typedef STORED Row[COLUMNS];
typedef double Column[COLUMNS];

// Rows of 2 and 4 entries lie at multiples of so many, and are moved at once.
#if COLUMNS % 2 == 0
typedef JOIN(STORED, COLUMNS) WholeRow;
#endif
INLINE void load_lane_row(Row row, __global const STORED* from) {
#if COLUMNS % 2 == 0
  const WholeRow whole = *(__global const WholeRow*)from;
  row[0] = whole.s0;
  row[1] = whole.s1;
#if COLUMNS == 4
  row[2] = whole.s2;
  row[3] = whole.s3;
#endif
#else
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) row[j] = from[j];
#endif
}

INLINE void store_lane_row(__global STORED* to, const Row row) {
#if COLUMNS == 4
  *(__global WholeRow*)to = (WholeRow)(row[0], row[1], row[2], row[3]);
#elif COLUMNS == 2
  *(__global WholeRow*)to = (WholeRow)(row[0], row[1]);
#else
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) to[j] = row[j];
#endif
}

// G and y with one row more.
INLINE void add_row(double gram[LOWER_ENTRIES], Column y, const Row row, STORED right) {
#pragma unroll
  for (int i = 0; i < COLUMNS; ++i) {
    const double left = row[i];
#pragma unroll
    for (int j = 0; j <= i; ++j)
      gram[LOWER(i, j)] = fma(left, (double)row[j], gram[LOWER(i, j)]);
    y[i] = fma(left, (double)right, y[i]);
  }
}

// g += row' (right - row x)
INLINE void add_row_residual(Column g, const Row row, STORED right, const Column x) {
  double residual = right;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) residual = fma(-(double)row[j], x[j], residual);
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) g[j] = fma((double)row[j], residual, g[j]);
}

// gram: G -> L, below its diagonal; inverse := D^-1.
INLINE void factor_gram_of_lane(double gram[LOWER_ENTRIES], Column inverse) {
#pragma unroll
  for (int k = 0; k < COLUMNS; ++k) {
    inverse[k] = 1 / gram[LOWER(k, k)];
#pragma unroll
    for (int i = k + 1; i < COLUMNS; ++i) {
      const double l = gram[LOWER(i, k)] * inverse[k];
#pragma unroll
      for (int j = k + 1; j <= i; ++j)
        gram[LOWER(i, j)] = fma(-l, gram[LOWER(j, k)], gram[LOWER(i, j)]);
    }
#pragma unroll
    for (int i = k + 1; i < COLUMNS; ++i) gram[LOWER(i, k)] *= inverse[k];
  }
}

// y := (L D L')^-1 y
INLINE void solve_by_lane(const double gram[LOWER_ENTRIES], const Column inverse, Column y) {
#pragma unroll
  for (int i = 0; i < COLUMNS; ++i) {
#pragma unroll
    for (int j = 0; j < i; ++j) y[i] = fma(-gram[LOWER(i, j)], y[j], y[i]);
  }
#pragma unroll
  for (int i = COLUMNS - 1; i >= 0; --i) {
    y[i] *= inverse[i];
#pragma unroll
    for (int j = i + 1; j < COLUMNS; ++j) y[i] = fma(-gram[LOWER(j, i)], y[j], y[i]);
  }
}

INLINE double square_of_column(const Column v) {
  double sum = 0;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) sum = fma(v[j], v[j], sum);
  return sum;
}

// Groups: one for GROUP systems.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void solve_normal_lane(
    __global const STORED* a, __global const STORED* b, __global STORED* r, __global STORED* x,
    SystemShape shape) {
  const index_t system = (index_t)get_group_id(0) * GROUP + get_local_id(0);
  if (system >= shape.count) return;
  a += system * shape.m * COLUMNS;
  b += system * shape.m;
  double gram[LOWER_ENTRIES];
  Column y, own_x, inverse;
#pragma unroll
  for (int i = 0; i < LOWER_ENTRIES; ++i) gram[i] = 0;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) y[j] = own_x[j] = 0;
#if KEPT
  Row rows[KEPT];
  STORED right[KEPT];
#pragma unroll
  for (int i = 0; i < KEPT; ++i) {
    load_lane_row(rows[i], a + i * COLUMNS);
    right[i] = b[i];
  }
#pragma unroll
  for (int i = 0; i < KEPT; ++i) add_row(gram, y, rows[i], right[i]);
#else
#pragma unroll 4
  for (int i = 0; i < shape.m; ++i) {
    Row row;
    load_lane_row(row, a + i * COLUMNS);
    add_row(gram, y, row, b[i]);
  }
#endif
  factor_gram_of_lane(gram, inverse);
#pragma unroll 1
  for (int step = 0;; ++step) {
    solve_by_lane(gram, inverse, y);
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) own_x[j] += y[j];
    if (step == MOST_STEPS - 1) break;
    // The first step is the solution itself.
    const double most = shape.enough * shape.enough * square_of_column(own_x);
    if (step > 0 && !(square_of_column(y) > most)) break;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) y[j] = 0;
#if KEPT
#pragma unroll
    for (int i = 0; i < KEPT; ++i) add_row_residual(y, rows[i], right[i], own_x);
#else
#pragma unroll 4
    for (int i = 0; i < shape.m; ++i) {
      Row row;
      load_lane_row(row, a + i * COLUMNS);
      add_row_residual(y, row, b[i], own_x);
    }
#endif
  }
  r += system * COLUMNS * COLUMNS;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    const double pivot = sqrt(1 / inverse[j]);
    Row row;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      const double l = i > j ? gram[LOWER(i, j)] : 1.0;
      row[i] = i < j ? (STORED)0 : (STORED)(l * pivot);
    }
    store_lane_row(r + j * COLUMNS, row);
    x[system * shape.x_system + j * shape.x_step] = (STORED)own_x[j];
  }
}
