// SPDX-License-Identifier: Apache-2.0
// normal.cl: least squares by normal equations in float64, for a batch of systems of more than four
// columns with one right side each. A is read once, and once more for each correction.
//
//   A'A = G,  A'b = y                       by tiles of rows
//   G = L D L'                              one column after another
//   x = L'^-1 D^-1 L^-1 y
//   float64 A: g = A'(b - A x),  x += L'^-1 D^-1 L^-1 g  until ||d|| <= enough ||x||
//   R = D^(1/2) L'                          for the check (systems.cl)
//
// Products of float32 are exact in float64, and x then has an error of about cond(A)^2 2^-53: the
// bar of float32 is far above it for every matrix that the rank decision does not leave to the
// host. With u = 2^-52, a correction in float64 multiplies the error by about 16 cond(A)^2 u
// (Bjorck 1987). What does not converge is solved again through R of a variant. The check decides
// in either case; G with a pivot that is not positive gives NaN, which fails.
//
// Loops have the same number of turns for all work-items: PoCL 3.1 confuses the work-items where
// some leave a loop before others.
//
// Column c of a tile is at PLACE(c), as entry c of a vector is (normal_factor.clh).
//
// Defines, set in normal.cpp   range     meaning
//   STORED                               common.clh
//   SUB_GROUP_BODY                       common.clh
//   COLUMNS, NORMAL_BLOCK, TEAMS         normal_factor.clh
//   TILE_ROWS                  1 ..      rows of a tile, which is in local memory
//   MOST_STEPS                 1 ..      the first step and the corrections
// Work-group: TEAMS teams of NORMAL_TEAM. Local memory: SolveRoom.
#include "gpu/solve/normal/normal_factor.clh"
#include "gpu/solve/parts/open_teams.clh"

#ifndef TILE_ROWS
#define TILE_ROWS 8
#endif
#ifndef MOST_STEPS
#define MOST_STEPS 4
#endif

// Odd, so that rows begin in different banks. Tiles are float64, because each entry is read often.
#define NORMAL_TILE_LD (NORMAL_WIDTH | 1)
#define NORMAL_TILE_ENTRIES (TILE_ROWS * NORMAL_TILE_LD | 1)
// What a work-item copies for a tile of A of all teams, and of b.
#define COPIES ((TEAMS * TILE_ROWS * COLUMNS + NORMAL_GROUP - 1) / NORMAL_GROUP)
#define COPIES_OF_B ((TEAMS * TILE_ROWS + NORMAL_GROUP - 1) / NORMAL_GROUP)
// Work-items that share a row of the tile in A x, and their columns.
#define NORMAL_PARTS (NORMAL_TEAM > TILE_ROWS ? NORMAL_TEAM / TILE_ROWS : 1)
#define PART_WIDTH ((NORMAL_WIDTH + NORMAL_PARTS - 1) / NORMAL_PARTS)
#define PARTIAL_ENTRIES \
  (NORMAL_PARTS * TILE_ROWS > NORMAL_TEAM ? NORMAL_PARTS * TILE_ROWS : NORMAL_TEAM)

typedef struct {
  __local double *tiles, *tile;  // NORMAL_TILE_ENTRIES: of all teams, of this one
  __local double *all_b, *b;     // TILE_ROWS: b, then b - A x
  NormalRoom normal;
  __local double* x;        // NORMAL_WIDTH
  __local double* partial;  // PARTIAL_ENTRIES
} SolveRoom;

// ---- tiles of rows

// The rows first .. first + TILE_ROWS - 1 of all systems of the group, with zeros after row m, and
// for teams after the last system. a, b: those of the group's first system.
INLINE void fetch_rows(STORED rows[COPIES], STORED b_rows[COPIES_OF_B], __global const STORED* a,
                       __global const STORED* b, const SolvePlace* at, const SystemShape* shape,
                       int first) {
#pragma unroll
  for (int u = 0; u < COPIES; ++u) {
    const int entry = (int)get_local_id(0) + NORMAL_GROUP * u, team = entry / (TILE_ROWS * COLUMNS);
    const int in_matrix = entry - team * (TILE_ROWS * COLUMNS) + first * COLUMNS;
    const bool exists = team < at->systems && in_matrix < shape->m * COLUMNS;
    rows[u] = exists ? a[team * shape->m * COLUMNS + in_matrix] : 0;
  }
#pragma unroll
  for (int u = 0; u < COPIES_OF_B; ++u) {
    const int entry = (int)get_local_id(0) + NORMAL_GROUP * u, team = entry / TILE_ROWS;
    const int row = first + entry % TILE_ROWS;
    const bool exists = team < at->systems && row < shape->m;
    b_rows[u] = exists ? b[team * shape->m + row] : 0;
  }
}

INLINE void store_rows(const SolveRoom room, const STORED rows[COPIES],
                       const STORED b_rows[COPIES_OF_B]) {
#pragma unroll
  for (int u = 0; u < COPIES; ++u) {
    const int entry = (int)get_local_id(0) + NORMAL_GROUP * u, team = entry / (TILE_ROWS * COLUMNS);
    const int in_tile = entry - team * (TILE_ROWS * COLUMNS);
    const int row = in_tile / COLUMNS, col = in_tile % COLUMNS;
    if (team < TEAMS)
      room.tiles[team * NORMAL_TILE_ENTRIES + row * NORMAL_TILE_LD + PLACE(col)] = rows[u];
  }
#pragma unroll
  for (int u = 0; u < COPIES_OF_B; ++u) {
    const int entry = (int)get_local_id(0) + NORMAL_GROUP * u;
    if (entry < TEAMS * TILE_ROWS) room.all_b[entry] = b_rows[u];
  }
}

// Stores the rows that were fetched, which begin with row `first`, and fetches those of the next
// tile.
INLINE void next_tile(const SolveRoom room, STORED rows[COPIES], STORED b_rows[COPIES_OF_B],
                      __global const STORED* a, __global const STORED* b, const SolvePlace* at,
                      const SystemShape* shape, int first) {
  barrier(CLK_LOCAL_MEM_FENCE);
  store_rows(room, rows, b_rows);
  barrier(CLK_LOCAL_MEM_FENCE);
  fetch_rows(rows, b_rows, a, b, at, shape, first + TILE_ROWS);
}

INLINE void clear_owned(double own[NORMAL_OWNED]) {
#pragma unroll
  for (int t = 0; t < NORMAL_OWNED; ++t) own[t] = 0;
}

// own += the entries of tile' b that belong to this work-item.
INLINE void add_owned(const SolveRoom room, double own[NORMAL_OWNED]) {
#pragma unroll
  for (int t = 0; t < NORMAL_OWNED; ++t) {
    const int place = NORMAL_ITEM + NORMAL_TEAM * t;
    double sum = own[t];
#pragma unroll
    for (int i = 0; i < TILE_ROWS; ++i)
      if (place < NORMAL_WIDTH) sum = fma(room.tile[i * NORMAL_TILE_LD + place], room.b[i], sum);
    own[t] = sum;
  }
}

INLINE void store_owned(__local double* to, const double own[NORMAL_OWNED]) {
#pragma unroll
  for (int t = 0; t < NORMAL_OWNED; ++t)
    if (NORMAL_ITEM + NORMAL_TEAM * t < NORMAL_WIDTH) to[NORMAL_ITEM + NORMAL_TEAM * t] = own[t];
}

// gram := the block of A'A, with 1 on the diagonal past the last column; room.normal.y := A'b.
INLINE void form_normal(const SolveRoom room, NormalBlock gram, __global const STORED* a,
                        __global const STORED* b, const SolvePlace* at, const SystemShape* shape) {
  double own[NORMAL_OWNED];
  clear_owned(own);
#pragma unroll
  for (int i = 0; i < NORMAL_BLOCK; ++i) {
#pragma unroll
    for (int j = 0; j < NORMAL_BLOCK; ++j) gram[i * NORMAL_BLOCK + j] = 0;
  }
  STORED rows[COPIES];
  STORED b_rows[COPIES_OF_B];
  fetch_rows(rows, b_rows, a, b, at, shape, 0);
#pragma unroll 1
  for (int first = 0; first < shape->m; first += TILE_ROWS) {
    next_tile(room, rows, b_rows, a, b, at, shape, first);
#pragma unroll 1
    for (int k = 0; k < TILE_ROWS; ++k) {
      __local const double* from = room.tile + k * NORMAL_TILE_LD;
      double left[NORMAL_BLOCK], right[NORMAL_BLOCK];
#pragma unroll
      for (int i = 0; i < NORMAL_BLOCK; ++i) {
        left[i] = from[PLACE_IN(at->down, i)];
        right[i] = from[PLACE_IN(at->across, i)];
      }
#pragma unroll
      for (int i = 0; i < NORMAL_BLOCK; ++i) {
#pragma unroll
        for (int j = 0; j < NORMAL_BLOCK; ++j)
          gram[i * NORMAL_BLOCK + j] = fma(left[i], right[j], gram[i * NORMAL_BLOCK + j]);
      }
    }
    add_owned(room, own);
  }
  store_owned(room.normal.y, own);
#pragma unroll
  for (int i = 0; i < NORMAL_BLOCK; ++i)
    if (at->down == at->across && at->down * NORMAL_BLOCK + i >= COLUMNS)
      gram[i * NORMAL_BLOCK + i] = 1;
}

// ---- corrections

#if MOST_STEPS > 1
// The sum of one number of every work-item of a team, in each of them.
INLINE double sum_of_team(const SolveRoom room, double x) {
  barrier(CLK_LOCAL_MEM_FENCE);
  room.partial[NORMAL_ITEM] = x;
  barrier(CLK_LOCAL_MEM_FENCE);
  double sum = 0;
  for (int i = 0; i < NORMAL_TEAM; ++i) sum += room.partial[i];
  return sum;
}

INLINE double squared_norm_of(const SolveRoom room, __local const double* v) {
  double sum = 0;
#pragma unroll
  for (int t = 0; t < NORMAL_OWNED; ++t) {
    const int place = NORMAL_ITEM + NORMAL_TEAM * t;
    if (place < NORMAL_WIDTH) sum = fma(v[place], v[place], sum);
  }
  return sum_of_team(room, sum);
}

// room.b -= the tile's rows of A x
INLINE void subtract_product(const SolveRoom room) {
#pragma unroll
  for (int t = 0; t < (NORMAL_PARTS * TILE_ROWS + NORMAL_TEAM - 1) / NORMAL_TEAM; ++t) {
    const int task = NORMAL_ITEM + NORMAL_TEAM * t, row = task % TILE_ROWS, part = task / TILE_ROWS;
    double sum = 0;
#pragma unroll 4
    for (int u = 0; u < PART_WIDTH; ++u) {
      const int j = part * PART_WIDTH + u;
      if (part < NORMAL_PARTS && j < NORMAL_WIDTH)
        sum = fma(room.tile[row * NORMAL_TILE_LD + j], room.x[j], sum);
    }
    if (part < NORMAL_PARTS) room.partial[task] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int t = 0; t < (TILE_ROWS + NORMAL_TEAM - 1) / NORMAL_TEAM; ++t) {
    const int row = NORMAL_ITEM + NORMAL_TEAM * t;
    double r = row < TILE_ROWS ? room.b[row] : 0;
    for (int part = 0; part < NORMAL_PARTS; ++part)
      if (row < TILE_ROWS) r -= room.partial[part * TILE_ROWS + row];
    if (row < TILE_ROWS) room.b[row] = r;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// room.normal.y := A'(b - A x)
INLINE void form_gradient(const SolveRoom room, __global const STORED* a, __global const STORED* b,
                          const SolvePlace* at, const SystemShape* shape) {
  double own[NORMAL_OWNED];
  clear_owned(own);
  STORED rows[COPIES];
  STORED b_rows[COPIES_OF_B];
  fetch_rows(rows, b_rows, a, b, at, shape, 0);
#pragma unroll 1
  for (int first = 0; first < shape->m; first += TILE_ROWS) {
    next_tile(room, rows, b_rows, a, b, at, shape, first);
    subtract_product(room);
    add_owned(room, own);
  }
  store_owned(room.normal.y, own);
}
#endif

// Groups: one for TEAMS systems.
__kernel __attribute__((reqd_work_group_size(NORMAL_GROUP, 1, 1))) void solve_normal(
    __global const STORED* a, __global const STORED* b, __global STORED* r, __global STORED* x,
    SystemShape shape) {
  __local double tiles[TEAMS * NORMAL_TILE_ENTRIES];
  __local double all_b[TEAMS * TILE_ROWS], columns[TEAMS * 2 * NORMAL_WIDTH],
      pivots[TEAMS * NORMAL_WIDTH], inverses[TEAMS * NORMAL_WIDTH], all_x[TEAMS * NORMAL_WIDTH],
      all_y[TEAMS * NORMAL_WIDTH], partials[TEAMS * PARTIAL_ENTRIES];
  const int team = NORMAL_TEAM_NUMBER;
  const SolveRoom room = {tiles,
                          tiles + team * NORMAL_TILE_ENTRIES,
                          all_b,
                          all_b + team * TILE_ROWS,
                          {columns + team * 2 * NORMAL_WIDTH, pivots + team * NORMAL_WIDTH,
                           inverses + team * NORMAL_WIDTH, all_y + team * NORMAL_WIDTH},
                          all_x + team * NORMAL_WIDTH,
                          partials + team * PARTIAL_ENTRIES};
  SolvePlace at;
  const index_t first = (index_t)get_group_id(0) * TEAMS;
  at.systems = (int)min((index_t)TEAMS, shape.count - first);
  a += first * shape.m * COLUMNS;
  b += first * shape.m;
  find_block(&at);
  // The columns past the last one stay zero.
  for (int t = 0; t < (TEAMS * NORMAL_TILE_ENTRIES + NORMAL_GROUP - 1) / NORMAL_GROUP; ++t) {
    const int e = (int)get_local_id(0) + NORMAL_GROUP * t;
    if (e < TEAMS * NORMAL_TILE_ENTRIES) tiles[e] = 0;
  }
  NormalBlock gram;
  form_normal(room, gram, a, b, &at, &shape);
  factor_normal(room.normal, gram, &at);
  solve_normal_factor(room.normal, gram, &at);
#pragma unroll
  for (int t = 0; t < NORMAL_OWNED; ++t)
    if (NORMAL_ITEM + NORMAL_TEAM * t < NORMAL_WIDTH)
      room.x[NORMAL_ITEM + NORMAL_TEAM * t] = room.normal.y[NORMAL_ITEM + NORMAL_TEAM * t];
#if MOST_STEPS > 1
  __local int open_teams[OPEN_COUNTERS];
  clear_open_teams(open_teams);
  int is_done = 0, all_are_done = 0;
#pragma unroll 1
  for (int step = 1; !all_are_done; ++step) {
    form_gradient(room, a, b, &at, &shape);
    solve_normal_factor(room.normal, gram, &at);
#pragma unroll
    for (int t = 0; t < NORMAL_OWNED; ++t)
      if (NORMAL_ITEM + NORMAL_TEAM * t < NORMAL_WIDTH && !is_done)
        room.x[NORMAL_ITEM + NORMAL_TEAM * t] += room.normal.y[NORMAL_ITEM + NORMAL_TEAM * t];
    const double of_d = squared_norm_of(room, room.normal.y), of_x = squared_norm_of(room, room.x);
    const bool is_enough = !(of_d > shape.enough * shape.enough * of_x);
    is_done |= (int)(step == MOST_STEPS - 1) | (int)is_enough;
    all_are_done = !any_team_is_open(open_teams, step, NORMAL_ITEM == 0 && !is_done);
  }
#endif
  if (team >= at.systems) return;
  const index_t system = first + team;
  store_normal_factor(room.normal, gram, r + system * COLUMNS * COLUMNS, &at);
  for (int p = NORMAL_ITEM; p < NORMAL_WIDTH; p += NORMAL_TEAM) {
    const int col = p % NORMAL_ACROSS * NORMAL_BLOCK + p / NORMAL_ACROSS;
    if (col < COLUMNS) x[system * shape.x_system + col * shape.x_step] = (STORED)room.x[p];
  }
}
