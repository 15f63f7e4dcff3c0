// SPDX-License-Identifier: Apache-2.0
// tall_normal.cl: x by normal equations from the sums of normal_sums.cl: A'A = G = L D L',
// x = L'^-1 D^-1 L^-1 A'b, and R = D^(1/2) L' for the check (tall_systems.cl).
//
//   solve_normal_sums    x, R and `state` as tall_systems.cl has it      TEAMS systems
//
// A right side is done unless ||a_j||^2 / d_j > most_ratio for a column j: then the condition may
// be so large that x needs a correction.
//
// Defines, set in tall_normal.cpp   range   meaning
//   STORED                                  common.clh
//   COLUMNS, NORMAL_BLOCK, TEAMS            normal_factor.clh
// Work-group: TEAMS teams of NORMAL_TEAM. Local memory: NormalRoom, an integer each.
#include "gpu/solve/normal/normal_factor.clh"

#define NORMAL_NUMBERS (COLUMNS * COLUMNS + COLUMNS)

// gram := the block of A'A, with 1 on the diagonal past the last column; y := A'b.
INLINE void take_sums(__local double* y, NormalBlock gram, __global const double* sums,
                      const SolvePlace* at) {
#pragma unroll
  for (int i = 0; i < NORMAL_BLOCK; ++i) {
#pragma unroll
    for (int j = 0; j < NORMAL_BLOCK; ++j) {
      const int row = at->down * NORMAL_BLOCK + i, col = at->across * NORMAL_BLOCK + j;
      double entry = row == col ? 1 : 0;
      if (row < COLUMNS && col < COLUMNS) entry = sums[min(row, col) * COLUMNS + max(row, col)];
      gram[i * NORMAL_BLOCK + j] = entry;
    }
  }
#pragma unroll
  for (int t = 0; t < NORMAL_OWNED; ++t) {
    const int place = NORMAL_ITEM + NORMAL_TEAM * t,
              col = place % NORMAL_ACROSS * NORMAL_BLOCK + place / NORMAL_ACROSS;
    if (place < NORMAL_WIDTH) y[place] = col < COLUMNS ? sums[COLUMNS * COLUMNS + col] : 0;
  }
}

__kernel __attribute__((reqd_work_group_size(NORMAL_GROUP, 1, 1))) void solve_normal_sums(
    __global const double* sums, __global STORED* r, __global double* state, __global STORED* x,
    SystemShape shape, double most_ratio) {
  __local int open_teams[TEAMS];
  __local double columns[TEAMS * 2 * NORMAL_WIDTH], pivots[TEAMS * NORMAL_WIDTH],
      inverses[TEAMS * NORMAL_WIDTH], all_y[TEAMS * NORMAL_WIDTH];
  const int team = NORMAL_TEAM_NUMBER;
  const NormalRoom room = {columns + team * 2 * NORMAL_WIDTH, pivots + team * NORMAL_WIDTH,
                           inverses + team * NORMAL_WIDTH, all_y + team * NORMAL_WIDTH};
  const index_t wanted = (index_t)get_group_id(0) * TEAMS + team;
  const index_t system = min(wanted, (index_t)shape.count - 1);
  SolvePlace at;
  find_block(&at);
  NormalBlock gram;
  take_sums(room.y, gram, sums + system * NORMAL_NUMBERS, &at);
  factor_normal(room, gram, &at);
  solve_normal_factor(room, gram, &at);
  if (NORMAL_ITEM == 0) open_teams[team] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int c = NORMAL_ITEM; c < COLUMNS; c += NORMAL_TEAM) {
    const double square = sums[system * NORMAL_NUMBERS + c * (COLUMNS + 1)];
    if (!(square * room.inverse[PLACE(c)] <= most_ratio)) atomic_inc(&open_teams[team]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (wanted != system) return;
  store_normal_factor(room, gram, r + system * COLUMNS * COLUMNS, &at);
  state += system * (COLUMNS + 1);
  for (int p = NORMAL_ITEM; p < NORMAL_WIDTH; p += NORMAL_TEAM) {
    const int col = p % NORMAL_ACROSS * NORMAL_BLOCK + p / NORMAL_ACROSS;
    if (col >= COLUMNS) continue;
    const STORED rounded = (STORED)room.y[p];
    x[system * shape.x_system + col * shape.x_step] = rounded;
    state[col] = rounded;
  }
  if (NORMAL_ITEM == 0) state[COLUMNS] = open_teams[team] == 0;
}
