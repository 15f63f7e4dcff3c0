// SPDX-License-Identifier: Apache-2.0
// pairs_check.cl: the check of right sides of one A with weights of their own, as that of
// systems.cl.
//
//   check_weighed_sides   r = b - A x, g = A'W r for the stored x, and the least of     right side
//                         the bounds (bounds.clh); standard errors
//
// The weights are those of pairs.cl: times 4^-e, with zero for rows that are left out. ||r|| is
// stored without that factor.
//
// Defines, set in pairs.cpp       range     meaning
//   STORED                                  common.clh
//   COLUMNS, TILE_ROWS, TRIANGLE            rows.clh
//   TEAM, TEAMS                             team.clh
// Work-group: TEAMS teams, each with a right side. Local memory: rows.clh, Room.
#include "gpu/common/common.clh"
#include "gpu/solve/parts/bounds.clh"

__kernel __attribute__((reqd_work_group_size(TEAMS * TEAM, 1, 1))) void check_weighed_sides(
    __global const STORED* a, __global const STORED* b, __global const STORED* w,
    __global const int* exponents, __global const STORED* r, __global const STORED* x,
    __global const FactorFindings* findings, __global const double* of_columns,
    __global SolutionErrors* errors, __global STORED* se, SystemShape shape) {
  DECLARE_ROOM(room);
  __local int open_teams;
  const index_t number = (index_t)get_group_id(0) * TEAMS + TEAM_NUMBER;
  const bool exists = number < shape.count;
  const index_t side = exists ? number : shape.count - 1;
  const index_t to = side * shape.x_system;
  check_side(room, a, b + side * shape.b_system, w + side * shape.m, r + side * COLUMNS * COLUMNS,
             x + to, findings + side, of_columns + side * NUMBERS_OF_COLUMNS, errors + side,
             se + to, exists, &shape, &open_teams);
  if (ITEM == 0 && exists)
    errors[side].residual_norm = ldexp(errors[side].residual_norm, exponents[side]);
}
