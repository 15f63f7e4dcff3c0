// SPDX-License-Identifier: Apache-2.0
// masked.cl: least squares for many right sides of one matrix with few columns, where the rows with
// NaN in b are left out. Every work-item has right sides, and a Gram matrix for each of them:
//
//   M = the rows that count,  G = A'M A = L L',  y = A'M b          one pass over b
//   x = L'^-1 L^-1 y
//   CORRECTS:  g = A'M (b - A x),  x += L'^-1 L^-1 g                one pass more
//
//   solve_masked       x
//   check_masked       G again, r = M (b - A x) and g = A'r for the stored x; norms, condition
//                      numbers, the least of the bounds, standard errors
//
// Rows are only added, never taken out of a sum. G has an error of about 2^-53 cond(A)^2: shape
// .least_value keeps matrices with a smaller least singular value (columns scaled) for the host.
// A row of `a` has SLAB_COLUMNS entries: first the products a_i a_j, i >= j, of a row of A, then
// this row, and zeros; A and x are otherwise as in shared.cl. The rows that count may leave
// columns of any norm, by which the check scales them again.
//
// Condition numbers: lane_triangle.clh.
//
// Defines, set in masked.cpp and shared_matrix.cpp   range   meaning
//   STORED                        common.clh
//   COLUMNS, SLAB_COLUMNS, GROUP, SIDES, TAKEN_ROWS, SLAB_ROWS, IN_ROWS, WEIGHS, MMA, VECTOR
//                                 shared_rows.clh; SLAB_COLUMNS is
//                                 even and at least COLUMNS (COLUMNS + 3) / 2
//   CORRECTS             0, 1     1: x is corrected once
// Work-group: GROUP. Local memory: shared_rows.clh, SharedRoom.
#include "gpu/common/common.clh"
#include "gpu/solve/parts/lane_triangle.clh"
#include "gpu/solve/parts/least_bound.clh"
#include "gpu/solve/shared/shared_rows.clh"

#ifndef CORRECTS
#define CORRECTS 1
#endif

// Row `row` of the slab: the products of a row a of A, which are the lower triangle of a a', and a.
#define ROW_OF_A (LOWER_ENTRIES)
INLINE void take_row(const SharedRoom room, int row, double entries[SLAB_COLUMNS]) {
#pragma unroll
  for (int pair = 0; pair < SLAB_COLUMNS / 2; ++pair) {
    const double2 two = pair_of_slab(room, row, pair);
    entries[2 * pair] = two.x;
    entries[2 * pair + 1] = two.y;
  }
}

// gram += mask a a'
INLINE void add_square(const double entries[SLAB_COLUMNS], bool counts, double* gram) {
  const double mask = counts ? 1 : 0;
#pragma unroll
  for (int e = 0; e < LOWER_ENTRIES; ++e) gram[e] = fma(mask, entries[e], gram[e]);
}

// G -> L, with the reciprocals of its diagonal in `inverse`.
INLINE void factor_gram_matrix(double* gram, double inverse[COLUMNS]) {
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    const double root = sqrt(gram[LOWER(j, j)]);
    gram[LOWER(j, j)] = root;
    inverse[j] = 1 / root;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i)
      if (i > j) gram[LOWER(i, j)] *= inverse[j];
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
#pragma unroll
      for (int k = 0; k < COLUMNS; ++k)
        if (k > j && k <= i)
          gram[LOWER(i, k)] = fma(-gram[LOWER(i, j)], gram[LOWER(k, j)], gram[LOWER(i, k)]);
    }
  }
}

// One pass over b: y = A'M b and G, or, for x, y = A'M (b - A x).
INLINE void pass_over_b(const SharedRoom room, __global const STORED* b, __global const double* a,
                        __global const double* weights, const SharedShape* shape,
                        const bool forms_gram, double gram[SIDES * LOWER_ENTRIES],
                        const double x[SIDES * COLUMNS], double y[SIDES * COLUMNS]) {
#pragma unroll
  for (int e = 0; e < SIDES * COLUMNS; ++e) y[e] = 0;
#pragma unroll 1
  for (int first = 0; first < shape->m; first += SLAB_ROWS) {
    const int rows = min(SLAB_ROWS, shape->m - first);
    take_slab_and_sides(room, a, weights, b, 0, first, rows, shape->m, shape);
#pragma unroll 1
    for (int row = 0; row < rows; row += TAKEN_ROWS) {
      STORED stored[TAKEN];
      take_rows(room, stored, b, first, row, shape);
#pragma unroll
      for (int k = 0; k < TAKEN_ROWS; ++k) {
        double entries[SLAB_COLUMNS];
        take_row(room, row + k, entries);
#pragma unroll
        for (int s = 0; s < SIDES; ++s) {
          const STORED entry = stored[s * TAKEN_ROWS + k];
          const bool counts = !isnan(entry);
          double r = weighted(room, counts ? entry : 0, row + k);
          if (forms_gram) {
            add_square(entries, counts, gram + s * LOWER_ENTRIES);
          } else {
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j)
              r = fma(-entries[ROW_OF_A + j], x[s * COLUMNS + j], r);
            r = counts ? r : 0;
          }
#pragma unroll
          for (int j = 0; j < COLUMNS; ++j)
            y[s * COLUMNS + j] = fma(entries[ROW_OF_A + j], r, y[s * COLUMNS + j]);
        }
      }
    }
  }
}

// x += L'^-1 L^-1 y
INLINE void add_step(const double gram[SIDES * LOWER_ENTRIES],
                     const double inverse[SIDES * COLUMNS], double y[SIDES * COLUMNS],
                     double x[SIDES * COLUMNS]) {
#pragma unroll
  for (int s = 0; s < SIDES; ++s) {
    const double* l = gram + s * LOWER_ENTRIES;
    double* v = y + s * COLUMNS;
    solve_lower(l, inverse + s * COLUMNS, v);
    solve_lower_transposed(l, inverse + s * COLUMNS, v);
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) x[s * COLUMNS + j] += v[j];
  }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void solve_masked(
    __global const STORED* b, __global const double* a, __global const double* weights,
    __global const double* powers, __global STORED* all_x, SharedShape shape) {
  DECLARE_SHARED_ROOM(room);
  double gram[SIDES * LOWER_ENTRIES], inverse[SIDES * COLUMNS], x[SIDES * COLUMNS],
      y[SIDES * COLUMNS];
#pragma unroll
  for (int e = 0; e < SIDES * LOWER_ENTRIES; ++e) gram[e] = 0;
#pragma unroll
  for (int e = 0; e < SIDES * COLUMNS; ++e) x[e] = 0;
  pass_over_b(room, b, a, weights, &shape, true, gram, x, y);
#pragma unroll
  for (int s = 0; s < SIDES; ++s)
    factor_gram_matrix(gram + s * LOWER_ENTRIES, inverse + s * COLUMNS);
  add_step(gram, inverse, y, x);
#if CORRECTS
  pass_over_b(room, b, a, weights, &shape, false, gram, x, y);
  add_step(gram, inverse, y, x);
#endif
#pragma unroll
  for (int s = 0; s < SIDES; ++s) {
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
      if (side_exists(s, &shape))
        all_x[place_of_x(number_of_side(s, &shape), j, &shape)] =
            (STORED)(x[s * COLUMNS + j] * powers[j]);
  }
}

// ---- the check

// se_j = sigma ||row j of L'^-1||
INLINE void store_masked_errors(const double* l, const double inverse[COLUMNS], double sigma,
                                __global const double* powers, index_t side, __global STORED* se,
                                const SharedShape* shape) {
  double squares[COLUMNS];
  square_inverse_rows(l, inverse, squares);
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j)
    se[place_of_x(side, j, shape)] = (STORED)(sigma * sqrt(squares[j]) * powers[j]);
}

// For SIDES = 1.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void check_masked(
    __global const STORED* b, __global const double* a, __global const double* weights,
    __global const double* powers, __global const STORED* all_x, __global FactorFindings* findings,
    __global int* rows_used, __global SolutionErrors* errors, __global STORED* se,
    SharedShape shape) {
  DECLARE_SHARED_ROOM(room);
  const index_t side = number_of_side(0, &shape);
  double gram[LOWER_ENTRIES], inverse[COLUMNS], x[COLUMNS], g[COLUMNS];
#pragma unroll
  for (int e = 0; e < LOWER_ENTRIES; ++e) gram[e] = 0;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    x[j] = (double)all_x[place_of_x(side, j, &shape)] * reciprocal_of_power(powers[j]);
    g[j] = 0;
  }
  double b_squares = 0, r_squares = 0, data_squares = 0;
  int used = 0;
#pragma unroll 1
  for (int first = 0; first < shape.m; first += SLAB_ROWS) {
    const int rows = min(SLAB_ROWS, shape.m - first);
    take_slab_and_sides(room, a, weights, b, 0, first, rows, shape.m, &shape);
#pragma unroll 1
    for (int row = 0; row < rows; row += TAKEN_ROWS) {
      STORED stored[TAKEN];
      take_rows(room, stored, b, first, row, &shape);
#pragma unroll
      for (int k = 0; k < TAKEN_ROWS; ++k) {
        double entries[SLAB_COLUMNS];
        take_row(room, row + k, entries);
        const bool counts = !isnan(stored[k]), is_data = first + row + k < shape.data_rows;
        const double right = weighted(room, counts ? stored[k] : 0, row + k);
        double r = right;
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) r = fma(-entries[ROW_OF_A + j], x[j], r);
        r = counts ? r : 0;
        add_square(entries, counts, gram);
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) g[j] = fma(entries[ROW_OF_A + j], r, g[j]);
        b_squares = fma(right, right, b_squares);
        r_squares = fma(r, r, r_squares);
        data_squares += is_data ? r * r : 0;
#if WEIGHS
        used += counts && is_data && room.weights[row + k] != 0;
#else
        used += counts && is_data;
#endif
      }
    }
  }
  double weight[COLUMNS], unscaled[COLUMNS];
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    weight[j] = weight_of_column(gram[LOWER(j, j)]);
    unscaled[j] = reciprocal_of_power(powers[j]);
  }
  factor_gram_matrix(gram, inverse);
  FactorFindings found;
  find_conditions(gram, inverse, unscaled, &found);
  const double norm_b = sqrt(b_squares), norm_r = sqrt(r_squares);
  divide_entries(x, weight);
  const double norm_x = norm_of_columns(x), norm_g = norm_of_weighted(g, weight);
  solve_lower(gram, inverse, g);
  SolutionErrors of_x;
  of_x.residual_norm = sqrt(data_squares);
  of_x.error = checked_bound(&found, shape.least_value, norm_b, norm_x, norm_r, norm_g,
                             norm_of_columns(g));
  if (!side_exists(0, &shape)) return;
  findings[side] = found;
  rows_used[side] = used;
  errors[side] = of_x;
  const int freedom = used - COLUMNS;
  if (shape.wants_se)
    store_masked_errors(gram, inverse, freedom > 0 ? norm_r / sqrt((double)freedom) : NAN, powers,
                        side, se, &shape);
}
