// SPDX-License-Identifier: Apache-2.0
// wide.cl: systems with fewer rows than columns: x of least norm, by R of A' = Q R.
//
//   turn_columns     A' of each A, and D^-1 A' with D = the norms of the      column of A
//                    columns, rounded to powers of two; D^-1
//   solve_wide       x := 0, w := 0, then at most MOST_STEPS times            system x right side
//                      d = R^-1 R^-T (b - A x),  w += d,  x += A'd
//                    until the backward error is clear of the bar
//   check_wide       r = b - A x for the stored x: its backward error         system x right side
//                    ||r|| / hypot(a ||D x||, ||b||), a = ||D^-1 A'||, and
//                    that of its norm, ||D^-1 (x - A'w)|| / (a ||w||)
//
// Full rank is taken for granted where the condition of D^-1 A', which the variant's R of it has,
// is far from the reciprocal of the tolerance. Otherwise, and where a number is not finite or its
// square out of range, the error is NaN, and the host decides.
//
// A' is length x COLUMNS, packed, and COLUMNS are the rows of A; entry i of right side j of system
// s is b[s b_system + j b_side + i b_step], and x in the same way. R is COLUMNS x COLUMNS.
//
// Defines, set in wide.cpp        range     meaning
//   STORED                                  common.clh
//   COLUMNS, TILE_ROWS, TRIANGLE            rows.clh
//   TEAM, TEAMS                             team.clh
//   MOST_STEPS                    1 ..      the first step and the corrections
// Work-group: 128; TEAMS teams, each with a right side. Local memory: rows.clh, Room.
#include "gpu/common/common.clh"
#include "gpu/solve/parts/least_bound.clh"
#include "gpu/solve/parts/open_teams.clh"
#include "gpu/solve/parts/powers.clh"
#include "gpu/solve/parts/triangle.clh"

#ifndef MOST_STEPS
#define MOST_STEPS 4
#endif

#define TURN_GROUP 128

__kernel __attribute__((reqd_work_group_size(TURN_GROUP, 1, 1))) void turn_columns(
    __global const STORED* a, __global STORED* turned, __global STORED* scaled,
    __global double* weights, long columns, int length) {
  const index_t number = (index_t)get_group_id(0) * TURN_GROUP + get_local_id(0);
  if (number >= columns) return;
  const index_t system = number / length;
  a += system * COLUMNS * length + (number - system * length);
  turned += number * COLUMNS;
  scaled += number * COLUMNS;
  double largest = 0, squares = 0;
  for (int i = 0; i < COLUMNS; ++i) {
    const STORED entry = a[(index_t)i * length];
    turned[i] = entry;
    largest = fmax(largest, fabs((double)entry));
  }
  const bool counts = largest > 0 && isfinite(largest);
  int exponent = counts ? ilogb(largest) : 0;
  for (int i = 0; i < COLUMNS; ++i) {
    const double entry = ldexp((double)a[(index_t)i * length], -exponent);
    squares = fma(entry, entry, squares);
  }
  if (counts && isfinite(squares)) exponent += 1 + ilogb(sqrt(squares));
  weights[number] = pow2_double(max(-1000, min(1000, -exponent)));
  for (int i = 0; i < COLUMNS; ++i)
    scaled[i] = (STORED)ldexp((double)a[(index_t)i * length], -exponent);
}

// ---- the rows of A', each with its entry of x

// What a pass does with x: x becomes A'd, A'd is added to x, or x is compared with A'w.
#define X_BEGINS 0
#define X_GROWS 1
#define X_STAYS 2

// gradient += A x, b_squares += ||D x||^2 and r_squares += ||D^-1 (x - A'd)||^2 with d = room.x. x
// is stored where `exists`, which is false for a second team of a right side. weights: D^-1.
INLINE void pass_over_x(const Room room, __global const STORED* a, __global const double* weights,
                        __global STORED* x, index_t x_step, int length, int what, bool exists,
                        SystemSums* sums) {
#pragma unroll 1
  for (int first = 0; first < length; first += TILE_ROWS) {
    const int rows = min(TILE_ROWS, length - first);
    __global const STORED* from = a + (index_t)first * COLUMNS;
    take_tile(room, from, rows);
#pragma unroll
    for (int t = 0; t < OWNED_ROWS; ++t) {
      const int i = ITEM + TEAM * t;
      if (i >= rows) continue;
      const double product = product_of_row(room, i);
      __global STORED* const at = x + (index_t)(first + i) * x_step;
      const double old = what == X_BEGINS || (what == X_GROWS && !exists) ? 0 : (double)*at;
      const STORED entry = (STORED)(what == X_STAYS ? old : old + product);
      if (what != X_STAYS && exists) *at = entry;
      const double weight = weights[first + i];
      const double outside = ((double)entry - product) * weight;
      const double scaled = (double)entry * reciprocal_of_power(weight);
      sums->r_squares = fma(outside, outside, sums->r_squares);
      sums->b_squares = fma(scaled, scaled, sums->b_squares);
      room.residual[i] = entry;
    }
    add_tile(room, rows, sums);
  }
}

// room.y := b - room.y
INLINE void subtract_from_b(const Room room, __global const STORED* b, index_t b_step) {
  for (int c = ITEM; c < COLUMNS; c += TEAM) room.y[c] = (double)b[c * b_step] - room.y[c];
  sync_team();
}

// A bound of the backward error of x.
INLINE double error_of_wide(double a, double b, double x, double r) {
  return r == 0 ? 0 : r / hypot(a * x, b);
}

// The right side of a team and its system; past the last one the last again.
INLINE bool take_wide_side(const SystemShape* shape, index_t* number, index_t* system, int* side) {
  const index_t own = (index_t)get_group_id(0) * TEAMS + TEAM_NUMBER;
  const index_t last = (index_t)shape->count * shape->sides - 1;
  *number = min(own, last);
  *system = *number / shape->sides;
  *side = (int)(*number - *system * shape->sides);
  return own <= last;
}

// multipliers: w, COLUMNS for each right side. of_scaled: what R says of D^-1 A'.
__kernel __attribute__((reqd_work_group_size(TEAMS * TEAM, 1, 1))) void solve_wide(
    __global const STORED* a, __global const STORED* b, __global const STORED* r,
    __global STORED* x, __global const double* weights, __global const FactorFindings* of_scaled,
    __global double* multipliers, SystemShape shape, int length) {
  DECLARE_ROOM(room);
  __local int open_teams[OPEN_COUNTERS];
  index_t number, system;
  int side;
  const bool exists = take_wide_side(&shape, &number, &system, &side);
  a += system * length * COLUMNS;
  weights += system * length;
  b += system * shape.b_system + side * shape.b_side;
  r += system * COLUMNS * COLUMNS;
  x += system * shape.x_system + side * shape.x_side;
  multipliers += number * COLUMNS;
  double own[OWNED];
#pragma unroll
  for (int t = 0; t < OWNED; ++t) own[t] = 0;
  for (int c = ITEM; c < COLUMNS; c += TEAM) room.y[c] = 0;
  subtract_from_b(room, b, shape.b_step);
  const double norm_b = sqrt(squared_norm(room, room.y)), norm_a = of_scaled[system].norm;
  clear_open_teams(open_teams);
  int is_done = 0, all_are_done = 0;
#pragma unroll 1
  for (int step = 0; !all_are_done; ++step) {
    take_triangle(room, r);
    solve_triangle(room, r, true);
    solve_triangle(room, r, false);
#pragma unroll
    for (int t = 0; t < OWNED; ++t) {
      const int c = ITEM + TEAM * t;
      if (c >= COLUMNS) continue;
      room.x[c] = is_done ? 0 : room.y[c];
      own[t] += room.x[c];
      if (exists) multipliers[c] = own[t];
    }
    SystemSums sums = no_rows();
    pass_over_x(room, a, weights, x, shape.x_step, length, step == 0 ? X_BEGINS : X_GROWS, exists,
                &sums);
    collect_gradient(room, &sums, room.y);
    subtract_from_b(room, b, shape.b_step);
    const double norm_r = sqrt(squared_norm(room, room.y));
    const double norm_x = sqrt(team_sum(room, sums.b_squares));
    const bool is_open = error_of_wide(norm_a, norm_b, norm_x, norm_r) > shape.clear;
    is_done |= (int)(!exists | (step == MOST_STEPS - 1)) | (int)!is_open;
    all_are_done = !any_team_is_open(open_teams, step, ITEM == 0 && !is_done);
  }
}

// least_norms: the error of the norm of each right side's x.
__kernel __attribute__((reqd_work_group_size(TEAMS * TEAM, 1, 1))) void check_wide(
    __global const STORED* a, __global const STORED* b, __global STORED* x,
    __global const double* weights, __global const FactorFindings* of_r,
    __global const FactorFindings* of_scaled, __global const double* multipliers,
    __global double* least_norms, __global SolutionErrors* errors, SystemShape shape, int length) {
  DECLARE_ROOM(room);
  index_t number, system;
  int side;
  const bool exists = take_wide_side(&shape, &number, &system, &side);
  a += system * length * COLUMNS;
  weights += system * length;
  b += system * shape.b_system + side * shape.b_side;
  x += system * shape.x_system + side * shape.x_side;
  for (int c = ITEM; c < COLUMNS; c += TEAM) {
    room.x[c] = multipliers[number * COLUMNS + c];
    room.y[c] = 0;
  }
  subtract_from_b(room, b, shape.b_step);
  const double norm_b = sqrt(squared_norm(room, room.y));
  SystemSums sums = no_rows();
  pass_over_x(room, a, weights, x, shape.x_step, length, X_STAYS, exists, &sums);
  collect_gradient(room, &sums, room.y);
  subtract_from_b(room, b, shape.b_step);
  const double norm_r = sqrt(squared_norm(room, room.y));
  const double norm_x = sqrt(team_sum(room, sums.b_squares));
  const double outside = sqrt(team_sum(room, sums.r_squares));
  const double norm_w = sqrt(squared_norm(room, room.x)), norm_a = of_scaled[system].norm;
  if (ITEM > 0 || !exists) return;
  const bool has_rank = of_scaled[system].condition * shape.least_value < 1;
  const bool counts = has_rank && norm_a > 0 && has_safe_squares(of_r[system].norm) &&
                      has_safe_squares(norm_b) && has_safe_squares(norm_x) &&
                      has_safe_squares(norm_w) && isfinite(outside);
  SolutionErrors of_x;
  of_x.residual_norm = norm_r;
  of_x.error = counts ? error_of_wide(norm_a, norm_b, norm_x, norm_r) : NAN;
  errors[number] = of_x;
  least_norms[number] = outside == 0 ? 0 : outside / (norm_a * norm_w);
}
