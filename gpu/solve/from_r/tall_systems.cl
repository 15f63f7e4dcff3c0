// SPDX-License-Identifier: Apache-2.0
// tall_systems.cl: systems.cl for matrices with so many rows that several work-groups share them.
//
//   slab 0 | rows | -> sums  \
//   slab 1 | rows | -> sums   -> sums of all rows -> x += R^-1 R^-T g
//   slab 2 | rows | -> sums  /
//
//   steps, as in systems.cl:                                                 work-groups
//     sum_row_slabs    g = A'(b - A x), r'r and b'b of the rows of a slab    right side x slab
//     combine_slabs    each of these n + 2 numbers over all slabs            right side x number
//     take_step        x := x + R^-1 R^-T g, unless it is good enough        right side
//   check:
//     sum_row_slabs, combine_slabs with x as it is stored, then
//     finish_tall      errors and standard errors (bounds.clh)               right side
//
// `state` holds x in float64 (COLUMNS numbers) for each right side, and whether it is done. A right
// side that is done takes no part in later steps. The slabs depend on the shape of the system
// alone, so that the bits do not depend on the device.
//
// Defines, set in tall_systems.cpp   range   meaning
//   STORED                                   common.clh
//   COLUMNS, TEAM, TILE_ROWS, TRIANGLE       rows.clh
//   TEAMS                            1       rows.clh
// Work-group: a team. Local memory: rows.clh, Room.
#ifndef TEAMS
#define TEAMS 1
#endif
#include "gpu/common/common.clh"
#include "gpu/solve/parts/bounds.clh"

#define STEP_NUMBERS (COLUMNS + 2)
#define STATE (COLUMNS + 1)

// step: 0 for the first one, where x = 0; below 0 for the check.
__kernel __attribute__((reqd_work_group_size(TEAM, 1, 1))) void sum_row_slabs(
    __global const STORED* a, __global const STORED* b, __global const double* state,
    __global double* partial, SystemShape shape, SlabShape slabs, int step) {
  DECLARE_ROOM(room);
  index_t number;
  const int slab = split_group(slabs.count, &number);
  const index_t system = number / shape.sides;
  const int side = (int)(number - system * shape.sides);
  a += system * shape.m * COLUMNS;
  b += system * shape.b_system + side * shape.b_side;
  state += number * STATE;
  for (int c = ITEM; c < COLUMNS; c += TEAM) room.x[c] = state[c];
  const bool is_done = step > 0 && state[COLUMNS] != 0;
  const index_t first = (index_t)slab * slabs.rows;
  const int end = (int)min(first + slabs.rows, (index_t)shape.m);
  const int rows_end = is_done ? (int)first : end;
  SystemSums sums = no_rows();
  if (step == 0) {
    add_product_with_b(a, b, shape.b_step, (int)first, rows_end, &sums);
  } else {
    add_rows(room, a, b, shape.b_step, 0, (int)first, rows_end, &sums);
  }
  collect_gradient(room, &sums, room.y);
  const double r_squares = team_sum(room, sums.r_squares);
  const double b_squares = team_sum(room, sums.b_squares);
  partial += (number * slabs.count + slab) * STEP_NUMBERS;
  for (int c = ITEM; c < COLUMNS; c += TEAM) partial[c] = room.y[c];
  if (ITEM == 0) {
    partial[COLUMNS] = r_squares;
    partial[COLUMNS + 1] = b_squares;
  }
}

__kernel __attribute__((reqd_work_group_size(TEAM, 1, 1))) void combine_slabs(
    __global const double* partial, __global double* sums, SlabShape slabs) {
  __local double terms[TEAM];
  const Room room = {0, 0, 0, 0, terms, 0};
  index_t number;
  const int entry = split_group(STEP_NUMBERS, &number);
  partial += number * slabs.count * STEP_NUMBERS + entry;
  double sum = 0;
  for (int s = ITEM; s < slabs.count; s += TEAM) sum += partial[(index_t)s * STEP_NUMBERS];
  sum = team_sum(room, sum);
  if (ITEM == 0) sums[number * STEP_NUMBERS + entry] = sum;
}

__kernel __attribute__((reqd_work_group_size(TEAM, 1, 1))) void take_step(
    __global const double* sums, __global const STORED* r, __global double* state,
    __global STORED* x, SystemShape shape, int step, int is_last) {
  DECLARE_ROOM(room);
  const index_t number = get_group_id(0), system = number / shape.sides;
  const int side = (int)(number - system * shape.sides);
  sums += number * STEP_NUMBERS;
  state += number * STATE;
  x += system * shape.x_system + side * shape.x_side;
  r += system * COLUMNS * COLUMNS;
  const bool was_done = step > 0 && state[COLUMNS] != 0;
  for (int c = ITEM; c < COLUMNS; c += TEAM) {
    room.x[c] = step > 0 ? state[c] : 0;
    room.y[c] = sums[c];
  }
  // All have read the flag before it is written at the end.
  barrier(CLK_GLOBAL_MEM_FENCE);
  // A right side that is done waits for no triangle.
  bool is_enough = false;
#pragma unroll 1
  for (int turn = was_done; turn < 1; ++turn)
    is_enough = take_a_step(room, r, false, shape.enough);
  const bool is_done = was_done || is_last || (step > 0 && is_enough);
  // The check needs x as it is stored.
  for (int c = ITEM; c < COLUMNS; c += TEAM) {
    const STORED rounded = (STORED)room.x[c];
    x[c * shape.x_step] = rounded;
    state[c] = is_done ? (double)rounded : room.x[c];
  }
  if (ITEM == 0) state[COLUMNS] = is_done;
}

__kernel __attribute__((reqd_work_group_size(TEAM, 1, 1))) void finish_tall(
    __global const double* sums, __global const STORED* r, __global const double* state,
    __global const FactorFindings* findings, __global const double* of_columns,
    __global SolutionErrors* errors, __global STORED* se, SystemShape shape) {
  DECLARE_ROOM(room);
  const index_t number = get_group_id(0), system = number / shape.sides;
  const int side = (int)(number - system * shape.sides);
  sums += number * STEP_NUMBERS;
  state += number * STATE;
  for (int c = ITEM; c < COLUMNS; c += TEAM) {
    room.x[c] = state[c];
    room.y[c] = sums[c];
  }
  SystemSums all = no_rows();
  all.r_squares = ITEM == 0 ? sums[COLUMNS] : 0;
  all.b_squares = ITEM == 0 ? sums[COLUMNS + 1] : 0;
  __local int open_teams;
  const double norm_r = finish_check(room, &all, r + system * COLUMNS * COLUMNS, findings + system,
                                     of_columns + system * NUMBERS_OF_COLUMNS, errors + number,
                                     true, &shape, &open_teams);
  if (!shape.wants_se) return;
  store_standard_errors(norm_r, of_columns + system * NUMBERS_OF_COLUMNS + COLUMNS,
                        se + system * shape.x_system + side * shape.x_side, &shape);
}
