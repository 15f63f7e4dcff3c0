// SPDX-License-Identifier: Apache-2.0
// gram_tiles.cl: QR of wider matrices in float32 by Gram matrices in float64 (CholeskyQR), in tiles
// of 64 x 64 (LAPACK potrf, trtri), for devices whose float64 is as fast as their float32.
//
//   form_gram        G = A'A, in float64: the products of float32 are exact
//   for b = 0 .. N - 1, N tiles across, G = L L', X = L'^-1:
//     update_trailing  G(d, c) -= L(d, b - 1) L(c, b - 1)'    b <= c <= d
//                      X(l, c) -= X(l, b - 1) L(c, b - 1)'    l < b <= c
//                      and in one of its groups, the corner: G(b, b) -> L(b, b), X(b, b)
//     form_panel       L(c, b) = G(c, b) X(b, b)              c > b
//                      X(l, b) = X(l, b) X(b, b)              l < b
//   form_q           Q = A X, rounded once
//   finish           guard ||D X||^2, D = diag(||a_j||): times 2^-53 it bounds ||I - Q'Q||. Where it
//                    is too large flags[matrix] = 1: Householder reflectors do the matrix again
//
//          k<b   b   >b
//        +-----+---+-----+            G and L below, X above the diagonal: tile (l, c) of X takes
//      l |  X  | X |  X  |            the place of nothing else, its sum grows from step to step.
//        +-----+---+-----+            R = L' is written as it comes.
//      b |  L  | G |     |  <- corner
//      c |  L  | L |  G  |
//        +-----+---+-----+
//
// Work memory: a slot per matrix in flight, `Slot`. The group of 4 x 32 work-items owns one tile,
// each 32 of them (a warp) a strip of 16 rows. Launch order: as above, finish last.
//
// Defines, set in variants/gram_tiles.cpp   range      meaning
//   SUB_GROUP_BODY, MMA                     1          common.clh, mma.clh
//   VECTOR                                  1, 2, 4    copy.clh; divides n
// A is m x n, m >= n. Signs of R's diagonal: positive.
#include "copy.clh"
#include "quads.clh"

#define WARPS 4
#define GROUP_SIZE (32 * WARPS)
#define TILE 64
#define BLOCKS (TILE / 16)
#define TILE_ENTRIES (TILE * TILE)
// Tile (row, col), col <= row, among the tiles of a triangle.
#define TILE_AT(row, col) ((row) * ((row) + 1) / 2 + (col))

typedef Block Strip[BLOCKS];

INLINE void sync_group(void) { barrier(CLK_LOCAL_MEM_FENCE); }

// ---- a slot: what a matrix needs beside A, Q and R

typedef struct {
  int tiles;                 // N
  __global double* entries;  // N x N tiles: G, L below, X on and above the diagonal
  __global double* squares;  // ||a_j||^2, N TILE of them
  __global double* guards;   // sums of (d_i x_ij)^2 of the tiles
  __global double* largest;  // |a_ij| of the columns of a tile
} Slot;

INLINE int tiles_across(FactorShape shape) { return (shape.n + TILE - 1) / TILE; }

// Entries from slot to slot, even for copies of two.
INLINE index_t slot_entries(int tiles) {
  return ((index_t)tiles * tiles * (TILE_ENTRIES + 1) + tiles * (TILE + 1) + 1) & ~1;
}

INLINE Slot slot_at(__global double* work, FactorShape shape, int index) {
  Slot slot;
  slot.tiles = (shape.n + TILE - 1) / TILE;
  slot.entries = work + index * slot_entries(slot.tiles);
  slot.squares = slot.entries + (index_t)slot.tiles * slot.tiles * TILE_ENTRIES;
  slot.guards = slot.squares + slot.tiles * TILE;
  slot.largest = slot.guards + slot.tiles * slot.tiles;
  return slot;
}
INLINE __global double* tile_of(Slot slot, int row, int col) {
  return slot.entries + (index_t)(row * slot.tiles + col) * TILE_ENTRIES;
}

// Sum of what the 32 work-items have, the same bits in all.
INLINE double sum_of_warp(const Warp* at, double x) {
#if MMA
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) x += shuffle_xor_double(x, offset);
  return x;
#else
  sync_warp();
  at->room[at->lane] = x;
  sync_warp();
  double sum = 0;
  for (int i = 0; i < 32; ++i) sum += at->room[i];
  return sum;
#endif
}

// A work-item's place in its group.
typedef struct {
  Warp warp;
  int item, index;  // work-item of the group, warp of the group
} Place;

INLINE Place place_of(__local double* room) {
  const int item = get_local_id(0), lane = item % 32;
  const Place at = {{lane, lane / 4, lane % 4, room}, item, item / 32};
  return at;
}

// ---- form_gram

// Rows of A that travel together, in two buffers; entries from row to row: a product's work-items
// read from different banks.
#ifndef SLAB_ROWS
#define SLAB_ROWS 32
#endif
#ifndef SLABS
#define SLABS 2
#endif
#define SLAB_LD (TILE + 4)

// slab := rows first_row .. and columns first_col .. of A, zeros around it.
INLINE void copy_slab(__local float* slab, __global const float* a, FactorShape shape,
                      int first_row, int first_col, int item) {
#pragma unroll 4
  for (int i = item * COPIED_FLOATS; i < SLAB_ROWS * TILE; i += GROUP_SIZE * COPIED_FLOATS) {
    const int row = i / TILE, col = i % TILE;
    const bool exists = first_row + row < shape.m && first_col + col < shape.n;
    const index_t from = (first_row + row) * (index_t)shape.n + first_col + col;
    copy_floats(slab + row * SLAB_LD + col, a + (exists ? from : 0), exists);
  }
}

// x := the transpose of 16 x 16 entries of a slab; `largest`: of their magnitudes, as integers.
INLINE void get_slab_transposed(const Warp* at, Block x, __local const float* from,
                                int* largest) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const float y = from[BLOCK_COL(w, at->t) * SLAB_LD + BLOCK_ROW(w, at->g)];
    *largest = max(*largest, as_int(y) & 0x7fffffff);
    x[w] = (double)y;
  }
}

// A block at `to` of a tile.
INLINE void save_block(const Warp* at, const Block x, __global double* to) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    __global double2* row = (__global double2*)(to + (at->g + 8 * h) * TILE);
    row[at->t] = (double2)(x[h], x[h + 2]);
    row[at->t + 4] = (double2)(x[h + 4], x[h + 6]);
  }
}
INLINE void load_block(const Warp* at, Block x, __global const double* from) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    __global const double2* row = (__global const double2*)(from + (at->g + 8 * h) * TILE);
    const double2 left = row[at->t], right = row[at->t + 4];
    x[h] = left.x;
    x[h + 2] = left.y;
    x[h + 4] = right.x;
    x[h + 6] = right.y;
  }
}

// The diagonal of G to `squares`; ones for columns past n.
INLINE void take_diagonal(const Warp* at, Block gram, __global double* squares, int columns) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const int i = BLOCK_ROW(w, at->g);
    if (i == BLOCK_COL(w, at->t)) {
      squares[i] = gram[w];
      if (i >= columns) gram[w] = 1;
    }
  }
}

// Groups: TILE_AT(N, 0) per matrix, matrices from `first` on in the slots. Each warp sums quadrants
// of 32 x 32 of a tile (c, b) of G.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void form_gram(
    __global const float* a, __global double* work, FactorShape shape, int first) {
  __local float slabs[SLABS][2][SLAB_ROWS * SLAB_LD] __attribute__((aligned(16)));
  __local int magnitude;  // floats that are not negative order like their bits
  __local double room[2];
  const Place at = place_of(room);
  const int count = TILE_AT(((shape.n + TILE - 1) / TILE), 0), pair = get_group_id(0) % count;
  const int index = get_group_id(0) / count;
  const Slot slot = slot_at(work, shape, index);
  int c = 0;
  while (TILE_AT(c + 1, 0) <= pair) ++c;
  const int b = pair - TILE_AT(c, 0);
  a += (first + index) * (index_t)shape.m * shape.n;
  if (at.item == 0) magnitude = 0;

  int largest = 0;
#pragma unroll 1
  for (int quadrant = at.index; quadrant < 4; quadrant += WARPS) {
    const int down = quadrant / 2 * 32, across = quadrant % 2 * 32;
    Block sum[4];
#pragma unroll
    for (int p = 0; p < 4; ++p) clear_block(sum[p]);
    sync_group();
#pragma unroll
    for (int ahead = 0; ahead < SLABS - 1; ++ahead) {
      const int row = ahead * SLAB_ROWS;
      if (row < shape.m) {
        copy_slab(slabs[ahead][0], a, shape, row, c * TILE, at.item);
        if (c != b) copy_slab(slabs[ahead][1], a, shape, row, b * TILE, at.item);
      }
      commit_copies();
    }
    int stage = 0;
#pragma unroll 1
    for (int row = 0; row < shape.m; row += SLAB_ROWS) {
      wait_for_stage(SLABS - 2);
      sync_group();
      const int next = row + (SLABS - 1) * SLAB_ROWS, to = stage == 0 ? SLABS - 1 : stage - 1;
      if (next < shape.m) {
        copy_slab(slabs[to][0], a, shape, next, c * TILE, at.item);
        if (c != b) copy_slab(slabs[to][1], a, shape, next, b * TILE, at.item);
      }
      commit_copies();
      __local const float* left = slabs[stage][0] + down;
      __local const float* right = slabs[stage][c != b] + across;
#pragma unroll
      for (int k = 0; k < SLAB_ROWS * SLAB_LD; k += 16 * SLAB_LD) {
        Block x[2], y[2];
#pragma unroll
        for (int p = 0; p < 2; ++p) {
          get_slab_transposed(&at.warp, x[p], left + k + 16 * p, &largest);
          get_slab_transposed(&at.warp, y[p], right + k + 16 * p, &largest);
        }
#pragma unroll
        for (int p = 0; p < 4; ++p) multiply_add(&at.warp, sum[p], x[p / 2], y[p % 2]);
      }
      stage = stage == SLABS - 1 ? 0 : stage + 1;
    }
    __global double* to = tile_of(slot, c, b) + down * TILE + across;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const int diagonal = c * TILE + down + 16 * (p / 2);
      if (c == b && down == across && p / 2 == p % 2) {
        take_diagonal(&at.warp, sum[p], slot.squares + diagonal, shape.n - diagonal);
      }
      save_block(&at.warp, sum[p], to + p / 2 * 16 * TILE + p % 2 * 16);
    }
  }
  atomic_max(&magnitude, largest);
  sync_group();
  if (c == b && at.item == 0) slot.largest[c] = as_float(magnitude);
}

// ---- tiles

// Columns of a tile in local memory, 16 at a time: chunks of two entries, exchanged in odd rows so
// that a product's work-items read from different banks.
#define CHUNK_ENTRIES (TILE * 16)
INLINE int chunk_at(int row, int chunk) { return row * 16 + (chunk ^ (row & 1) * 4) * 2; }

INLINE void copy_chunks(__local double* to, __global const double* tile, int first_col, int item) {
#pragma unroll
  for (int i = item; i < TILE * 8; i += GROUP_SIZE) {
    copy_double2(to + chunk_at(i / 8, i % 8), tile + i / 8 * TILE + first_col + i % 8 * 2);
  }
}
INLINE void get_chunks(const Warp* at, Block x, __local const double* from, int row) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int r = row + at->g + 8 * h;
    const double2 left = *(__local const double2*)(from + chunk_at(r, at->t));
    const double2 right = *(__local const double2*)(from + chunk_at(r, at->t + 4));
    x[h] = left.x;
    x[h + 2] = left.y;
    x[h + 4] = right.x;
    x[h + 6] = right.y;
  }
}
// ---- a tile of R in local memory

#define R_LD (TILE + 4)

// Rows row .. and columns col .. := l'.
INLINE void put_r(const Warp* at, const Block l, __local float* tile, int row, int col) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    tile[(row + BLOCK_COL(w, at->t)) * R_LD + col + BLOCK_ROW(w, at->g)] = (float)l[w];
  }
}

// Tile (row, col) of R := a tile in local memory, or zeros (null).
INLINE void store_r(const Place* at, __local const float* tile, __global float* r, int n, int row,
                    int col) {
#pragma unroll
  for (int i = at->item * COPIED_FLOATS; i < TILE_ENTRIES; i += GROUP_SIZE * COPIED_FLOATS) {
    const int down = i / TILE, across = i % TILE;
    if (row * TILE + down < n && col * TILE + across < n) {
      __global float* to = r + (row * TILE + down) * (index_t)n + col * TILE + across;
#pragma unroll
      for (int e = 0; e < COPIED_FLOATS; ++e) {
        to[e] = tile != 0 ? tile[down * R_LD + across + e] : 0.0f;
      }
    }
  }
}

// ---- update_trailing

// The corner in local memory, by blocks.
#define CORNER_AT(row, col) (TILE_AT(row, col) * BLOCK_ROOM)
#define CORNER_ENTRIES CORNER_AT(BLOCKS, 0)

// Block (b, b) of the corner: G -> X, r := L'; by the work-items of one warp.
INLINE void factor_pivot(const Place* at, __local double* pivot, __local float* r) {
  const Warp quads = {at->warp.lane, row_of_lane(at->warp.lane), at->warp.t, at->warp.room};
  Block block, x;
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    block[w] = pivot[QUAD_ROW(w, quads.g) * BLOCK_LD + QUAD_COL(w, quads.t)];
  }
  sync_warp();
  factor_quads(&quads, block, x, 4);
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const int i = QUAD_ROW(w, quads.g), j = QUAD_COL(w, quads.t);
    pivot[i * BLOCK_LD + j] = x[w];
    if (i >= j) r[j * R_LD + i] = (float)block[w];
  }
}

// Corner: G -> X(l, c) at (c, l), l <= c. r := L'.
INLINE void factor_corner(const Place* at, __local double* corner, __local float* r) {
  const Warp* warp = &at->warp;
#pragma unroll 1
  for (int b = 0; b < BLOCKS; ++b) {
    __local double* pivot = corner + CORNER_AT(b, b);
    if (at->index == 0) factor_pivot(at, pivot, r + 16 * b * R_LD + 16 * b);
    sync_group();
    // L(c, b) = G(c, b) X(b, b); X(l, b) = -(sum_k X(l, k) L(b, k)') X(b, b)
    Block s, t, z;
    const int other = at->index + (at->index >= b);
    if (at->index < BLOCKS - 1) {
      if (other > b) {
        get_block(warp, s, corner + CORNER_AT(other, b));
      } else {
        clear_block(s);
#pragma unroll 1
        for (int k = other; k < b; ++k) {
          get_block(warp, z, corner + CORNER_AT(k, other));
          get_block(warp, t, corner + CORNER_AT(b, k));
          negate_block(z, z);
          multiply_add(warp, s, z, t);
        }
      }
      get_transposed(warp, t, pivot);
      clear_block(z);
      multiply_add(warp, z, s, t);
    }
    sync_group();
    if (at->index < BLOCKS - 1) {
      put_block(warp, z, corner + (other > b ? CORNER_AT(other, b) : CORNER_AT(b, other)));
      if (other > b) put_r(warp, z, r, 16 * b, 16 * other);
    }
    sync_group();
    // G(d, c) -= L(d, b) L(c, b)', b < c <= d
    const int left = BLOCKS - 1 - b;
#pragma unroll 1
    for (int task = at->index; task < TILE_AT(left, 0); task += WARPS) {
      const int down = task >= 3 ? 2 : task >= 1 ? 1 : 0, d = b + 1 + down;
      const int c = b + 1 + task - TILE_AT(down, 0);
      get_block(warp, z, corner + CORNER_AT(d, c));
      get_block(warp, s, corner + CORNER_AT(d, b));
      get_block(warp, t, corner + CORNER_AT(c, b));
      negate_block(s, s);
      multiply_add(warp, z, s, t);
      put_block(warp, z, corner + CORNER_AT(d, c));
    }
    sync_group();
  }
}

// sum over the block's rows i of x(i, j)^2 squares[i]
INLINE double guard_of(const Warp* at, const Block x, __global const double* squares) {
  const double upper = squares[at->g], lower = squares[at->g + 8];
  double even = 0, odd = 0;
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; w += 2) {
    even = fma(x[w] * x[w], upper, even);
    odd = fma(x[w + 1] * x[w + 1], lower, odd);
  }
  return even + odd;
}

// The sum over the group's work-items; `sums`: one per warp.
INLINE double sum_over_group(const Place* at, double x, __local double* sums) {
  x = sum_of_warp(&at->warp, x);
  if (at->warp.lane == 0) sums[at->index] = x;
  sync_group();
  double sum = 0;
  for (int w = 0; w < WARPS; ++w) sum += sums[w];
  sync_group();
  return sum;
}

// A tile below the diagonal of L, on it of G, above of X.
typedef struct {
  int row, col;
} Target;

// Tile number u of step b, the corner first.
INLINE Target find_target(int u, int b, int tiles) {
  const int of_l = TILE_AT(tiles - b, 0);
  if (u >= of_l) {
    const Target x = {(u - of_l) % b, b + (u - of_l) / b};
    return x;
  }
  int down = 0;
  while (TILE_AT(down + 1, 0) <= u) ++down;
  const Target l = {b + down, b + u - TILE_AT(down, 0)};
  return l;
}

// Groups: first the corners, one per matrix; then, for b > 0, `updates` per matrix.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void update_trailing(
    __global float* r, __global double* work, FactorShape shape, int first, int count, int b) {
  // L(c, b - 1) in chunks; then the corner, the room of its blocks and its tile of R.
  __local double shared[CORNER_ENTRIES + 2 * BLOCK_ROOM + TILE * R_LD / 2]
      __attribute__((aligned(16)));
  __local double sums[WARPS];
  __local double* room = shared + CORNER_ENTRIES;
  const Place at = place_of(room);
  const int tiles = ((shape.n + TILE - 1) / TILE), group = get_group_id(0), is_corner = group < count;
  const int updates = TILE_AT(tiles - b, 0) - 1 + b * (tiles - b);
  const int index = is_corner ? group : (group - count) / updates;
  const Target to = find_target(is_corner ? 0 : 1 + (group - count) % updates, b, tiles);
  const Slot slot = slot_at(work, shape, index);
  const int strip = at.index * 16;
  __global double* target = tile_of(slot, to.row, to.col) + strip * TILE;
  const bool begins = to.row == b - 1;  // a tile of X

  Strip s;
  if (b > 0) {
    __global const double* right = tile_of(slot, to.col, b - 1);
#pragma unroll
    for (int k = 0; k < BLOCKS; ++k) {
      copy_chunks(shared + k * CHUNK_ENTRIES, right, 16 * k, at.item);
    }
    commit_copies();
  }
#pragma unroll
  for (int j = 0; j < BLOCKS; ++j) {
    clear_block(s[j]);
    if (!begins) load_block(&at.warp, s[j], target + 16 * j);
  }
  if (b > 0) {
    __global const double* left = tile_of(slot, to.row, b - 1) + strip * TILE;
    Block x, y;
    load_block(&at.warp, x, left);
    wait_for_copies();
    sync_group();
#pragma unroll
    for (int k = 0; k < BLOCKS; ++k) {
      negate_block(x, x);
#pragma unroll
      for (int j = 0; j < BLOCKS; ++j) {
        get_chunks(&at.warp, y, shared + k * CHUNK_ENTRIES, 16 * j);
        multiply_add(&at.warp, s[j], x, y);
      }
      if (k + 1 < BLOCKS) load_block(&at.warp, x, left + 16 * (k + 1));
    }
    sync_group();
  }
  if (!is_corner) {
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) save_block(&at.warp, s[j], target + 16 * j);
    return;
  }

  __local float* upper = (__local float*)(room + 2 * BLOCK_ROOM);
#pragma unroll
  for (int j = 0; j < BLOCKS; ++j) {
    if (j <= at.index) put_block(&at.warp, s[j], shared + CORNER_AT(at.index, j));
  }
  for (int i = at.item; i < TILE * R_LD; i += GROUP_SIZE) upper[i] = 0;
  sync_group();
  factor_corner(&at, shared, upper);
  double guard = 0;
#pragma unroll
  for (int j = 0; j < BLOCKS; ++j) {
    Block x;
    clear_block(x);
    if (at.index <= j) get_block(&at.warp, x, shared + CORNER_AT(j, at.index));
    guard += guard_of(&at.warp, x, slot.squares + b * TILE + strip);
    save_block(&at.warp, x, target + 16 * j);
  }
  store_r(&at, upper, r + (first + index) * (index_t)shape.n * shape.n, shape.n, b, b);
  guard = sum_over_group(&at, guard, sums);
  if (at.item == 0) slot.guards[b * tiles + b] = guard;
}

// ---- form_panel

// Entries from row to row of a tile of X: the work-items of a product read its transpose from
// different banks.
#define X_LD (TILE + 2)

// A block of X in local memory, transposed.
INLINE void get_x_transposed(const Warp* at, Block y, __local const double* from) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    y[w] = from[BLOCK_COL(w, at->t) * X_LD + BLOCK_ROW(w, at->g)];
  }
}

// Rows first_row .. of a tile of X, `rows` of them.
INLINE void copy_x(__local double* x, __global const double* tile, int first_row, const int rows,
                   int item) {
#pragma unroll
  for (int i = item * 2; i < TILE * rows; i += GROUP_SIZE * 2) {
    copy_double2(x + i / TILE * X_LD + i % TILE, tile + first_row * TILE + i);
  }
}

// Groups: N - 1 per matrix, of the tiles beside the corner (b, b).
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void form_panel(
    __global float* r, __global double* work, FactorShape shape, int first, int b) {
  __local double shared[TILE * X_LD] __attribute__((aligned(16)));  // X(b, b); then a tile of R
  __local double sums[WARPS];
  const Place at = place_of(shared);
  const int others = (shape.n - 1) / TILE, index = get_group_id(0) / others;
  const int task = get_group_id(0) % others, other = task + (task >= b), is_x = other < b;
  const Slot slot = slot_at(work, shape, index);
  const int strip = at.index * 16;
  __global double* target = tile_of(slot, other, b) + strip * TILE;
  r += (first + index) * (index_t)shape.n * shape.n;

  copy_x(shared, tile_of(slot, b, b), 0, TILE, at.item);
  commit_copies();
  Strip s, z;
#pragma unroll
  for (int k = 0; k < BLOCKS; ++k) load_block(&at.warp, s[k], target + 16 * k);
  wait_for_copies();
  sync_group();
#pragma unroll
  for (int j = 0; j < BLOCKS; ++j) {
    clear_block(z[j]);
#pragma unroll
    for (int k = 0; k <= j; ++k) {
      Block y;
      get_x_transposed(&at.warp, y, shared + 16 * k * X_LD + 16 * j);
      multiply_add(&at.warp, z[j], s[k], y);
    }
    save_block(&at.warp, z[j], target + 16 * j);
  }
  sync_group();
  if (is_x) {
    double guard = 0;
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
      guard += guard_of(&at.warp, z[j], slot.squares + other * TILE + strip);
    }
    guard = sum_over_group(&at, guard, sums);
    if (at.item == 0) slot.guards[other * slot.tiles + b] = guard;
  } else {
    __local float* upper = (__local float*)shared;
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) put_r(&at.warp, z[j], upper, 16 * j, strip);
    sync_group();
    store_r(&at, upper, r, shape.n, b, other);
    store_r(&at, 0, r, shape.n, other, b);
  }
}

// ---- form_q

#ifndef Q_STAGES
#define Q_STAGES 3
#endif
#ifndef Q_STRIPS
#define Q_STRIPS 1
#endif
#define Q_ROWS (16 * WARPS * Q_STRIPS)
#define Q_LD 24           // of 64 x 16 entries of A

INLINE void copy_terms(__local float* rows, __local double* x, __global const float* a,
                       __global const double* tile, FactorShape shape, int first_row,
                       int first_col, int item) {
#pragma unroll
  for (int i = item * COPIED_FLOATS; i < Q_ROWS * 16; i += GROUP_SIZE * COPIED_FLOATS) {
    const int row = i / 16, col = i % 16;
    const bool exists = first_row + row < shape.m && first_col + col < shape.n;
    const index_t from = (first_row + row) * (index_t)shape.n + first_col + col;
    copy_floats(rows + row * Q_LD + col, a + (exists ? from : 0), exists);
  }
  copy_x(x, tile, first_col % TILE, 16, item);
}

// Rows row .. and columns col .. of an m x n matrix := x.
INLINE void store_block(const Warp* at, const Block x, __global float* to, FactorShape shape,
                        int row, int col) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int i = row + at->g + 8 * h, j = col + 8 * e + 2 * at->t;
      const float2 y = (float2)((float)x[h + 4 * e], (float)x[h + 4 * e + 2]);
      __global float* entry = to + i * (index_t)shape.n + j;
      if (i < shape.m) {
        if (VECTOR > 1 && j + 1 < shape.n) {
          *(__global float2*)entry = y;
        } else {
          if (j < shape.n) entry[0] = y.x;
          if (j + 1 < shape.n) entry[1] = y.y;
        }
      }
    }
  }
}

// Groups: ceil(m / TILE) N per matrix, a tile of Q each; the longest sums first.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void form_q(
    __global const float* a, __global float* q, __global double* work, FactorShape shape,
    int first) {
  __local float rows[Q_STAGES][Q_ROWS * Q_LD] __attribute__((aligned(16)));
  __local double x[Q_STAGES][16 * X_LD] __attribute__((aligned(16)));
  __local double room[2];
  const Place at = place_of(room);
  const int tiles = ((shape.n + TILE - 1) / TILE), down = (shape.m + Q_ROWS - 1) / Q_ROWS;
  const int index = get_group_id(0) / (tiles * down), rest = get_group_id(0) % (tiles * down);
  const int row = rest / tiles * Q_ROWS, c = tiles - 1 - rest % tiles;
  const Slot slot = slot_at(work, shape, index);
  a += (first + index) * (index_t)shape.m * shape.n;
  q += (first + index) * (index_t)shape.m * shape.n;

  Strip z[Q_STRIPS];
#pragma unroll
  for (int strip = 0; strip < Q_STRIPS; ++strip) {
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) clear_block(z[strip][j]);
  }
  const int terms = min((c + 1) * TILE, shape.n);
#pragma unroll
  for (int ahead = 0; ahead < Q_STAGES - 1; ++ahead) {
    if (16 * ahead < terms) {
      copy_terms(rows[ahead], x[ahead], a, tile_of(slot, 0, c), shape, row, 16 * ahead, at.item);
    }
    commit_copies();
  }
  int stage = 0;
#pragma unroll 1
  for (int k = 0; k < terms; k += 16) {
    wait_for_stage(Q_STAGES - 2);
    sync_group();
    const int next = k + 16 * (Q_STAGES - 1), to = stage == 0 ? Q_STAGES - 1 : stage - 1;
    if (next < terms) {
      copy_terms(rows[to], x[to], a, tile_of(slot, next / TILE, c), shape, row, next, at.item);
    }
    commit_copies();
    Block s[Q_STRIPS];
#pragma unroll
    for (int strip = 0; strip < Q_STRIPS; ++strip) {
      __local const float* from = rows[stage] + (at.index * Q_STRIPS + strip) * 16 * Q_LD;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        __local const float2* line = (__local const float2*)(from + (at.warp.g + 8 * h) * Q_LD);
        const float2 left = line[at.warp.t], right = line[at.warp.t + 4];
        s[strip][h] = (double)(left.x);
        s[strip][h + 2] = (double)(left.y);
        s[strip][h + 4] = (double)(right.x);
        s[strip][h + 6] = (double)(right.y);
      }
    }
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
      Block y;
      get_x_transposed(&at.warp, y, x[stage] + 16 * j);
#pragma unroll
      for (int strip = 0; strip < Q_STRIPS; ++strip) multiply_add(&at.warp, z[strip][j], s[strip], y);
    }
    stage = stage == Q_STAGES - 1 ? 0 : stage + 1;
  }
#pragma unroll
  for (int strip = 0; strip < Q_STRIPS; ++strip) {
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
      store_block(&at.warp, z[strip][j], q, shape, row + (at.index * Q_STRIPS + strip) * 16,
                  c * TILE + 16 * j);
    }
  }
}

// ---- finish

INLINE void store_nan(__global float* to, index_t count, int item) {
  for (index_t i = item; i < count; i += GROUP_SIZE) to[i] = NAN;
}

// Groups: one per matrix.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void finish(
    __global float* q, __global float* r, __global int* magnitudes, __global int* flags,
    __global double* work, FactorShape shape, int first, float most) {
  __local double sums[WARPS], room[32];
  const Place at = place_of(room);
  const int tiles = ((shape.n + TILE - 1) / TILE), count = TILE_AT(tiles, 0);
  const Slot slot = slot_at(work, shape, get_group_id(0));
  const index_t matrix = first + get_group_id(0);
  double guard = 0, trace = 0;
  for (int i = at.item; i < tiles * tiles; i += GROUP_SIZE) {
    if (i / tiles <= i % tiles) guard += slot.guards[i];
  }
  for (int j = at.item; j < shape.n; j += GROUP_SIZE) trace += slot.squares[j];
  guard = sum_over_group(&at, guard, sums);
  trace = sum_over_group(&at, trace, sums);
  const bool is_finite = trace < INFINITY;
  if (at.item == 0) {
    float largest = 0;
    for (int c = 0; c < tiles; ++c) largest = fmax(largest, (float)slot.largest[c]);
    flags[matrix] = is_finite && !(guard <= most);
    magnitudes[matrix] = magnitude_code(largest, is_finite);
  }
  if (!is_finite) {
    store_nan(r + matrix * shape.n * shape.n, shape.n * (index_t)shape.n, at.item);
    if (shape.q_cols > 0) {
      store_nan(q + matrix * shape.m * shape.n, shape.m * (index_t)shape.n, at.item);
    }
  }
}
