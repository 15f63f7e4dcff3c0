// SPDX-License-Identifier: Apache-2.0
// normal.cl: least squares by normal equations in float64, for a batch of systems with one right
// side each. A is read once, and once more for each correction.
//
//   A'A = G,  A'b = y                       by tiles of rows
//   G = L D L'                              one column after another
//   x = L'^-1 D^-1 L^-1 y
//   float64 A: g = A'(b - A x),  x += L'^-1 D^-1 L^-1 g  until ||d|| <= enough ||x||
//   R = D^(1/2) L'                          for the check (systems.cl)
//
//   G in blocks of BLOCK x BLOCK; a work-item     0
//   of the team has one in its registers:         1  2
//                                                 3  4  5
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
// Entry c of a vector and column c of a tile are at PLACE(c): work-items of a team that want the
// same entry of adjacent blocks then read from different banks.
//
// Defines, set in normal.cpp   range     meaning
//   STORED                               common.clh
//   SUB_GROUP_BODY                       common.clh
//   COLUMNS                    1 ..      columns of A
//   BLOCK                      4, 6, 8   columns of a block
//   TEAMS                      1 ..      systems of a work-group
//   TILE_ROWS                  1 ..      rows of A in local memory
//   MOST_STEPS                 1 ..      the first step and the corrections
// Work-group: TEAMS teams of TEAM. Local memory: SolveRoom.
#include "gpu/common/common.clh"

#ifndef COLUMNS
#define COLUMNS 16
#endif
#ifndef BLOCK
#define BLOCK 4
#endif
#ifndef TEAMS
#define TEAMS 4
#endif
#ifndef TILE_ROWS
#define TILE_ROWS 8
#endif
#ifndef MOST_STEPS
#define MOST_STEPS 4
#endif

#define ACROSS ((COLUMNS + BLOCK - 1) / BLOCK)
#define WIDTH (ACROSS * BLOCK)
#define TEAM (ACROSS * (ACROSS + 1) / 2)
#define GROUP (TEAMS * TEAM)
#define ITEM ((int)get_local_id(0) % TEAM)
#define TEAM_NUMBER ((int)get_local_id(0) / TEAM)
#define PLACE(c) ((c) % BLOCK * ACROSS + (c) / BLOCK)
#define PLACE_IN(block, i) ((i) * ACROSS + (block))
// The entries of a vector that a work-item owns: the places ITEM, ITEM + TEAM, ..
#define OWNED ((WIDTH + TEAM - 1) / TEAM)

// Odd, so that rows, and the tiles of teams of one work-item, begin in different banks. Larger
// teams read each entry so often that it is stored in float64.
#if ACROSS == 1
typedef STORED Held;
#else
typedef double Held;
#endif
#define TILE_LD (WIDTH | 1)
#define TILE_ENTRIES (TILE_ROWS * TILE_LD | 1)
// What a work-item copies for a tile of A of all teams, and of b.
#define COPIES ((TEAMS * TILE_ROWS * COLUMNS + GROUP - 1) / GROUP)
#define COPIES_OF_B ((TEAMS * TILE_ROWS + GROUP - 1) / GROUP)
// Work-items that share a row of the tile in A x, and their columns.
#define PARTS (TEAM > TILE_ROWS ? TEAM / TILE_ROWS : 1)
#define PART_WIDTH ((WIDTH + PARTS - 1) / PARTS)
#define PARTIAL_ENTRIES (PARTS * TILE_ROWS > TEAM ? PARTS * TILE_ROWS : TEAM)

typedef struct {
  __local Held *tiles, *tile;           // TILE_ENTRIES: of all teams, of this one
  __local double *all_b, *b;            // TILE_ROWS: b, then b - A x
  __local double* column;               // 2 x WIDTH: a column of L D, twice
  __local double *pivots, *inverse;     // WIDTH: D, D^-1
  __local double *x, *y;                // WIDTH
  __local double* partial;              // PARTIAL_ENTRIES
} SolveRoom;

// A work-item's block, by rows.
typedef double Block[BLOCK * BLOCK];

// The systems of the group, and the place of a work-item's block.
typedef struct {
  int systems, down, across;
} SolvePlace;

// ---- tiles of rows

// The rows first .. first + TILE_ROWS - 1 of all systems of the group, with zeros after row m, and
// for teams after the last system. a, b: those of the group's first system.
INLINE void fetch_rows(STORED rows[COPIES], STORED b_rows[COPIES_OF_B], __global const STORED* a,
                       __global const STORED* b, const SolvePlace* at, const SystemShape* shape,
                       int first) {
#pragma unroll
  for (int u = 0; u < COPIES; ++u) {
    const int entry = (int)get_local_id(0) + GROUP * u, team = entry / (TILE_ROWS * COLUMNS);
    const int in_matrix = entry - team * (TILE_ROWS * COLUMNS) + first * COLUMNS;
    const bool exists = team < at->systems && in_matrix < shape->m * COLUMNS;
    rows[u] = exists ? a[team * shape->m * COLUMNS + in_matrix] : 0;
  }
#pragma unroll
  for (int u = 0; u < COPIES_OF_B; ++u) {
    const int entry = (int)get_local_id(0) + GROUP * u, team = entry / TILE_ROWS;
    const int row = first + entry % TILE_ROWS;
    const bool exists = team < at->systems && row < shape->m;
    b_rows[u] = exists ? b[team * shape->m + row] : 0;
  }
}

INLINE void store_rows(const SolveRoom room, const STORED rows[COPIES],
                       const STORED b_rows[COPIES_OF_B]) {
#pragma unroll
  for (int u = 0; u < COPIES; ++u) {
    const int entry = (int)get_local_id(0) + GROUP * u, team = entry / (TILE_ROWS * COLUMNS);
    const int in_tile = entry - team * (TILE_ROWS * COLUMNS);
    const int row = in_tile / COLUMNS, col = in_tile % COLUMNS;
    if (team < TEAMS) room.tiles[team * TILE_ENTRIES + row * TILE_LD + PLACE(col)] = (Held)rows[u];
  }
#pragma unroll
  for (int u = 0; u < COPIES_OF_B; ++u) {
    const int entry = (int)get_local_id(0) + GROUP * u;
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

INLINE void clear_owned(double own[OWNED]) {
#pragma unroll
  for (int t = 0; t < OWNED; ++t) own[t] = 0;
}

// own += the part of tile' b.
INLINE void add_owned(const SolveRoom room, double own[OWNED]) {
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    const int place = ITEM + TEAM * t;
    double sum = own[t];
#pragma unroll
    for (int i = 0; i < TILE_ROWS; ++i)
      if (place < WIDTH) sum = fma((double)room.tile[i * TILE_LD + place], room.b[i], sum);
    own[t] = sum;
  }
}

INLINE void store_owned(__local double* to, const double own[OWNED]) {
#pragma unroll
  for (int t = 0; t < OWNED; ++t)
    if (ITEM + TEAM * t < WIDTH) to[ITEM + TEAM * t] = own[t];
}

// gram := the block of A'A, with 1 on the diagonal past the last column; room.y := A'b.
INLINE void form_normal(const SolveRoom room, Block gram,
                        __global const STORED* a, __global const STORED* b, const SolvePlace* at,
                        const SystemShape* shape) {
  double own[OWNED];
  clear_owned(own);
#pragma unroll
  for (int i = 0; i < BLOCK; ++i) {
#pragma unroll
    for (int j = 0; j < BLOCK; ++j) gram[i * BLOCK + j] = 0;
  }
  STORED rows[COPIES];
  STORED b_rows[COPIES_OF_B];
  fetch_rows(rows, b_rows, a, b, at, shape, 0);
#pragma unroll 1
  for (int first = 0; first < shape->m; first += TILE_ROWS) {
    next_tile(room, rows, b_rows, a, b, at, shape, first);
#pragma unroll 1
    for (int k = 0; k < TILE_ROWS; ++k) {
      __local const Held* from = room.tile + k * TILE_LD;
      double left[BLOCK], right[BLOCK];
#pragma unroll
      for (int i = 0; i < BLOCK; ++i) {
        left[i] = (double)from[PLACE_IN(at->down, i)];
        right[i] = (double)from[PLACE_IN(at->across, i)];
      }
#pragma unroll
      for (int i = 0; i < BLOCK; ++i) {
#pragma unroll
        for (int j = 0; j < BLOCK; ++j)
          gram[i * BLOCK + j] = fma(left[i], right[j], gram[i * BLOCK + j]);
      }
    }
    add_owned(room, own);
  }
  store_owned(room.y, own);
#pragma unroll
  for (int i = 0; i < BLOCK; ++i)
    if (at->down == at->across && at->down * BLOCK + i >= COLUMNS) gram[i * BLOCK + i] = 1;
}

// ---- G = L D L'

// The next column for all work-items, and its pivot.
INLINE void give_column(const SolveRoom room, Block gram, const SolvePlace* at,
                        const int col) {
#pragma unroll
  for (int i = 0; i < BLOCK; ++i)
    room.column[col % 2 * WIDTH + PLACE_IN(at->down, i)] = gram[i * BLOCK + col];
  if (at->down == at->across) room.pivots[PLACE_IN(at->across, col)] = gram[col * BLOCK + col];
}

// gram: the block of G -> of L D, in its lower triangle; room.inverse := D^-1.
INLINE void factor_normal(const SolveRoom room, Block gram, const SolvePlace* at) {
  barrier(CLK_LOCAL_MEM_FENCE);
  if (at->across == 0) give_column(room, gram, at, 0);
#pragma unroll 1
  for (int block = 0; block < ACROSS; ++block) {
#pragma unroll
    for (int col = 0; col < BLOCK; ++col) {
      barrier(CLK_LOCAL_MEM_FENCE);
      // G(i, j) -= G(i, c) G(j, c) / G(c, c),  i >= j > c
      if (at->across >= block) {
        __local const double* from = room.column + col % 2 * WIDTH;
        const double inverse = reciprocal_double(from[PLACE_IN(block, col)]);
        double right[BLOCK];
#pragma unroll
        for (int j = 0; j < BLOCK; ++j) {
          const bool is_left = at->across > block || j > col;
          right[j] = is_left ? -from[PLACE_IN(at->across, j)] * inverse : 0.0;
        }
#pragma unroll
        for (int i = 0; i < BLOCK; ++i) {
          const double left = from[PLACE_IN(at->down, i)];
#pragma unroll
          for (int j = 0; j < BLOCK; ++j)
            gram[i * BLOCK + j] = fma(left, right[j], gram[i * BLOCK + j]);
        }
        if (at->across == (col == BLOCK - 1 ? block + 1 : block))
          give_column(room, gram, at, (col + 1) % BLOCK);
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    const int place = ITEM + TEAM * t;
    if (place < WIDTH) room.inverse[place] = 1 / room.pivots[place];
  }
}

// room.y := (L D L')^-1 room.y
INLINE void solve_normal_factor(const SolveRoom room, const Block gram,
                                const SolvePlace* at) {
  const int down = at->down, across = at->across;
  // D^-1 L^-1 y
#pragma unroll 1
  for (int block = 0; block < ACROSS; ++block) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (down == block && across == block) {
      double v[BLOCK];
#pragma unroll
      for (int j = 0; j < BLOCK; ++j) {
        double sum = room.y[PLACE_IN(block, j)];
#pragma unroll
        for (int i = 0; i < BLOCK; ++i)
          if (i < j) sum = fma(-gram[j * BLOCK + i], v[i], sum);
        v[j] = sum * room.inverse[PLACE_IN(block, j)];
      }
#pragma unroll
      for (int j = 0; j < BLOCK; ++j) room.y[PLACE_IN(block, j)] = v[j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (across == block && down > block) {
#pragma unroll
      for (int i = 0; i < BLOCK; ++i) {
        double sum = room.y[PLACE_IN(down, i)];
#pragma unroll
        for (int j = 0; j < BLOCK; ++j)
          sum = fma(-gram[i * BLOCK + j], room.y[PLACE_IN(block, j)], sum);
        room.y[PLACE_IN(down, i)] = sum;
      }
    }
  }
  // L'^-1 of it
#pragma unroll 1
  for (int block = ACROSS - 1; block >= 0; --block) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (down == block && across == block) {
      double v[BLOCK];
#pragma unroll
      for (int j = BLOCK - 1; j >= 0; --j) {
        double sum = 0;
#pragma unroll
        for (int i = 0; i < BLOCK; ++i)
          if (i > j) sum = fma(gram[i * BLOCK + j], v[i], sum);
        v[j] = fma(-sum, room.inverse[PLACE_IN(block, j)], room.y[PLACE_IN(block, j)]);
      }
#pragma unroll
      for (int j = 0; j < BLOCK; ++j) room.y[PLACE_IN(block, j)] = v[j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (down == block && across < block) {
#pragma unroll
      for (int j = 0; j < BLOCK; ++j) {
        double sum = 0;
#pragma unroll
        for (int i = 0; i < BLOCK; ++i)
          sum = fma(gram[i * BLOCK + j], room.y[PLACE_IN(block, i)], sum);
        room.y[PLACE_IN(across, j)] =
            fma(-sum, room.inverse[PLACE_IN(across, j)], room.y[PLACE_IN(across, j)]);
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// ---- corrections

#if MOST_STEPS > 1
// The sum of one number of every work-item of a team, in each of them.
INLINE double sum_of_team(const SolveRoom room, double x) {
  barrier(CLK_LOCAL_MEM_FENCE);
  room.partial[ITEM] = x;
  barrier(CLK_LOCAL_MEM_FENCE);
  double sum = 0;
  for (int i = 0; i < TEAM; ++i) sum += room.partial[i];
  return sum;
}

INLINE double squared_norm_of(const SolveRoom room, __local const double* v) {
  double sum = 0;
#pragma unroll
  for (int t = 0; t < OWNED; ++t) {
    const int place = ITEM + TEAM * t;
    if (place < WIDTH) sum = fma(v[place], v[place], sum);
  }
  return sum_of_team(room, sum);
}

// room.b -= the tile's rows of A x
INLINE void subtract_product(const SolveRoom room) {
#pragma unroll
  for (int t = 0; t < (PARTS * TILE_ROWS + TEAM - 1) / TEAM; ++t) {
    const int task = ITEM + TEAM * t, row = task % TILE_ROWS, part = task / TILE_ROWS;
    double sum = 0;
#pragma unroll 4
    for (int u = 0; u < PART_WIDTH; ++u) {
      const int j = part * PART_WIDTH + u;
      if (part < PARTS && j < WIDTH)
        sum = fma((double)room.tile[row * TILE_LD + j], room.x[j], sum);
    }
    if (part < PARTS) room.partial[task] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int t = 0; t < (TILE_ROWS + TEAM - 1) / TEAM; ++t) {
    const int row = ITEM + TEAM * t;
    double r = row < TILE_ROWS ? room.b[row] : 0;
    for (int part = 0; part < PARTS; ++part)
      if (row < TILE_ROWS) r -= room.partial[part * TILE_ROWS + row];
    if (row < TILE_ROWS) room.b[row] = r;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// room.y := A'(b - A x)
INLINE void form_gradient(const SolveRoom room, __global const STORED* a, __global const STORED* b,
                          const SolvePlace* at, const SystemShape* shape) {
  double own[OWNED];
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
  store_owned(room.y, own);
}
#endif

// ---- the results

// R(j, i) = L(i, j) D(j)^(1/2), j <= i; the entries below the diagonal are left as they are.
INLINE void store_normal_factor(const SolveRoom room, const Block gram,
                         __global STORED* r, const SolvePlace* at) {
#pragma unroll
  for (int j = 0; j < BLOCK; ++j) {
    const int row = at->across * BLOCK + j;
    const double scale = sqrt(room.inverse[PLACE_IN(at->across, j)]);
#pragma unroll
    for (int i = 0; i < BLOCK; ++i) {
      const int col = at->down * BLOCK + i;
      if (row <= col && col < COLUMNS)
        r[row * COLUMNS + col] = (STORED)(gram[i * BLOCK + j] * scale);
    }
  }
}

// Groups: one for TEAMS systems.
__attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void solve_normal(
    __global const STORED* a, __global const STORED* b, __global STORED* r, __global STORED* x,
    SystemShape shape) {
  __local Held tiles[TEAMS * TILE_ENTRIES];
  __local double all_b[TEAMS * TILE_ROWS], columns[TEAMS * 2 * WIDTH], pivots[TEAMS * WIDTH],
      inverses[TEAMS * WIDTH], all_x[TEAMS * WIDTH], all_y[TEAMS * WIDTH],
      partials[TEAMS * PARTIAL_ENTRIES];
  __local int open_teams[2];
  const int team = TEAM_NUMBER;
  const SolveRoom room = {tiles,
                          tiles + team * TILE_ENTRIES,
                          all_b,
                          all_b + team * TILE_ROWS,
                          columns + team * 2 * WIDTH,
                          pivots + team * WIDTH,
                          inverses + team * WIDTH,
                          all_x + team * WIDTH,
                          all_y + team * WIDTH,
                          partials + team * PARTIAL_ENTRIES};
  SolvePlace at;
  const index_t first = (index_t)get_group_id(0) * TEAMS;
  at.systems = (int)min((index_t)TEAMS, shape.count - first);
  a += first * shape.m * COLUMNS;
  b += first * shape.m;
  at.down = 0;
  for (int row = 1; row < ACROSS; ++row) at.down += row * (row + 1) / 2 <= ITEM;
  at.across = ITEM - at.down * (at.down + 1) / 2;
  // The columns past the last one stay zero.
  for (int t = 0; t < (TEAMS * TILE_ENTRIES + GROUP - 1) / GROUP; ++t) {
    const int e = (int)get_local_id(0) + GROUP * t;
    if (e < TEAMS * TILE_ENTRIES) tiles[e] = 0;
  }
  Block gram;
  form_normal(room, gram, a, b, &at, &shape);
  factor_normal(room, gram, &at);
  solve_normal_factor(room, gram, &at);
#pragma unroll
  for (int t = 0; t < OWNED; ++t)
    if (ITEM + TEAM * t < WIDTH) room.x[ITEM + TEAM * t] = room.y[ITEM + TEAM * t];
#if MOST_STEPS > 1
  int is_done = 0, all_are_done = 0;
#pragma unroll 1
  for (int step = 1; !all_are_done; ++step) {
    // The counters of this step and of the last one, which others may still read.
    __local int* open = open_teams + (step & 1);
    if (get_local_id(0) == 0) *open = 0;
    form_gradient(room, a, b, &at, &shape);
    solve_normal_factor(room, gram, &at);
#pragma unroll
    for (int t = 0; t < OWNED; ++t)
      if (ITEM + TEAM * t < WIDTH && !is_done) room.x[ITEM + TEAM * t] += room.y[ITEM + TEAM * t];
    const double of_d = squared_norm_of(room, room.y), of_x = squared_norm_of(room, room.x);
    const bool is_enough = !(of_d > shape.enough * shape.enough * of_x);
    is_done |= (int)(step == MOST_STEPS - 1) | (int)is_enough;
    if (ITEM == 0 && !is_done) atomic_inc(open);
    barrier(CLK_LOCAL_MEM_FENCE);
    all_are_done = *open == 0;
  }
#endif
  if (team >= at.systems) return;
  const index_t system = first + team;
  store_normal_factor(room, gram, r + system * COLUMNS * COLUMNS, &at);
  for (int p = ITEM; p < WIDTH; p += TEAM) {
    const int col = p % ACROSS * BLOCK + p / ACROSS;
    if (col < COLUMNS) x[system * shape.x_system + col * shape.x_step] = (STORED)room.x[p];
  }
}
