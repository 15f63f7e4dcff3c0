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
//   COLUMNS, BLOCK, TEAMS                   normal_factor.clh
// Work-group: TEAMS teams of TEAM. Local memory: NormalRoom, an integer each.
#include "gpu/solve/normal_factor.clh"

#define NUMBERS (COLUMNS * COLUMNS + COLUMNS)

// gram := the block of A'A, with 1 on the diagonal past the last column; y := A'b.
INLINE void take_sums(__local double* y, Block gram, __global const double* sums,
                      const SolvePlace* at) {
#pragma unroll
  for (int i = 0; i < BLOCK; ++i) {
#pragma unroll
    for (int j = 0; j < BLOCK; ++j) {
      const int row = at->down * BLOCK + i, col = at->across * BLOCK + j;
      double entry = row == col ? 1 : 0;
      if (row < COLUMNS && col < COLUMNS) entry = sums[min(row, col) * COLUMNS + max(row, col)];
      gram[i * BLOCK + j] = entry;
    }
  }
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    const int place = ITEM + TEAM * t, col = place % ACROSS * BLOCK + place / ACROSS;
    if (place < WIDTH) y[place] = col < COLUMNS ? sums[COLUMNS * COLUMNS + col] : 0;
  }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void solve_normal_sums(
    __global const double* sums, __global STORED* r, __global double* state, __global STORED* x,
    SystemShape shape, double most_ratio) {
  __local int open_teams[TEAMS];
  __local double columns[TEAMS * 2 * WIDTH], pivots[TEAMS * WIDTH], inverses[TEAMS * WIDTH],
      all_y[TEAMS * WIDTH];
  const int team = TEAM_NUMBER;
  const NormalRoom room = {columns + team * 2 * WIDTH, pivots + team * WIDTH,
                           inverses + team * WIDTH, all_y + team * WIDTH};
  const index_t wanted = (index_t)get_group_id(0) * TEAMS + team;
  const index_t system = min(wanted, (index_t)shape.count - 1);
  SolvePlace at;
  find_block(&at);
  Block gram;
  take_sums(room.y, gram, sums + system * NUMBERS, &at);
  factor_normal(room, gram, &at);
  solve_normal_factor(room, gram, &at);
  if (ITEM == 0) open_teams[team] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int c = ITEM; c < COLUMNS; c += TEAM) {
    const double square = sums[system * NUMBERS + c * (COLUMNS + 1)];
    if (!(square * room.inverse[PLACE(c)] <= most_ratio)) atomic_inc(&open_teams[team]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (wanted != system) return;
  store_normal_factor(room, gram, r + system * COLUMNS * COLUMNS, &at);
  state += system * (COLUMNS + 1);
  for (int p = ITEM; p < WIDTH; p += TEAM) {
    const int col = p % ACROSS * BLOCK + p / ACROSS;
    if (col >= COLUMNS) continue;
    const STORED rounded = (STORED)room.y[p];
    x[system * shape.x_system + col * shape.x_step] = rounded;
    state[col] = rounded;
  }
  if (ITEM == 0) state[COLUMNS] = open_teams[team] == 0;
}
