// SPDX-License-Identifier: Apache-2.0
// gram.cl: QR of a batch in float32 by its Gram matrices in float64 (CholeskyQR): products and no
// dependent columns, for devices whose float64 is as fast as their float32.
//
//   gram     G = A'A, in float64: the products of float32 are exact, nothing over- or underflows
//   factor   G = L L', X = L'^-1, block by block: R = L'
//   guard    ||D X||^2, D = diag(||a_j||): times 2^-53 it bounds ||I - Q'Q||. Where it is too
//            large (A is close to singular, columns scaled alike) flags[matrix] = 1, and
//            Householder reflectors do the matrix again (`small` or `blocked`, FLAGGED)
//   form_q   Q = A X, rounded once
//
//   factor_gram         to 64 columns: 32 work-items hold L, then X, in registers
//   factor_gram_tiles   more: a group goes from matrix to matrix; tiles of 64 x 64 in global
//                       memory (caches, mostly), `slot` of tiles per group
//
// In registers block (c, b), b <= c, of the tile holds in turn: G(c, b); L(c, b); as soon as
// columns b are done W(b, c) = X(b, b) L(c, b)' and then + sum_k X(b, k) L(c, k)'; X(b, c) at the
// end, from W: X(b, c) = -W(b, c) X(c, c). All are products S T' (mma.clh). In global memory it is
// the same with tiles for blocks; L(c, b) is kept aside (`panel`) while W(b, c) takes its place.
//
// Defines, set in variants/gram.cpp   range      meaning
//   SUB_GROUP_BODY, MMA                          common.clh, mma.clh
//   BLOCKS                            1..4       blocks of 16 columns of a tile; 4 with tiles
//   SLAB                              16..64     rows of A in local memory, a multiple of 16
//   WARPS                             1, 4       factor_gram_tiles: times 32 work-items per group;
//                                                4 with MMA and SLAB 64
//   WANT_Q                            0, 1
//   TILES                             0, 1       which of the two kernels
//   FULL                              0, 1       1: m is a multiple of SLAB, n of 16 BLOCKS
//   VECTOR                            1, 2, 4    divides n: entries of A that are copied at a time
//   MAX_TILES                         1..16      factor_gram_tiles: tiles across
// A is m x n, m >= n. Signs of R's diagonal: positive.
#include "mma.clh"

#ifndef BLOCKS
#define BLOCKS 4
#endif
#ifndef SLAB
#define SLAB 64
#endif
#ifndef WARPS
#define WARPS 1
#endif
#ifndef WANT_Q
#define WANT_Q 1
#endif
#ifndef FULL
#define FULL 0
#endif
#ifndef VECTOR
#define VECTOR 1
#endif
#ifndef TILES
#define TILES 0
#endif
#ifndef MAX_TILES
#define MAX_TILES 2
#endif

#define COLUMNS (16 * BLOCKS)
// Entries from row to row of a slab: the work-items of a product read from different banks.
#define SLAB_LD (COLUMNS + 8)
#define BLOCK_AT(c, b) ((c) * ((c) + 1) / 2 + (b))

typedef Block Tile[BLOCK_AT(BLOCKS, 0)];

// ---- A

// Rows of the slab that begins in first_row, to whole blocks.
INLINE int live_rows(FactorShape shape, int first_row) {
  return FULL ? SLAB : min(SLAB, (shape.m - first_row + 15) & ~15);
}

// slab := rows first_row .. and columns first_col .. of A, zeros around it; by `lanes` work-items.
INLINE void load_slab(__local float* slab, __global const float* a, FactorShape shape,
                      int first_row, int first_col, int item, const int lanes) {
  const int words = MMA ? VECTOR : 1, live = live_rows(shape, first_row);
  const int rows = shape.m - first_row, columns = shape.n - first_col;
  a += first_row * (index_t)shape.n + first_col;
#pragma unroll 4
  for (int i = item; i < live * COLUMNS / words; i += lanes) {
    const int row = i / (COLUMNS / words), col = i % (COLUMNS / words) * words;
    const bool exists = FULL || (row < rows && col < columns);
    __local float* to = slab + row * SLAB_LD + col;
    __global const float* from = a + (exists ? row * (index_t)shape.n + col : 0);
#if MMA
    const int local_address = (int)(size_t)to;
#if VECTOR == 4
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(local_address), "l"(from), "r"(exists ? 16 : 0)
                 : "memory");
#elif VECTOR == 2
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
                 :
                 : "r"(local_address), "l"(from), "r"(exists ? 8 : 0)
                 : "memory");
#else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :
                 : "r"(local_address), "l"(from), "r"(exists ? 4 : 0)
                 : "memory");
#endif
#else
    *to = exists ? *from : 0.0f;
#endif
  }
#if MMA
  asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}

// x := the transpose of 16 x 16 entries of a slab; `largest`: of their magnitudes.
INLINE void get_slab_transposed(const Warp* at, Block x, __local const float* from,
                                float* largest) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const float y = from[BLOCK_COL(w, at->t) * SLAB_LD + BLOCK_ROW(w, at->g)];
    *largest = fmax(*largest, fabs(y));
    x[w] = (double)y;
  }
}
INLINE void get_slab(const Warp* at, Block x, __local const float* from) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    __local const float2* row = (__local const float2*)(from + (at->g + 8 * h) * SLAB_LD);
    const float2 left = row[at->t], right = row[at->t + 4];
    x[h] = left.x;
    x[h + 2] = left.y;
    x[h + 4] = right.x;
    x[h + 6] = right.y;
  }
}

// ---- R and Q

// R(row .., col ..) := l', a block above the diagonal.
INLINE void store_r(const Warp* at, const Block l, __global float* r, int n, int row, int col) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const int i = row + BLOCK_COL(w, at->t), j = col + BLOCK_ROW(w, at->g);
    if (FULL || (i < n && j < n)) r[i * (index_t)n + j] = (float)l[w];
  }
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
      if (FULL) {
        *(__global float2*)entry = y;
      } else if (i < shape.m) {
        if (j < shape.n) entry[0] = y.x;
        if (j + 1 < shape.n) entry[1] = y.y;
      }
    }
  }
}

// ---- factor

// A block: G = L L' -> X = L'^-1. y := X', R := L'. Work-item i eliminates column i of
// [G | I], two rows at a time: their pivots come from one determinant, so that both divisions run
// at once.
INLINE void factor_block(const Warp* at, Block block, Block y, __global float* r, int n,
                         int first) {
  __local double* rows = at->room + BLOCK_ROOM;
  sync_warp();
  put_block(at, block, at->room);
  sync_warp();
  const int col = at->lane & 15;
  const bool is_left = at->lane < 16;
  double a[16], pivot = 1;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    a[i] = is_left ? at->room[i * BLOCK_LD + col] : i == col ? 1.0 : 0.0;
  }
#pragma unroll
  for (int j = 0; j < 16; j += 2) {
    __local double* row = rows + (j & 2) * 16;
    if (is_left) {
      row[col] = a[j];
      row[16 + col] = a[j + 1];
    }
    sync_warp();
    const double d = row[j], e = row[j + 1], f = row[16 + j + 1];
    const double determinant = fma(d, f, -(e * e));
    const double inverse = reciprocal_mma(d), inverse_determinant = reciprocal_mma(determinant);
    const double cross = fma(d, a[j + 1], -(e * a[j]));
    const double factor = cross * inverse_determinant, scaled = a[j] * inverse;
    const double ratio = e * inverse;
    const double factor0 = fma(-ratio, factor, scaled);
    a[j + 1] = cross * inverse;
    if (col == j) pivot = d;
    if (col == j + 1) pivot = determinant * inverse;
#pragma unroll
    for (int i = j + 2; i < 16; ++i) {
      a[i] = fma(-row[i], factor0, fma(-row[16 + i], factor, a[i]));
    }
  }
  sync_warp();
  if (is_left) rows[col] = inverse_root_mma(pivot);
  sync_warp();
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    a[i] *= rows[i];
    if (!is_left) at->room[i * BLOCK_LD + col] = a[i];
  }
  if (is_left && (FULL || first + col < n)) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      if (FULL || first + i < n) {
        r[(first + i) * (index_t)n + first + col] = i <= col ? (float)a[i] : 0.0f;
      }
    }
  }
  sync_warp();
  get_block(at, y, at->room);
  get_transposed(at, block, at->room);
  sync_warp();
}

// Tile: G -> X. R(first .., first ..) := L'.
INLINE void factor_tile(const Warp* at, Tile tile, __global float* r, int n, int first) {
#pragma unroll
  for (int b = 0; b < BLOCKS; ++b) {
    Block y, s;
    factor_block(at, tile[BLOCK_AT(b, b)], y, r, n, first + 16 * b);
#pragma unroll
    for (int l = 0; l < b; ++l) {  // X(l, b) = -W(l, b) X(b, b)
      negate_block(s, tile[BLOCK_AT(b, l)]);
      clear_block(tile[BLOCK_AT(b, l)]);
      multiply_add(at, tile[BLOCK_AT(b, l)], s, y);
    }
#pragma unroll
    for (int c = b + 1; c < BLOCKS; ++c) {  // L(c, b) = G(c, b) X(b, b)
      clear_block(s);
      multiply_add(at, s, tile[BLOCK_AT(c, b)], y);
      copy_block(tile[BLOCK_AT(c, b)], s);
      store_r(at, s, r, n, first + 16 * b, first + 16 * c);
    }
    // From the last row of blocks up: W(b, d) takes the place of L(d, b).
#pragma unroll
    for (int d = BLOCKS - 1; d > b; --d) {
#pragma unroll
      for (int l = 0; l < b; ++l) {  // W(l, d) += X(l, b) L(d, b)'
        multiply_add(at, tile[BLOCK_AT(d, l)], tile[BLOCK_AT(b, l)], tile[BLOCK_AT(d, b)]);
      }
      negate_block(s, tile[BLOCK_AT(d, b)]);
#pragma unroll
      for (int c = b + 1; c <= d; ++c) {  // G(d, c) -= L(d, b) L(c, b)'
        multiply_add(at, tile[BLOCK_AT(d, c)], s, tile[BLOCK_AT(c, b)]);
      }
      clear_block(s);
      multiply_add(at, s, tile[BLOCK_AT(b, b)], tile[BLOCK_AT(d, b)]);
      copy_block(tile[BLOCK_AT(d, b)], s);
    }
  }
}

// The diagonal of G to `squares`; ones for columns past n.
INLINE void take_diagonal(const Warp* at, Block gram, __local double* squares, int n, int first) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const int i = BLOCK_ROW(w, at->g);
    if (i == BLOCK_COL(w, at->t)) {
      squares[first + i] = gram[w];
      if (!FULL && first + i >= n) gram[w] = 1;
    }
  }
}

// sum over the block's rows i of x(i, j)^2 squares[i]
INLINE double guard_of(const Warp* at, const Block x, __local const double* squares) {
  double even = 0, odd = 0;
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; w += 2) {
    even = fma(x[w] * x[w], squares[BLOCK_ROW(w, at->g)], even);
    odd = fma(x[w + 1] * x[w + 1], squares[BLOCK_ROW(w + 1, at->g)], odd);
  }
  return even + odd;
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

INLINE void store_nan(__global float* to, index_t count, int item, const int lanes) {
  for (index_t i = item; i < count; i += lanes) to[i] = NAN;
}

// Zeros below the diagonal blocks of R; row by row, 16 columns at a time.
INLINE void store_zeros(__global float* r, int n, int lane) {
#pragma unroll
  for (int block = 1; block < BLOCKS; ++block) {
#pragma unroll
    for (int i = 0; i < 16 * 16 * block; i += 32) {
      const int row = 16 * block + (i + lane) / (16 * block), col = (i + lane) % (16 * block);
      if (FULL || row < n) r[row * n + col] = 0;
    }
  }
}

// ---- to 64 columns

#if !TILES
// tile += A'A of a slab; `largest`: of |a_ij|.
INLINE void add_gram(const Warp* at, Tile tile, __local const float* slab, int rows,
                     float* largest) {
  int k = 0;
#pragma unroll 1
  do {
    Block x[BLOCKS];
#pragma unroll
    for (int c = 0; c < BLOCKS; ++c) {
      get_slab_transposed(at, x[c], slab + k * SLAB_LD + 16 * c, largest);
#pragma unroll
      for (int b = 0; b <= c; ++b) multiply_add(at, tile[BLOCK_AT(c, b)], x[c], x[b]);
    }
  } while ((k += 16) < rows);
}

// Rows first_row .. of Q, from the slab; tile: X' = L^-1.
INLINE void form_q(const Warp* at, Tile tile, __local const float* slab, __global float* q,
                   FactorShape shape, int first_row) {
  const int rows = live_rows(shape, first_row);
  int i = 0;
#pragma unroll 1
  do {
    Block s[BLOCKS];
#pragma unroll
    for (int k = 0; k < BLOCKS; ++k) get_slab(at, s[k], slab + i * SLAB_LD + 16 * k);
#pragma unroll
    for (int c = 0; c < BLOCKS; ++c) {
      Block z;
      clear_block(z);
#pragma unroll
      for (int k = 0; k <= c; ++k) multiply_add(at, z, s[k], tile[BLOCK_AT(c, k)]);
      store_block(at, z, q, shape, first_row + i, 16 * c);
    }
  } while ((i += 16) < rows);
}

// Groups: one per matrix.
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void factor_gram(
    __global const float* a, __global float* q, __global float* r, __global int* magnitudes,
    __global int* flags, FactorShape shape, float most) {
  __local double room[2 * BLOCK_ROOM] __attribute__((aligned(16)));
  __local float slab[SLAB * SLAB_LD] __attribute__((aligned(16)));
  __local double squares[COLUMNS];
  __local int magnitude;  // max |a_ij|: floats that are not negative order like their bits
  const int lane = get_local_id(0), slabs = (shape.m + SLAB - 1) / SLAB, n = shape.n;
  const Warp at = {lane, lane / 4, lane % 4, room};
  const index_t matrix = get_group_id(0);
  a += matrix * shape.m * n;
  q += matrix * shape.m * n;
  r += matrix * n * n;

  if (lane == 0) magnitude = 0;
  Tile tile;
  float largest = 0;
#pragma unroll
  for (int p = 0; p < BLOCK_AT(BLOCKS, 0); ++p) clear_block(tile[p]);
#pragma unroll 1
  for (int i = 0; i < slabs; ++i) {
    sync_warp();
    load_slab(slab, a, shape, i * SLAB, 0, lane, 32);
    sync_warp();
    add_gram(&at, tile, slab, live_rows(shape, i * SLAB), &largest);
  }
#pragma unroll
  for (int c = 0; c < BLOCKS; ++c) {
    take_diagonal(&at, tile[BLOCK_AT(c, c)], squares, n, 16 * c);
  }
  factor_tile(&at, tile, r, n, 0);
  store_zeros(r, n, lane);

  double guard = 0;
#pragma unroll
  for (int c = 0; c < BLOCKS; ++c) {
#pragma unroll
    for (int l = 0; l <= c; ++l) guard += guard_of(&at, tile[BLOCK_AT(c, l)], squares + 16 * l);
  }
  guard = sum_of_warp(&at, guard);
  double trace = squares[lane % COLUMNS];
  if (COLUMNS > 32) trace += squares[32 + lane % (COLUMNS > 32 ? COLUMNS - 32 : 1)];
  const bool is_finite = sum_of_warp(&at, trace) < INFINITY;
  atomic_max(&magnitude, as_int(largest));
  sync_warp();
  if (lane == 0) {
    flags[matrix] = is_finite && !(guard <= most);
    magnitudes[matrix] = magnitude_code(as_float(magnitude), is_finite);
  }

#if WANT_Q
#pragma unroll
  for (int p = 0; p < BLOCK_AT(BLOCKS, 0); ++p) {
    sync_warp();
    put_block(&at, tile[p], room);
    sync_warp();
    get_transposed(&at, tile[p], room);
  }
#pragma unroll 1
  for (int i = slabs - 1; i >= 0; --i) {
#if MMA
    if (slabs > 1)
#endif
    {
      sync_warp();
      load_slab(slab, a, shape, i * SLAB, 0, lane, 32);
      sync_warp();
    }
    form_q(&at, tile, slab, q, shape, i * SLAB);
  }
#endif
  sync_warp();
  if (!is_finite) {
    store_nan(r, n * n, lane, 32);
    if (WANT_Q) store_nan(q, shape.m * (index_t)n, lane, 32);
  }
}
#else
// ---- more columns: a group per matrix at a time, tiles of COLUMNS x COLUMNS in global memory

#define GROUP_SIZE (32 * WARPS)
#define TILE_ENTRIES (COLUMNS * COLUMNS)
// A product of tiles is cut into ACROSS x ACROSS quadrants of SIDE x SIDE blocks, for a warp each.
#define ACROSS (BLOCKS > 1 ? 2 : 1)
#define SIDE (BLOCKS / ACROSS)
#define QUADRANT (16 * SIDE)

// A group's place. tile (c, b), b <= c, of its slot begins at tiles + BLOCK_AT(c, b) TILE_ENTRIES.
typedef struct {
  Warp warp;
  int item, index;              // work-item of the group, warp of the group
  __global double* tiles;       // G, L, W, X as blocks in registers (see above)
  __global double* panel;       // tile c: L(c, b) of the step b at hand
  __global double* corner;      // X(b, b)'
  __local float *left, *right;  // slabs
  __local double* squares;
} Group;

INLINE void sync_group(void) { barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE); }

INLINE __global double* tile_at(const Group* at, int c, int b) {
  return at->tiles + BLOCK_AT(c, b) * TILE_ENTRIES;
}

// Block at `from` of a tile in global memory, and its transpose.
INLINE void load_block(const Warp* at, Block x, __global const double* from) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    __global const double2* row = (__global const double2*)(from + (at->g + 8 * h) * COLUMNS);
    const double2 left = row[at->t], right = row[at->t + 4];
    x[h] = left.x;
    x[h + 2] = left.y;
    x[h + 4] = right.x;
    x[h + 6] = right.y;
  }
}
INLINE void load_transposed(const Warp* at, Block x, __global const double* from) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    x[w] = from[BLOCK_COL(w, at->t) * COLUMNS + BLOCK_ROW(w, at->g)];
  }
}
INLINE void save_block(const Warp* at, const Block x, __global double* to) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    __global double2* row = (__global double2*)(to + (at->g + 8 * h) * COLUMNS);
    row[at->t] = (double2)(x[h], x[h + 2]);
    row[at->t + 4] = (double2)(x[h + 4], x[h + 6]);
  }
}

typedef Block Quadrant[SIDE * SIDE];

INLINE void clear_quadrant(Quadrant x) {
#pragma unroll
  for (int p = 0; p < SIDE * SIDE; ++p) clear_block(x[p]);
}

// Tile (c, b) of G.
INLINE void form_gram(const Group* at, __global const float* a, FactorShape shape, int c, int b,
                      float* largest) {
  const Warp* warp = &at->warp;
  const int slabs = (shape.m + SLAB - 1) / SLAB;
#pragma unroll 1
  for (int part = at->index; part < ACROSS * ACROSS; part += WARPS) {
    const int down = part / ACROSS * QUADRANT, across = part % ACROSS * QUADRANT;
    Quadrant sum;
    clear_quadrant(sum);
#pragma unroll 1
    for (int i = 0; i < slabs; ++i) {
      sync_group();
      load_slab(at->left, a, shape, i * SLAB, c * COLUMNS, at->item, GROUP_SIZE);
      load_slab(at->right, a, shape, i * SLAB, b * COLUMNS, at->item, GROUP_SIZE);
      sync_group();
      if (MMA && c == b && down < across) continue;  // above the diagonal
#pragma unroll 1
      for (int k = 0; k < live_rows(shape, i * SLAB) * SLAB_LD; k += 16 * SLAB_LD) {
        Block x[SIDE], y[SIDE];
#pragma unroll
        for (int p = 0; p < SIDE; ++p) {
          get_slab_transposed(warp, x[p], at->left + k + down + 16 * p, largest);
          get_slab_transposed(warp, y[p], at->right + k + across + 16 * p, largest);
        }
#pragma unroll
        for (int p = 0; p < SIDE * SIDE; ++p) {
          multiply_add(warp, sum[p], x[p / SIDE], y[p % SIDE]);
        }
      }
    }
    __global double* to = tile_at(at, c, b) + down * COLUMNS + across;
#pragma unroll
    for (int p = 0; p < SIDE * SIDE; ++p) {
      if (c == b && down == across && p / SIDE == p % SIDE) {
        take_diagonal(warp, sum[p], at->squares, shape.n, c * COLUMNS + down + 16 * (p / SIDE));
      }
      save_block(warp, sum[p], to + p / SIDE * 16 * COLUMNS + p % SIDE * 16);
    }
  }
}

// Tile (b, b): G -> X, `corner`: its transpose.
INLINE void factor_corner(const Group* at, __global float* r, int n, int b) {
  const Warp* warp = &at->warp;
  __global double* to = tile_at(at, b, b);
  if (!MMA || at->index == 0) {
    Tile tile;
    Block zeros;
    clear_block(zeros);
#pragma unroll
    for (int c = 0; c < BLOCKS; ++c) {
#pragma unroll
      for (int l = 0; l <= c; ++l) {
        load_block(warp, tile[BLOCK_AT(c, l)], to + 16 * (c * COLUMNS + l));
      }
    }
    factor_tile(warp, tile, r, n, b * COLUMNS);
#pragma unroll
    for (int c = 0; c < BLOCKS; ++c) {
#pragma unroll
      for (int l = 0; l <= c; ++l) {
        if (l < c) save_block(warp, zeros, to + 16 * (c * COLUMNS + l));
        save_block(warp, tile[BLOCK_AT(c, l)], to + 16 * (l * COLUMNS + c));
        sync_warp();
        put_block(warp, tile[BLOCK_AT(c, l)], warp->room);
        sync_warp();
        get_transposed(warp, tile[BLOCK_AT(c, l)], warp->room);
        save_block(warp, tile[BLOCK_AT(c, l)], at->corner + 16 * (c * COLUMNS + l));
      }
    }
  }
}

// 16 rows of z := s corner', s being rows of a tile.
INLINE void multiply_corner(const Group* at, Block z[BLOCKS], __global const double* rows) {
  const Warp* warp = &at->warp;
  Block s[BLOCKS], t;
#pragma unroll
  for (int k = 0; k < BLOCKS; ++k) load_block(warp, s[k], rows + 16 * k);
#pragma unroll
  for (int j = 0; j < BLOCKS; ++j) {
    clear_block(z[j]);
#pragma unroll
    for (int k = 0; k <= j; ++k) {
      load_block(warp, t, at->corner + 16 * (j * COLUMNS + k));
      multiply_add(warp, z[j], s[k], t);
    }
  }
}

// L(c, b) = G(c, b) X(b, b) to `panel` and R, for c > b; X(l, b) = -W(l, b) X(b, b) for l < b.
INLINE void form_panel(const Group* at, __global float* r, int n, int b, int tiles) {
  const Warp* warp = &at->warp;
#pragma unroll 1
  for (int task = at->index; task < (tiles - 1) * BLOCKS; task += WARPS) {
    const int other = task / BLOCKS, row = task % BLOCKS * 16, c = other + (other >= b);
    __global double* from = (c > b ? tile_at(at, c, b) : tile_at(at, b, c)) + row * COLUMNS;
    Block z[BLOCKS];
    multiply_corner(at, z, from);
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
      if (c > b) {
        save_block(warp, z[j], at->panel + c * TILE_ENTRIES + row * COLUMNS + 16 * j);
        store_r(warp, z[j], r, n, b * COLUMNS + 16 * j, c * COLUMNS + row);
      } else {
        negate_block(z[j], z[j]);
        save_block(warp, z[j], from + 16 * j);
      }
    }
  }
}

// sum (+ or -)= s t', a quadrant of tiles.
INLINE void multiply_tiles(const Group* at, Quadrant sum, __global const double* s,
                           __global const double* t, bool subtract) {
  const Warp* warp = &at->warp;
#pragma unroll 1
  for (int k = 0; k < COLUMNS; k += 16) {
    Block x[SIDE], y[SIDE];
#pragma unroll
    for (int p = 0; p < SIDE; ++p) {
      load_block(warp, x[p], s + p * 16 * COLUMNS + k);
      load_block(warp, y[p], t + p * 16 * COLUMNS + k);
      if (subtract) negate_block(x[p], x[p]);
    }
#pragma unroll
    for (int p = 0; p < SIDE * SIDE; ++p) multiply_add(warp, sum[p], x[p / SIDE], y[p % SIDE]);
  }
}

// Tiles (d, c), d > b: G(d, c) -= L(d, b) L(c, b)'; W(c, d) += X(c, b) L(d, b)' for c < b;
// W(b, d) = X(b, b) L(d, b)'.
INLINE void update_trailing(const Group* at, int b, int tiles) {
  const Warp* warp = &at->warp;
#pragma unroll 1
  for (int d = b + 1; d < tiles; ++d) {
#pragma unroll 1
    for (int task = at->index; task < (d + 1) * ACROSS * ACROSS; task += WARPS) {
      const int c = task / (ACROSS * ACROSS), part = task % (ACROSS * ACROSS);
      const int down = part / ACROSS * QUADRANT, across = part % ACROSS * QUADRANT;
      __global double* to = tile_at(at, d, c) + down * COLUMNS + across;
      __global const double* l = at->panel + d * TILE_ENTRIES;
      __global const double* s = c > b ? l : tile_at(at, b, c);
      __global const double* t = c > b ? at->panel + c * TILE_ENTRIES : l;
      Quadrant sum;
#pragma unroll
      for (int p = 0; p < SIDE * SIDE; ++p) {
        clear_block(sum[p]);
        if (c != b) load_block(warp, sum[p], to + p / SIDE * 16 * COLUMNS + p % SIDE * 16);
      }
      multiply_tiles(at, sum, s + down * COLUMNS, t + across * COLUMNS, c > b);
#pragma unroll
      for (int p = 0; p < SIDE * SIDE; ++p) {
        save_block(warp, sum[p], to + p / SIDE * 16 * COLUMNS + p % SIDE * 16);
      }
    }
  }
}

// Rows first_row .. of tile c of Q.
INLINE void form_q_tile(const Group* at, __global const float* a, __global float* q,
                        FactorShape shape, int first_row, int c) {
  const Warp* warp = &at->warp;
#pragma unroll 1
  for (int part = at->index; part < SLAB / 16; part += WARPS) {
    Block z[BLOCKS];
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) clear_block(z[j]);
#pragma unroll 1
    for (int k = 0; k <= c; ++k) {
      sync_group();
      load_slab(at->left, a, shape, first_row, k * COLUMNS, at->item, GROUP_SIZE);
      sync_group();
#pragma unroll 1
      for (int i = 0; i < COLUMNS; i += 16) {
        Block s, t;
        get_slab(warp, s, at->left + part * 16 * SLAB_LD + i);
#pragma unroll
        for (int j = 0; j < BLOCKS; ++j) {
          load_transposed(warp, t, tile_at(at, c, k) + i * COLUMNS + 16 * j);
          multiply_add(warp, z[j], s, t);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
      store_block(warp, z[j], q, shape, first_row + 16 * part, c * COLUMNS + 16 * j);
    }
  }
}

// Groups: any number; each has its slot of `tiles`: BLOCK_AT(T, 0) + T + 1 tiles, T = tiles across.
__kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void factor_gram_tiles(
    __global const float* a, __global float* q, __global float* r, __global int* magnitudes,
    __global int* flags, __global double* work, FactorShape shape, float most) {
  // Of warp 0: the others need none with MMA, and are not there without.
  __local double room[2 * BLOCK_ROOM] __attribute__((aligned(16)));
  __local float slabs[2 * SLAB * SLAB_LD] __attribute__((aligned(16)));
  __local double squares[MAX_TILES * COLUMNS], sums[2 * WARPS];
  __local int magnitude;
  const int item = get_local_id(0), index = item / 32, lane = item % 32, n = shape.n;
  const int tiles = (n + COLUMNS - 1) / COLUMNS, count = BLOCK_AT(tiles, 0);
  __global double* slot = work + get_group_id(0) * (index_t)(count + tiles + 1) * TILE_ENTRIES;
  const Group at = {{lane, lane / 4, lane % 4, room},
                    item,
                    index,
                    slot,
                    slot + count * TILE_ENTRIES,
                    slot + (count + tiles) * TILE_ENTRIES,
                    slabs,
                    slabs + SLAB * SLAB_LD,
                    squares};

#pragma unroll 1
  for (int matrix = get_group_id(0); matrix < shape.count; matrix += get_num_groups(0)) {
    __global const float* from = a + matrix * (index_t)shape.m * n;
    __global float* to_r = r + matrix * (index_t)n * n;
    __global float* to_q = q + matrix * (index_t)shape.m * n;
    float largest = 0;
    if (item == 0) magnitude = 0;
#pragma unroll 1
    for (int c = 0; c < tiles; ++c) {
#pragma unroll 1
      for (int b = 0; b <= c; ++b) form_gram(&at, from, shape, c, b, &largest);
    }
    sync_group();
    atomic_max(&magnitude, as_int(largest));
#pragma unroll 1
    for (int b = 0; b < tiles; ++b) {
      factor_corner(&at, to_r, n, b);
      sync_group();
      form_panel(&at, to_r, n, b, tiles);
      sync_group();
      update_trailing(&at, b, tiles);
      sync_group();
    }

    double guard = 0, trace = 0;
#pragma unroll 1
    for (int c = 0; c < tiles; ++c) {
#pragma unroll 1
      for (int l = 0; l <= c; ++l) {
        __global const double* x = tile_at(&at, c, l);
#pragma unroll 4
        for (int i = item; i < TILE_ENTRIES; i += GROUP_SIZE) {
          guard = fma(x[i] * x[i], squares[l * COLUMNS + i / COLUMNS], guard);
        }
      }
    }
    for (int j = item; j < n; j += GROUP_SIZE) trace += squares[j];
    guard = sum_of_warp(&at.warp, guard);
    trace = sum_of_warp(&at.warp, trace);
    if (lane == 0) {
      sums[2 * index] = guard;
      sums[2 * index + 1] = trace;
    }
    sync_group();
    guard = trace = 0;
    for (int w = 0; w < WARPS; ++w) {
      guard += sums[2 * w];
      trace += sums[2 * w + 1];
    }
    const bool is_finite = trace < INFINITY;
    if (item == 0) {
      flags[matrix] = is_finite && !(guard <= most);
      magnitudes[matrix] = magnitude_code(as_float(magnitude), is_finite);
    }
    for (int i = item; i < n * n; i += GROUP_SIZE) {
      const int row = i / n, col = i - row * n;
      if (col / 16 < row / 16) to_r[i] = 0;
    }
#if WANT_Q
#pragma unroll 1
    for (int i = 0; i < shape.m; i += SLAB) {
#pragma unroll 1
      for (int c = 0; c < tiles; ++c) form_q_tile(&at, from, to_q, shape, i, c);
    }
#endif
    sync_group();
    if (!is_finite) {
      store_nan(to_r, n * (index_t)n, item, GROUP_SIZE);
      if (WANT_Q) store_nan(to_q, shape.m * (index_t)n, item, GROUP_SIZE);
    }
    sync_group();
  }
}
#endif
