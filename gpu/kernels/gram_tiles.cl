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
//   finish           guard ||D X||^2, D = diag(||a_j||): times 2^-53 it bounds ||I - Q'Q||. Where
//   it
//                    is too large flags[matrix] = 1: Householder reflectors do the matrix again
//
//          k<b   b   >b
//        +-----+---+-----+
//      l |  X  | X |  X  |            G and L below the diagonal, X on and above it. The sum of a
//        +-----+---+-----+            tile of X right of b grows from step to step. R = L' is
//      b |  L  | G |  .  |  <- corner stored as it comes.
//      c |  L  | L |  G  |
//        +-----+---+-----+
//
// Work memory: a slot per matrix in flight (gram_slot.clh). A group of four times 32 work-items
// (warps) owns one tile, a warp 16 of its rows. Launch order: as above.
//
// Defines, set in variants/gram_tiles.cpp   range      meaning
//   SUB_GROUP_BODY, MMA                     1          common.clh, mma.clh
//   VECTOR                                  1, 2, 4    copy.clh; divides n
// A is m x n, m >= n. Signs of R's diagonal: positive.
#include "corner.clh"
#include "float_block.clh"

// ---- form_gram

// Rows of A that are copied together, and how many times; entries from row to row: a product's
// work-items read from different banks.
#define SLAB_ROWS 16
#define SLABS 3
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
INLINE void get_slab_transposed(const Warp* at, Block x, __local const float* from, int* largest) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const float y = from[BLOCK_COL(w, at->t) * SLAB_LD + BLOCK_ROW(w, at->g)];
    *largest = max(*largest, as_int(y) & 0x7fffffff);
    x[w] = (double)y;
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

// Groups: TILE_AT(N, 0) per matrix, matrices from `first` on in the slots. Each warp sums a
// quadrant of 32 x 32 of a tile (c, b) of G.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void form_gram(
    __global const float* a, __global double* work, FactorShape shape, int first) {
  __local float slabs[SLABS][2][SLAB_ROWS * SLAB_LD] __attribute__((aligned(16)));
  __local int magnitude;  // floats that are not negative order like their bits
  __local double room[2];
  const Place at = place_of(room);
  const int pairs = TILE_AT(tiles_across(shape), 0), pair = get_group_id(0) % pairs;
  const int index = get_group_id(0) / pairs;
  const Slot slot = slot_at(work, shape, index);
  int c = 0;
  while (TILE_AT(c + 1, 0) <= pair) ++c;
  const int b = pair - TILE_AT(c, 0);
  a += (first + index) * (index_t)shape.m * shape.n;
  if (at.item == 0) magnitude = 0;

  int largest = 0;
  const int down = at.index / 2 * 32, across = at.index % 2 * 32;
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
    if (c != b || down >= across) {
      Block x[2], y[2];
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        get_slab_transposed(&at.warp, x[p], left + 16 * p, &largest);
        get_slab_transposed(&at.warp, y[p], right + 16 * p, &largest);
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
  atomic_max(&magnitude, largest);
  sync_group();
  if (c == b && at.item == 0) slot.largest[c] = as_float(magnitude);
}

// ---- update_trailing

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
  const int tiles = tiles_across(shape), group = get_group_id(0), is_corner = group < count;
  const int updates = TILE_AT(tiles - b, 0) - 1 + b * (tiles - b);
  const int index = is_corner ? group : (group - count) / updates;
  const Target to = find_target(is_corner ? 0 : 1 + (group - count) % updates, b, tiles);
  const Slot slot = slot_at(work, shape, index);
  const int strip = at.index * 16;
  __global double* target = tile_of(slot, to.row, to.col) + strip * TILE;
  const bool begins = to.row == b - 1;        // a tile of X
  const bool is_diagonal = to.row == to.col;  // what is above it is not of interest

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
        if (!is_diagonal || j <= at.index) {
          get_chunks(&at.warp, y, shared + k * CHUNK_ENTRIES, 16 * j);
          multiply_add(&at.warp, s[j], x, y);
        }
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
  Strip x;
  invert_corner_row(&at, shared, x);
  double guard = 0;
#pragma unroll
  for (int j = 0; j < BLOCKS; ++j) {
    guard += guard_of(&at.warp, x[j], slot.squares + b * TILE + strip);
    save_block(&at.warp, x[j], target + 16 * j);
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

// 16 columns of rows of A and 16 rows of X that are copied together, how many times; entries from
// row to row of A.
#define Q_STAGES 3
#define Q_LD 24

INLINE void copy_terms(__local float* rows, __local double* x, __global const float* a,
                       __global const double* tile, FactorShape shape, int first_row, int first_col,
                       int item) {
#pragma unroll
  for (int i = item * COPIED_FLOATS; i < TILE * 16; i += GROUP_SIZE * COPIED_FLOATS) {
    const int row = i / 16, col = i % 16;
    const bool exists = first_row + row < shape.m && first_col + col < shape.n;
    const index_t from = (first_row + row) * (index_t)shape.n + first_col + col;
    copy_floats(rows + row * Q_LD + col, a + (exists ? from : 0), exists);
  }
  copy_x(x, tile, first_col % TILE, 16, item);
}

// Groups: ceil(m / TILE) N per matrix, a tile of Q each; the longest sums first.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void form_q(
    __global const float* a, __global float* q, __global double* work, FactorShape shape,
    int first) {
  __local float rows[Q_STAGES][TILE * Q_LD] __attribute__((aligned(16)));
  __local double x[Q_STAGES][16 * X_LD] __attribute__((aligned(16)));
  __local double room[2];
  const Place at = place_of(room);
  const int tiles = tiles_across(shape), down = (shape.m + TILE - 1) / TILE;
  const int index = get_group_id(0) / (tiles * down), rest = get_group_id(0) % (tiles * down);
  const int row = rest / tiles * TILE, c = tiles - 1 - rest % tiles;
  const Slot slot = slot_at(work, shape, index);
  a += (first + index) * (index_t)shape.m * shape.n;
  q += (first + index) * (index_t)shape.m * shape.n;

  Strip z;
#pragma unroll
  for (int j = 0; j < BLOCKS; ++j) clear_block(z[j]);
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
    Block s, y;
    get_floats(&at.warp, s, rows[stage] + at.index * 16 * Q_LD, Q_LD);
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
      get_x_transposed(&at.warp, y, x[stage] + 16 * j);
      multiply_add(&at.warp, z[j], s, y);
    }
    stage = stage == Q_STAGES - 1 ? 0 : stage + 1;
  }
#pragma unroll
  for (int j = 0; j < BLOCKS; ++j) {
    store_block(&at.warp, z[j], q, shape, row + 16 * at.index, c * TILE + 16 * j);
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
  const int tiles = tiles_across(shape);
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
