// SPDX-License-Identifier: Apache-2.0
// systems.cl: least squares min ||A x - b|| for a batch of matrices with an R for each of them, and
// the check of every solution. All sums are in float64.
//
//   solve_systems      x := 0, then at most MOST_STEPS times                system x right side
//                        g = A'(b - A x),  x += R^-1 R^-T g
//                      until ||d|| <= enough ||x|| for the d that was added
//   check_solutions    r = b - A x, g = A'r for the stored x; the least     system x right side
//                      of the bounds below, with what measures.cl found;
//                      standard errors
//
// The first step gives R'R x = A'b, the next ones are corrections (Bjorck 1987): each multiplies
// the error by about cond(A) times the rounding error of R. R may come from any variant and in any
// precision; the check decides what is good (bounds.clh).
//
// A is m x COLUMNS, packed; entry i of right side j of system s is b[s b_system + j b_side + i
// b_step], and x in the same way. R is COLUMNS x COLUMNS.
//
// Defines, set in system_params.cpp   range     meaning
//   STORED                                      common.clh
//   COLUMNS, TILE_ROWS, TRIANGLE      rows.clh
//   TEAM, TEAMS                       team.clh
//   MOST_STEPS                        1 ..      the first step and the corrections
// Work-group: TEAMS teams, each with a right side. Local memory: rows.clh, Room.
#include "gpu/common/common.clh"
#include "gpu/solve/parts/bounds.clh"
#include "gpu/solve/parts/open_teams.clh"

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
  __local int open_teams[OPEN_COUNTERS];
  clear_open_teams(open_teams);
  int is_done = 0, all_are_done = 0;
#pragma unroll 1
  for (int step = 0; !all_are_done; ++step) {
    SystemSums sums = no_rows();
    if (step == 0) {
      add_product_with_b(a, b, shape.b_step, 0, shape.m, &sums);
    } else {
      add_rows(room, a, b, shape.b_step, 0, 0, shape.m, &sums);
    }
    collect_gradient(room, &sums, room.y);
    const bool is_enough = take_a_step(room, r, is_done, shape.enough);
    is_done |= (int)(step == MOST_STEPS - 1) | ((int)(step > 0) & (int)is_enough);
    all_are_done = !any_team_is_open(open_teams, step, ITEM == 0 && !is_done);
  }
  if (!exists) return;
  for (int c = ITEM; c < COLUMNS; c += TEAM) x[c * shape.x_step] = (STORED)room.x[c];
}

// ---- the check

__kernel __attribute__((reqd_work_group_size(TEAMS * TEAM, 1, 1))) void check_solutions(
    __global const STORED* a, __global const STORED* b, __global const STORED* r,
    __global const STORED* x, __global const FactorFindings* findings,
    __global const double* of_columns, __global SolutionErrors* errors, __global STORED* se,
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
  __local int open_teams;
  check_side(room, a, b, 0, r, x + to, findings + system, of_columns + system * NUMBERS_OF_COLUMNS,
             errors + system * shape.sides + side, se + to, exists, &shape, &open_teams);
}
