// SPDX-License-Identifier: Apache-2.0
// gram_tiles.cl: QR of wider matrices in float32 by Gram matrices in float64 (CholeskyQR), in tiles
// of 64 x 64 (LAPACK potrf, trtri), for devices whose float64 is as fast as their float32.
//
//   There are N tiles across, and squares of 2 x 2 tiles; G = A'A = L L', X = L'^-1:
//
//   factor_whole       for a single square: G, L and X in the registers of a group. Otherwise:
//   form_gram          G, in float64: products of float32 are exact; of many rows in slabs,
//   add_gram_slabs     and their sum
//   for every square b:
//     update_trailing  G(d, c) -= L(d, b - 1) L(c, b - 1)'    b <= c <= d
//                      Y(d, l) -= L(d, b - 1) X(l, b - 1)'    l < b <= d, Y = X'
//                      and one of its groups factors the square: G(b, b) -> L(b, b), X(b, b)
//     form_panel       L(c, b) L(b, b)' = G(c, b)             c > b, by substitution
//                      X(l, b) L(b, b)' = Y(b, l)'            l < b
//   form_q             Q = A X, rounded once
//   finish             T bounds ||I - Q'Q||, and S the error of R (gram_guard.clh). Where T is too
//                      large for Q, or S for R alone, routes[matrix] says so
//   probe_q, settle_q  where T is too large, but not S, ||I - Q'Q|| is measured and gives the
//   or measure_q       route (probe.clh). For a few matrices that are nearly square, of which most
//                      need it, probe_q comes before `finish`, which then gives all routes.
//                      Householder reflectors factor matrices again whose error is too large. There
//                      is no second pass as in gram.cl, because it would repeat all these launches.
//
//          l<b   b   >b           G is below the diagonal. A panel moves its results to the other
//        +-----+---+-----+        side of the diagonal: L(c, b) is in tile (b, c) until X(b, c)
//      l |  X  | X |     |        replaces it. Y uses the tiles below that become free, and its
//        +-----+---+-----+        sums grow in every step. R = L' is stored at once.
//      b |  Y  | G |  L  |
//        |  Y  | G |  G  |
//        +-----+---+-----+
//
// The work memory has a slot for each matrix that is factored at a time (slot.clh). Groups have
// four or eight warps (mma.clh). The kernels with eight are declared without
// reqd_work_group_size, because NVIDIA's compiler then obeys the limit of registers that
// gram_tiles.cpp sets. Launch order: as above.
//
// Defines, set in gram_tiles.cpp            range      meaning
//   SUB_GROUP_BODY, MMA                                common.clh, mma.clh
//   VECTOR                                  1, 2, 4    copy.clh; divides n
//   MOST_COLUMNS                            64..       n at most
// A is m x n, m >= n. Signs of R's diagonal: positive.
#ifndef MOST_COLUMNS
#define MOST_COLUMNS 5120
#endif
#include "gpu/gram/tiles/float_block.clh"
#include "gpu/gram/tiles/trailing.clh"

// ---- form_gram

// Number of rows of A that are copied together, number of such copies, and distance of rows; with
// it the work-items of a product read from different banks.
#define GRAM_SLAB_ROWS 16
#define GRAM_SLABS 3
#define GRAM_SLAB_LD (TILE + 4)
#define GRAM_SLAB_ENTRIES (GRAM_SLAB_ROWS * GRAM_SLAB_LD)
#define COPY_ROWS (GROUP_SIZE * PARTS * COPIED_FLOATS / TILE)

// A work-item's copies of the columns of a tile: COPIED_FLOATS entries, PARTS times, of every
// COPY_ROWS-th row.
typedef struct {
  __global const float* from;
  int col;
} SlabCopy;

INLINE SlabCopy slab_copy(__global const float* a, FactorShape shape, int tile, int row, int col) {
  const int first = tile * TILE + col;
  const SlabCopy copy = {a + (first < shape.n ? row * (index_t)shape.n + first : 0), first};
  return copy;
}

// Starts the copies of rows row, row + COPY_ROWS, .. of GRAM_SLAB_ROWS, with zeros past the last
// row.
INLINE void copy_slab(SlabCopy* copy, __local float* to, __global const float* a, FactorShape shape,
                      int row) {
#pragma unroll
  for (int u = 0; u < GRAM_SLAB_ROWS; u += COPY_ROWS) {
    const bool exists = row + u < shape.m;
    EACH_PART(i, 0) {
      copy_floats(to + u * GRAM_SLAB_LD + i, exists ? copy->from + i : a,
                  exists && copy->col + i < shape.n);
    }
    copy->from += COPY_ROWS * (index_t)shape.n;
  }
}

// x := the transpose of 16 x 16 entries of a slab.
INLINE void get_slab_transposed(const Warp* at, Block x, __local const float* from) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    x[w] = (double)from[BLOCK_COL(w, at->t) * GRAM_SLAB_LD + BLOCK_ROW(w, at->g)];
  }
}

INLINE float largest_of_slab(__local const float* from, float largest) {
#pragma unroll
  for (int u = 0; u < GRAM_SLAB_ROWS; u += COPY_ROWS) {
#pragma unroll
    for (int e = 0; e < PARTS * COPIED_FLOATS; ++e) {
      largest = fmax(largest, fabs(from[u * GRAM_SLAB_LD + e]));
    }
  }
  return largest;
}

// Copies the diagonal of G to `squares`; the diagonal is then set to 1 for columns past n.
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

// Groups: TILE_AT(N, 0) for each slab of a matrix; the slots hold the matrices from `first` on. A
// warp sums a 32 x 32 quadrant of a tile (c, b) of G.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void form_gram(
    __global const float* a, __global double* work, FactorShape shape, int first) {
  __local float stages[GRAM_SLABS][2][GRAM_SLAB_ENTRIES] __attribute__((aligned(16)));
  __local int magnitude;  // the bits of floats >= 0 have the order of their values
  __local double room[2];
  const Place at = place_of(room);
  const int pairs = TILE_AT(tiles_across(shape), 0), pair = get_group_id(0) % pairs;
  const int slabs = gram_slabs(shape), slab = get_group_id(0) / pairs % slabs;
  const int index = get_group_id(0) / pairs / slabs;
  const Slot slot = slot_at(work, shape, index);
  int c = 0;
  while (TILE_AT(c + 1, 0) <= pair) ++c;
  const int b = pair - TILE_AT(c, 0);
  const bool is_diagonal = c == b;
  a += (first + index) * (index_t)shape.m * shape.n;
  const int slab_rows =
      (shape.m + slabs * GRAM_SLAB_ROWS - 1) / (slabs * GRAM_SLAB_ROWS) * GRAM_SLAB_ROWS;
  const int begin = slab * slab_rows;
  // PoCL shares an argument that changes among work-items.
  FactorShape part = shape;
  part.m = min(begin + slab_rows, shape.m);
  if (at.item == 0) magnitude = 0;

  // The quadrant above the diagonal is not needed. Which warp it belongs to is different in each
  // group.
  const int quadrant = (at.index + (int)get_group_id(0)) % WARPS;
  const int down = quadrant / 2 * 32, across = quadrant % 2 * 32;
  const bool is_needed = (!is_diagonal || down >= across) && c * TILE + down < shape.n;
  const int copied = at.item * PARTS * COPIED_FLOATS, row0 = copied / TILE, col0 = copied % TILE;
  const int to = row0 * GRAM_SLAB_LD + col0;
  SlabCopy left = slab_copy(a, part, c, begin + row0, col0);
  SlabCopy right = slab_copy(a, part, b, begin + row0, col0);
  float largest = 0;
  Block sum[4];
#pragma unroll
  for (int p = 0; p < 4; ++p) clear_block(sum[p]);
  sync_group();
#pragma unroll
  for (int ahead = 0; ahead < GRAM_SLABS - 1; ++ahead) {
    const int row = begin + row0 + ahead * GRAM_SLAB_ROWS;
    copy_slab(&left, stages[ahead][0] + to, a, part, row);
    if (!is_diagonal) copy_slab(&right, stages[ahead][1] + to, a, part, row);
    commit_copies();
  }
  int stage = 0;
#pragma unroll 1
  for (int row = begin; row < part.m; row += GRAM_SLAB_ROWS) {
    wait_for_stage(GRAM_SLABS - 2);
    sync_group();
    const int next = stage == 0 ? GRAM_SLABS - 1 : stage - 1;
    const int later = row0 + row + (GRAM_SLABS - 1) * GRAM_SLAB_ROWS;
    copy_slab(&left, stages[next][0] + to, a, part, later);
    if (!is_diagonal) copy_slab(&right, stages[next][1] + to, a, part, later);
    commit_copies();
    if (is_diagonal) largest = largest_of_slab(stages[stage][0] + to, largest);
    if (is_needed) {
      __local const float* x_from = stages[stage][0] + down;
      __local const float* y_from = stages[stage][is_diagonal ? 0 : 1] + across;
      Block x[2], y[2];
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        get_slab_transposed(&at.warp, x[p], x_from + 16 * p);
        get_slab_transposed(&at.warp, y[p], y_from + 16 * p);
      }
#pragma unroll
      for (int p = 0; p < 4; ++p) multiply_add(sum[p], x[p / 2], y[p % 2]);
    }
    stage = stage == GRAM_SLABS - 1 ? 0 : stage + 1;
  }
  const bool is_whole = slabs == 1;
  __global double* tile =
      is_whole ? tile_of(slot, c, b) : slot.slabs + (slab * pairs + pair) * (index_t)TILE_ENTRIES;
  tile += down * TILE + across;
#pragma unroll
  for (int p = 0; p < 4; ++p) {
    const int diagonal = c * TILE + down + 16 * (p / 2);
    if (is_whole && is_diagonal && down == across && p / 2 == p % 2) {
      take_diagonal(&at.warp, sum[p], slot.squares + diagonal, shape.n - diagonal);
    }
    if (is_needed) save_block(&at.warp, sum[p], tile + p / 2 * 16 * TILE + p % 2 * 16);
  }
  if (is_diagonal) {
    atomic_max(&magnitude, as_int(largest));
    sync_group();
    if (at.item == 0) slot.largest[slab * slot.tiles + c] = as_float(magnitude);
  }
}

#define ADD_PARTS (TILE_ENTRIES / ADD_GROUP)

// Groups: ADD_PARTS for each tile of a matrix, with an entry for each work-item.
__kernel __attribute__((reqd_work_group_size(ADD_GROUP, 1, 1))) void add_gram_slabs(
    __global double* work, FactorShape shape) {
  const int tiles = tiles_across(shape), slabs = gram_slabs(shape), pairs = TILE_AT(tiles, 0);
  const int part = get_group_id(0) % ADD_PARTS, pair = get_group_id(0) / ADD_PARTS % pairs;
  const Slot slot = slot_at(work, shape, get_group_id(0) / ADD_PARTS / pairs);
  int c = 0;
  while (TILE_AT(c + 1, 0) <= pair) ++c;
  const int b = pair - TILE_AT(c, 0), entry = part * ADD_GROUP + get_local_id(0);
  const int row = entry / TILE, col = entry % TILE, i = c * TILE + row;
  // form_gram leaves out quadrants above the diagonal, and past column n.
  const bool is_there = (c != b || row / 32 >= col / 32) && c * TILE + row / 32 * 32 < shape.n;
  __global const double* from = slot.slabs + pair * (index_t)TILE_ENTRIES + entry;
  double sum = 0;
#pragma unroll 8
  for (int s = 0; s < slabs; ++s) sum += is_there ? from[s * pairs * (index_t)TILE_ENTRIES] : 0;
  if (c == b && row == col) {
    slot.squares[i] = sum;
    if (i >= shape.n) sum = 1;
  }
  if (is_there) tile_of(slot, c, b)[entry] = sum;
  if (c != b || entry > 0) return;
  for (int s = 1; s < slabs; ++s)
    slot.largest[c] = fmax(slot.largest[c], slot.largest[s * tiles + c]);
}

// ---- factor_whole

// Groups: one per matrix. Matrices have at most two tiles across.
__kernel void factor_whole(__global const float* a, __global float* r, __global double* work,
                           FactorShape shape, int first) {
  __local double shared[SQUARE_ROOM] __attribute__((aligned(16)));
  __local double room[32];
  __local int magnitude;
  const Place at = place_of(room);
  const Slot slot = slot_at(work, shape, get_group_id(0));
  const index_t matrix = first + get_group_id(0);
  r += matrix * shape.n * shape.n;
  if (at.item == 0) magnitude = 0;
  const SquareOf of = {r, shape.n, shape.n, (shape.n + 15) / 16, slot, 0, shape.q_cols > 0, false};
  clear_lower(&of, at.item);
  Block own[OWN];
  const float largest =
      form_square(&at, own, (__local float*)shared, a + matrix * shape.m * shape.n, shape);
#pragma unroll
  for (int s = 0; s < OWN; ++s) {
    const int i = own_row(s, at.index);
    if (i == own_col(s, at.index) && 16 * i < shape.n) {
      take_diagonal(&at.warp, own[s], slot.squares + 16 * i, shape.n - 16 * i);
    }
  }
  atomic_max(&magnitude, as_int(largest));
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (at.item < slot.tiles) slot.largest[at.item] = as_float(magnitude);
  factor_square(&at, own, shared, &of);
}

// ---- update_trailing

// Groups: first one per matrix for the squares; then, for b > 0, `targets` per matrix.
__kernel void update_trailing(__global float* r, __global double* work, FactorShape shape,
                              int first, int count, int b, int targets) {
  __local double shared[SQUARE_ROOM] __attribute__((aligned(16)));
  __local double room[32];
  const Place at = place_of(room);
  const int group = get_group_id(0);
  if (group >= count) {
    const Slot slot = slot_at(work, shape, (group - count) / targets);
    const Target to = find_target((group - count) % targets, b);
    if (to.d < slot.tiles) update_target(&at, shared, slot, to, b, shape.n);
    return;
  }
  const Slot slot = slot_at(work, shape, group);
  const int exist = min(shape.n - SIDE * b, SIDE);
  r += (first + group) * (index_t)shape.n * shape.n + SIDE * b * ((index_t)shape.n + 1);
  Block own[OWN];
  const int blocks = blocks_of_square(shape.n, b);
  load_square(&at, own, shared, slot, b, blocks);
  const SquareOf of = {r, shape.n, exist, blocks, slot, 2 * b, true, true};
  clear_lower(&of, at.item);
  factor_square(&at, own, shared, &of);
}

// ---- form_panel

// Local memory holds column p of the square's L, with X(p, p) in the place of L(p, p).
#define COLUMN_ROOM (SIDE_BLOCKS * BLOCK_ROOM)

// Starts the copy of a block of the slot.
INLINE void begin_block_copy(__local double* to, __global const double* from, int item) {
  EACH_PART(i, item) {
    const int row = i / 8, col = i % 8 * 2;
    copy_double2(to + row * BLOCK_LD + col, from + row * TILE + col);
  }
}

INLINE void copy_column(__local double* to, Slot slot, int b, int p, int blocks, int item) {
#pragma unroll 1
  for (int q = p; q < blocks; ++q) {
    begin_block_copy(to + q * BLOCK_ROOM,
                     q == p ? block_of(slot, 2 * b, p, p) : block_in(slot.factor, 2, 0, q, p),
                     item);
  }
}

// Loads columns 16 k .. of the panel that becomes tile row `other`: from G, or from Y transposed.
INLINE void load_panel(const Warp* at, Block s, Slot slot, int other, int b, int strip, int k) {
  const int tile = 2 * b + k / TILE_BLOCKS, within = k % TILE_BLOCKS * 16;
  if (other > 2 * b) {
    load_block(at, s, tile_of(slot, other, tile) + strip * TILE + within);
  } else {
    __global const double* from = tile_of(slot, tile, other) + within * TILE + strip;
#pragma unroll
    for (int w = 0; w < BLOCK_WORDS; ++w) {
      s[w] = from[BLOCK_COL(w, at->t) * TILE + BLOCK_ROW(w, at->g)];
    }
  }
}

// Replaces a strip s of 16 rows by s X, where X is the inverse of the square's L', by substitution:
// s(p) := s(p) X(p, p), then s(q) -= s(p) L(q, p)' for q > p. A single product with X is
// mathematically the same, but its rounding errors are larger (gram_guard.clh).
INLINE void solve_strip(const Place* at, Block s[SIDE_BLOCKS], __local double* columns, Slot slot,
                        int b, int blocks) {
  copy_column(columns, slot, b, 0, blocks, at->item);
  commit_copies();
#pragma unroll
  for (int p = 0; p < SIDE_BLOCKS; ++p) {
    if (p < blocks) {
      __local const double* column = columns + p % 2 * COLUMN_ROOM;
      wait_for_copies();
      sync_group();
      if (p + 1 < blocks) {
        copy_column(columns + (p + 1) % 2 * COLUMN_ROOM, slot, b, p + 1, blocks, at->item);
      }
      commit_copies();
      Block y, z;
      get_transposed(&at->warp, y, column + p * BLOCK_ROOM);
      clear_block(z);
      multiply_add(z, s[p], y);
      copy_block(s[p], z);
      flip_block(z);
#pragma unroll
      for (int q = p + 1; q < SIDE_BLOCKS; ++q) {
        if (q < blocks) {
          get_block(&at->warp, y, column + q * BLOCK_ROOM);
          multiply_add(s[q], z, y);
        }
      }
    }
  }
}

// Copies the diagonal blocks of X of square b to local memory, and a_j^2 of their columns.
INLINE void load_pivots(const Place* at, __local double* pivots, __local double* squares, Slot slot,
                        int b, int blocks) {
  for (int p = 0; p < blocks; ++p) {
    begin_block_copy(pivots + p * BLOCK_ROOM, block_of(slot, 2 * b, p, p), at->item);
  }
  commit_copies();
  EACH_PART(i, at->item) {
    if (i < 16 * blocks) squares[i] = slot.squares[SIDE * b + i];
  }
  wait_for_copies();
  sync_group();
}

// Computes slot.spread for the columns of square b. room: (SIDE_BLOCKS + 2) BLOCK_ROOM.
INLINE void spread_square(const Place* at, __local double* room, Slot slot, __global const float* r,
                          int n, int b) {
  const int blocks = blocks_of_square(n, b);
  __local double* squares = room + SIDE_BLOCKS * BLOCK_ROOM;
  load_pivots(at, room, squares, slot, b, blocks);
  take_spread(at->item, 16 * blocks, room, r + SIDE * b * ((index_t)n + 1), n, n - SIDE * b,
              squares, squares + SIDE, squares + 2 * SIDE);
  EACH_PART(i, at->item) {
    if (i < 16 * blocks) slot.spread[SIDE * b + i] = squares[2 * SIDE + i];
  }
}

// Groups: one for each tile row outside the square, where a warp computes 16 rows; and one more
// that computes the square's numbers for the guard.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void form_panel(
    __global float* r, __global double* work, FactorShape shape, int first, int b) {
  __local double columns[2 * COLUMN_ROOM] __attribute__((aligned(16)));
  __local double room[2];
  const Place at = place_of(room);
  const int tiles = tiles_across(shape), across = min(tiles - 2 * b, 2), others = tiles - across;
  const int index = get_group_id(0) / (others + 1), task = get_group_id(0) % (others + 1);
  const int other = task < 2 * b ? task : task + across;
  const Slot slot = slot_at(work, shape, index);
  r += (first + index) * (index_t)shape.n * shape.n;
  if (task == others) {
    spread_square(&at, columns, slot, r, shape.n, b);
    return;
  }
  const int strip = at.index * 16, blocks = blocks_of_square(shape.n, b);
  Block s[SIDE_BLOCKS];
#pragma unroll
  for (int k = 0; k < SIDE_BLOCKS; ++k) {
    clear_block(s[k]);
    if (k < blocks) load_panel(&at.warp, s[k], slot, other, b, strip, k);
  }
  solve_strip(&at, s, columns, slot, b, blocks);

  const bool is_x = other < 2 * b;
  const SquareOf of = {r, shape.n, shape.n, 0, slot, 0, false, false};
  FactorShape of_r = shape;
  of_r.m = shape.n;
  sync_group();  // all work-items have read the last column
  __local double* squares = columns;
  EACH_PART(i, at.item) {
    if (i < TILE) squares[i] = slot.squares[other * TILE + i];
  }
  sync_group();
  RowGuard guard = {{0}};
  Block x, zero;
  clear_block(zero);
#pragma unroll 1
  for (int k = 0; k < blocks; ++k) {
    WITH_CONSTANT(k, SIDE_BLOCKS, copy_block(x, s[P]))
    const int col = 2 * b + k / TILE_BLOCKS, within = k % TILE_BLOCKS;
    __global double* to = is_x ? tile_of(slot, other, col) : tile_of(slot, col, other);
    save_block(&at.warp, x, to + strip * TILE + 16 * within);
    if (is_x) {
      add_guard(&at.warp, &guard, x, squares + strip);
    } else {
      store_r_block(&at.warp, x, &of, (other * TILE + strip) / 16, col * TILE_BLOCKS + within);
      store_block(&at.warp, zero, of.r, of_r, other * TILE + strip, col * TILE + 16 * within);
    }
  }
  if (is_x) store_guard(&at.warp, slot, (other * TILE + strip) / 16, b, guard);
}

#include "gpu/gram/tiles/gram_tiles_q.clh"
#include "gpu/gram/tiles/probe.clh"

// ---- finish

INLINE void store_nan(__global float* to, index_t count, int item) {
  for (index_t i = item; i < count; i += GROUP_SIZE) to[i] = NAN;
}

// Number of adjacent rows that a work-item has in sum_block_rows.
#define SUMMED_ROWS (MMA ? 1 : 16)
// Sums x over the 16 / SUMMED_ROWS adjacent work-items that have the rows of a block.
INLINE float sum_of_block_rows(float x) {
#if MMA
#pragma unroll
  for (int offset = 8; offset > 0; offset /= 2) x += shuffle_xor_float(x, offset);
#endif
  return x;
}

// Sums, for each block row of X, the squares of D X, and those of H X or of D X's diagonal block.
// *most: the largest (h_j / a_j)^2.
INLINE void sum_block_rows(const Place* at, Slot slot, int n, bool has_spread, __local float* plain,
                           __local float* other, __local int* most) {
  float largest = 0;
  const int rows = (n + 15) / 16 * 16, across = squares_across(slot.tiles);
  for (int first = 0; first < rows; first += GROUP_SIZE * SUMMED_ROWS) {
    const int start = first + at->item * SUMMED_ROWS;
    float sum = 0, second = 0;
    for (int i = start; i < start + SUMMED_ROWS && i < rows; ++i) {
      float of_row = 0;
      for (int b = i / SIDE; b < across; ++b) of_row += (float)slot.guards[i * across + b];
      const float ratio = has_spread && i < n ? (float)(slot.spread[i] / slot.squares[i]) : 0.0f;
      sum += of_row;
      largest = fmax(largest, ratio);
      second += has_spread ? of_row * ratio : (float)slot.diagonal[i];
    }
    sum = sum_of_block_rows(sum);
    second = sum_of_block_rows(second);
    if (start < rows && start % 16 == 0) {
      plain[start / 16] = sum;
      other[start / 16] = second;
    }
  }
  if (has_spread) atomic_max(most, as_int(largest));
  sync_group();
}

// T / (g u), or the upper bound that needs no H.
INLINE double guard_of_slot(const Place* at, Slot slot, int n, bool has_spread, float share,
                            __local float* plain, __local float* other, __local double* sums,
                            __local int* most) {
  sum_block_rows(at, slot, n, has_spread, plain, other, most);
  const int rows = (n + 15) / 16;
  double guard = 0;
  for (int i = at->item; i < rows; i += GROUP_SIZE) {
    float below = 0;
    for (int j = i; j < rows; ++j) below += plain[j];
    guard += plain[i];
    guard += share * (has_spread ? native_sqrt(below * other[i])
                                 : other[i] * native_sqrt(below * plain[i]));
  }
  return sum_over_group(at, guard, sums);
}

// Returns S / (g u), the error of R (gram_guard.clh). It is called after guard_of_slot with H.
INLINE float error_of_slot(const Place* at, int n, float share, __local const float* plain,
                           __local const float* other, __local double* sums,
                           __local const int* most) {
  double of_x = 0, of_h = 0;
  for (int i = at->item; i < (n + 15) / 16; i += GROUP_SIZE) {
    of_x += plain[i];
    of_h += other[i];
  }
  of_x = sum_over_group(at, of_x, sums);
  of_h = sum_over_group(at, of_h, sums);
  const double root = sqrt((double)n), largest = as_float(*most);
  return (float)(sqrt(of_x) / root + share / 2 * root * (sqrt(largest * of_x) + sqrt(of_h)));
}

// Sets the route of each matrix. A negative most_probed says that Q is measured later: the route is
// then that of a second pass. Otherwise probe_q has measured Q, and most_probed is the largest mean
// of d^2 that passes. Groups: one per matrix.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void finish(
    __global float* q, __global float* r, __global int* magnitudes, __global int* routes,
    __global double* work, FactorShape shape, int first, FactorLimits limits, double most_probed) {
  __local double pivots[(SIDE_BLOCKS + 2) * BLOCK_ROOM] __attribute__((aligned(16)));
  __local float plain[MOST_COLUMNS / 16], other[MOST_COLUMNS / 16];
  __local double sums[WARPS], room[32];
  __local int most_spread;  // the bits of floats >= 0 have the order of their values
  const Place at = place_of(room);
  const int tiles = tiles_across(shape);
  const Slot slot = slot_at(work, shape, get_group_id(0));
  const index_t matrix = first + get_group_id(0);
  if (at.item == 0) most_spread = 0;
  sync_group();
  // With one square, h is computed only if it is needed.
  const bool has_spread = tiles > 2;
  double guard =
      guard_of_slot(&at, slot, shape.n, has_spread, limits.share, plain, other, sums, &most_spread);
  if (!has_spread && !(guard <= limits.most)) {
    spread_square(&at, pivots, slot, r + matrix * shape.n * shape.n, shape.n, 0);
    barrier(CLK_GLOBAL_MEM_FENCE);
    guard = guard_of_slot(&at, slot, shape.n, true, limits.share, plain, other, sums, &most_spread);
  }
  int route = ROUTE_FIRST_PASS;
  if (!(guard <= limits.most)) {
    const float error = error_of_slot(&at, shape.n, limits.share, plain, other, sums, &most_spread);
    if (shape.q_cols > 0) route = ROUTE_SECOND_PASS;
    if (!(error <= limits.most_of_r)) route = ROUTE_REFLECTORS;
  }
  if (route == ROUTE_SECOND_PASS && most_probed >= 0) {
    const bool is_good = is_orthogonal_by_strips(&at, pivots, slot, shape.m, most_probed);
    route = is_good ? ROUTE_FIRST_PASS : ROUTE_REFLECTORS;
  }
  double trace = 0;
  for (int j = at.item; j < shape.n; j += GROUP_SIZE) trace += slot.squares[j];
  trace = sum_over_group(&at, trace, sums);
  const bool is_finite = trace < INFINITY;
  if (at.item == 0) {
    float largest = 0;
    for (int c = 0; c < tiles; ++c) largest = fmax(largest, (float)slot.largest[c]);
    routes[matrix] = is_finite ? route : ROUTE_FIRST_PASS;
    magnitudes[matrix] = magnitude_code(largest, is_finite);
  }
  if (!is_finite) {
    store_nan(r + matrix * shape.n * shape.n, shape.n * (index_t)shape.n, at.item);
    if (shape.q_cols > 0) {
      store_nan(q + matrix * shape.m * shape.n, shape.m * (index_t)shape.n, at.item);
    }
  }
}
