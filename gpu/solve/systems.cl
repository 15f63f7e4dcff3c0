// SPDX-License-Identifier: Apache-2.0
// systems.cl: least squares min ||A x - b|| for a batch of matrices with an R for each of them, and
// the check of every solution. All sums are in float64.
//
//   solve_systems      x := 0, then at most MOST_STEPS times                system x right side
//                        g = A'(b - A x),  x += R^-1 R^-T g
//                      until ||d|| <= enough ||x|| for the d that was added
//   measure_factors    ||R||, estimates of condition numbers, and           system, one after
//                      the norms of the rows of R^-1                        another
//   check_solutions    r = b - A x, g = A'r for the stored x; the least     system x right side
//                      of the bounds below; standard errors
//
// The first step gives R'R x = A'b, the next ones are corrections (Bjorck 1987): each multiplies
// the error by about cond(A) times the rounding error of R. R may come from any variant and in any
// precision; the check decides what is good (bounds.clh).
//
// A is m x COLUMNS, packed; entry i of right side j of system s is b[s b_system + j b_side + i
// b_step], and x in the same way. R is COLUMNS x COLUMNS.
//
// Condition numbers: LINPACK's growing solution (trco), then three steps of inverse iteration, and
// three of the power method for the largest singular value. Once for R, once for R D with D the
// powers of two that bring the columns to norms from 1/2 to 1.
//
// Defines, set in system_params.cpp   range     meaning
//   STORED                                      common.clh
//   COLUMNS, TEAM, TEAMS, TILE_ROWS, TRIANGLE   rows.clh
//   MOST_STEPS                        1 ..      the first step and the corrections
// Work-group: TEAMS teams; a team has a right side, or a system. Local memory: rows.clh, Room.
#include "gpu/common/common.clh"
#include "gpu/solve/bounds.clh"

#ifndef MOST_STEPS
#define MOST_STEPS 4
#endif

// The right side of a team and its system, which is beyond the last one in the last group.
INLINE int side_of_team(const SystemShape* shape, index_t* system) {
  const index_t number = (index_t)get_group_id(0) * TEAMS + TEAM_NUMBER;
  *system = number / shape->sides;
  return (int)(number - *system * shape->sides);
}

__kernel __attribute__((reqd_work_group_size(TEAMS * TEAM, 1, 1))) void solve_systems(
    __global const STORED* a, __global const STORED* b, __global const STORED* r,
    __global STORED* x, SystemShape shape) {
  DECLARE_ROOM(room);
  index_t system;
  const int side = side_of_team(&shape, &system);
  const bool exists = system < shape.count;
  if (!exists) system = shape.count - 1;
  a += system * shape.m * COLUMNS;
  b += system * shape.b_system + side * shape.b_side;
  r += system * COLUMNS * COLUMNS;
  x += system * shape.x_system + side * shape.x_side;
  for (int c = ITEM; c < COLUMNS; c += TEAM) room.x[c] = 0;
  // g = A'b, then g = A'(b - A x)
  __local int open_teams[2];
  int is_done = 0, all_are_done = 0;
#pragma unroll 1
  for (int step = 0; !all_are_done; ++step) {
    // The counters of this step and of the last one, which others may still read.
    __local int* open = open_teams + (step & 1);
    if (get_local_id(0) == 0) *open = 0;
    RowSums sums = no_rows();
    if (step == 0) {
      add_product_with_b(a, b, shape.b_step, 0, shape.m, &sums);
    } else {
      add_rows(room, a, b, shape.b_step, 0, shape.m, &sums);
    }
    collect_gradient(room, &sums, room.y);
    const bool is_enough = take_a_step(room, r, is_done, shape.enough);
    is_done |= (int)(step == MOST_STEPS - 1) | ((int)(step > 0) & (int)is_enough);
    if (ITEM == 0 && !is_done) atomic_inc(open);
    barrier(CLK_LOCAL_MEM_FENCE);
    all_are_done = *open == 0;
  }
  if (!exists) return;
  for (int c = ITEM; c < COLUMNS; c += TEAM) x[c * shape.x_step] = (STORED)room.x[c];
}

// ---- condition numbers. `weight` holds the diagonal of D.

// room.y := v / ||v||; returns ||v|| for v = room.y.
INLINE double normalize(const Room room) {
  const double norm = sqrt(squared_norm(room, room.y));
  barrier(CLK_LOCAL_MEM_FENCE);
  if (norm > 0 && isfinite(norm))
    for (int c = ITEM; c < COLUMNS; c += TEAM) room.y[c] /= norm;
  barrier(CLK_LOCAL_MEM_FENCE);
  return norm;
}

// room.y := D^-1 room.y
INLINE void divide_by_weights(const Room room, __local const double* weight) {
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int c = ITEM; c < COLUMNS; c += TEAM) room.y[c] /= weight[c];
  barrier(CLK_LOCAL_MEM_FENCE);
}

// room.y := R D room.y, and D R' room.y.
INLINE void multiply_triangle(const Room room, __global const STORED* r,
                              __local const double* weight) {
  double own[OWNED];
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    own[t] = 0;
    for (int i = ITEM + TEAM * t, j = i; j < COLUMNS; ++j)
      own[t] = fma(R_AT(i, j), weight[j] * room.y[j], own[t]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int t = 0; t < OWNED; ++t)
    if (ITEM + TEAM * t < COLUMNS) room.y[ITEM + TEAM * t] = own[t];
  barrier(CLK_LOCAL_MEM_FENCE);
}
INLINE void multiply_transposed(const Room room, __global const STORED* r,
                                __local const double* weight) {
  double own[OWNED];
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    const int j = ITEM + TEAM * t;
    own[t] = 0;
    for (int i = 0; j < COLUMNS && i <= j; ++i) own[t] = fma(R_AT(i, j), room.y[i], own[t]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    const int j = ITEM + TEAM * t;
    if (j < COLUMNS) room.y[j] = weight[j] * own[t];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// The vector y = (R D)^-T v for signs v_j that let y grow, in room.y.
INLINE void grow_solution(const Room room, __global const STORED* r, __local const double* weight) {
  double own[OWNED];
#pragma unroll
  for (int t = 0; t < OWNED; ++t) own[t] = 0;
#pragma unroll 1
  for (int i = 0; i < COLUMNS; ++i) {
#pragma unroll
    for (int t = 0; t < OWNED; ++t)
      if (ITEM + TEAM * t == i)
        room.y[i] = (own[t] > 0 ? own[t] + 1 : own[t] - 1) * room.inverse[i] / weight[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    const double known = room.y[i];
#pragma unroll
    for (int t = 0; t < OWNED; ++t) {
      const int c = ITEM + TEAM * t;
      if (c > i && c < COLUMNS) own[t] = fma(-known, R_AT(i, c) * weight[c], own[t]);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

#define STEPS_OF_ESTIMATES 3

// An estimate of the smallest singular value of R D, never below it; 0 where R is singular.
INLINE double smallest_value(const Room room, __global const STORED* r,
                             __local const double* weight) {
  grow_solution(room, r, weight);
  double most = 0;
  bool is_finite = isfinite(normalize(room));
#pragma unroll 1
  for (int s = 0; s < STEPS_OF_ESTIMATES; ++s) {
    solve_triangle(room, r);
    divide_by_weights(room, weight);
    const double forward = normalize(room);
    divide_by_weights(room, weight);
    solve_transposed(room, r);
    const double backward = normalize(room);
    is_finite = is_finite && isfinite(forward) && isfinite(backward);
    most = fmax(most, fmax(forward, backward));
  }
  return is_finite ? 1 / most : 0;
}

// An estimate of the largest singular value of R D, never above it. Begins with the longest column,
// number `longest`, whose norm is `most`.
INLINE double largest_value(const Room room, __global const STORED* r,
                            __local const double* weight, int longest, double most) {
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int c = ITEM; c < COLUMNS; c += TEAM) room.y[c] = c == longest;
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
  for (int s = 0; s < STEPS_OF_ESTIMATES; ++s) {
    multiply_triangle(room, r, weight);
    most = fmax(most, normalize(room));
    multiply_transposed(room, r, weight);
    most = fmax(most, normalize(room));
  }
  return most;
}

// The number of the first largest entry of room.x.
INLINE int longest_column(const Room room) {
  int longest = 0;
  for (int c = 1; c < COLUMNS; ++c)
    if (room.x[c] > room.x[longest]) longest = c;
  return longest;
}

// room.x := the norms of R's columns; weight := 1. Returns ||R||_F^2.
INLINE double measure_r_columns(const Room room, __global const STORED* r, __local double* weight) {
  double squares = 0;
  for (int c = ITEM; c < COLUMNS; c += TEAM) {
    double sum = 0;
    for (int i = 0; i <= c; ++i) sum = fma(R_AT(i, c), R_AT(i, c), sum);
    room.x[c] = sqrt(sum);
    weight[c] = 1;
    squares += sum;
  }
  return team_sum(room, squares);
}

// norms[i] := the norm of row i of R^-1: y R = e_i, from entry i on; y_j at scratch[j COLUMNS + i].
INLINE void measure_inverse(const Room room, __global const STORED* r, __global double* scratch,
                            __global double* norms) {
  for (int i = ITEM; i < COLUMNS; i += TEAM) {
    double y = room.inverse[i], squares = y * y;
    scratch[(index_t)i * COLUMNS + i] = y;
    for (int j = i + 1; j < COLUMNS; ++j) {
      double sum = 0;
      for (int k = i; k < j; ++k) sum = fma(scratch[(index_t)k * COLUMNS + i], R_AT(k, j), sum);
      y = -sum * room.inverse[j];
      scratch[(index_t)j * COLUMNS + i] = y;
      squares = fma(y, y, squares);
    }
    norms[i] = sqrt(squares);
  }
}

// A group takes TEAMS systems, then those after the ones of all groups, ..; `scratch` has COLUMNS^2
// numbers for each team.
__kernel __attribute__((reqd_work_group_size(TEAMS * TEAM, 1, 1))) void measure_factors(
    __global const STORED* all_r, __global FactorFindings* findings, __global double* inverse_norms,
    __global double* scratch, SystemShape shape) {
  DECLARE_ROOM(room);
  __local double weights[TEAMS * COLUMNS];
  __local double* weight = weights + TEAM_NUMBER * COLUMNS;
  const index_t team = (index_t)get_group_id(0) * TEAMS + TEAM_NUMBER;
  scratch += shape.wants_se ? team * COLUMNS * COLUMNS : 0;
  for (index_t first = (index_t)get_group_id(0) * TEAMS; first < shape.count;
       first += (index_t)get_num_groups(0) * TEAMS) {
    const bool exists = first + TEAM_NUMBER < shape.count;
    const index_t system = exists ? first + TEAM_NUMBER : shape.count - 1;
    __global const STORED* r = all_r + system * COLUMNS * COLUMNS;
    take_triangle(room, r);
    FactorFindings found;
    found.scaled_condition = 0;
    found.norm = sqrt(measure_r_columns(room, r, weight));
    // First without, then with scaled columns.
#pragma unroll 1
    for (int scaled = 0; scaled < 2; ++scaled) {
      const int longest = longest_column(room);
      const double most = largest_value(room, r, weight, longest, room.x[longest]);
      found.condition = found.scaled_condition;
      found.smallest = smallest_value(room, r, weight);
      found.scaled_condition = most / found.smallest;
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int c = ITEM; c < COLUMNS; c += TEAM) {
        weight[c] = room.x[c] > 0 ? ldexp(1.0, -1 - ilogb(room.x[c])) : 1;
        room.x[c] *= weight[c];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (ITEM == 0 && exists) findings[system] = found;
    if (shape.wants_se && exists)
      measure_inverse(room, r, scratch, inverse_norms + system * COLUMNS);
  }
}

// ---- the check

__kernel __attribute__((reqd_work_group_size(TEAMS * TEAM, 1, 1))) void check_solutions(
    __global const STORED* a, __global const STORED* b, __global const STORED* r,
    __global const STORED* x, __global const FactorFindings* findings,
    __global const double* inverse_norms, __global SolutionErrors* errors, __global STORED* se,
    SystemShape shape) {
  DECLARE_ROOM(room);
  index_t system;
  const int side = side_of_team(&shape, &system);
  const bool exists = system < shape.count;
  if (!exists) system = shape.count - 1;
  const index_t to = system * shape.x_system + side * shape.x_side;
  a += system * shape.m * COLUMNS;
  b += system * shape.b_system + side * shape.b_side;
  r += system * COLUMNS * COLUMNS;
  for (int c = ITEM; c < COLUMNS; c += TEAM) room.x[c] = (double)x[to + c * shape.x_step];
  // r = b - A x, g = A'r
  RowSums sums = no_rows();
  add_rows(room, a, b, shape.b_step, 0, shape.m, &sums);
  collect_gradient(room, &sums, room.y);
  finish_check(room, &sums, r, findings + system, errors + system * shape.sides + side, exists,
               &shape);
  if (!shape.wants_se || !exists) return;
  store_standard_errors(room, inverse_norms + system * COLUMNS, se + to, &shape);
}
