// SPDX-License-Identifier: Apache-2.0
// gram.cl: QR of a batch in float32, to 64 columns, by Gram matrices in float64 (CholeskyQR):
// products and no dependent columns, for devices whose float64 is as fast as their float32.
//
//   gram     G = A'A, in float64: the products of float32 are exact, nothing over- or underflows
//   factor   G = L L', X = L'^-1, block by block: R = L'
//   guard    ||D X||^2, D = diag(||a_j||): times 2^-53 it bounds ||I - Q'Q||. Where it is too
//            large (A is close to singular, columns scaled alike) flags[matrix] = 1, and
//            Householder reflectors do the matrix again (`small` or `blocked`, FLAGGED)
//   form_q   Q = A X, rounded once
//
// One kernel, factor_gram: 32 work-items hold a matrix's L, then X, in registers.
//
// Block (c, b), b <= c, of the tile holds in turn: G(c, b); L(c, b); as soon as
// columns b are done W(b, c) = X(b, b) L(c, b)' and then + sum_k X(b, k) L(c, k)'; X(b, c) at the
// end, from W: X(b, c) = -W(b, c) X(c, c). All are products S T' (mma.clh).
//
// Defines, set in variants/gram.cpp   range      meaning
//   SUB_GROUP_BODY, MMA                          common.clh, mma.clh
//   BLOCKS                            1..4       blocks of 16 columns
//   SLAB                              16..64     rows of A in local memory, a multiple of 16
//   WANT_Q                            0, 1
//   FULL                              0, 1       1: m is a multiple of SLAB, n of 16 BLOCKS
//   VECTOR                            1, 2, 4    divides n: entries of A that are copied at a time
// A is m x n, m >= n. Signs of R's diagonal: positive.
#include "float_block.clh"

#ifndef BLOCKS
#define BLOCKS 4
#endif
#ifndef SLAB
#define SLAB 64
#endif
#ifndef WANT_Q
#define WANT_Q 1
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
  const int words = COPIED_FLOATS, live = live_rows(shape, first_row);
  const int rows = shape.m - first_row, columns = shape.n - first_col;
  a += first_row * (index_t)shape.n + first_col;
#pragma unroll 4
  for (int i = item; i < live * COLUMNS / words; i += lanes) {
    const int row = i / (COLUMNS / words), col = i % (COLUMNS / words) * words;
    const bool exists = FULL || (row < rows && col < columns);
    __local float* to = slab + row * SLAB_LD + col;
    __global const float* from = a + (exists ? row * (index_t)shape.n + col : 0);
    copy_floats(to, from, exists);
  }
  wait_for_copies();
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
// ---- R

// R(row .., col ..) := l', a block above the diagonal.
INLINE void store_r(const Warp* at, const Block l, __global float* r, int n, int row, int col) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) {
    const int i = row + BLOCK_COL(w, at->t), j = col + BLOCK_ROW(w, at->g);
    if (FULL || (i < n && j < n)) r[i * (index_t)n + j] = (float)l[w];
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

// ---- factor_gram

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
    for (int k = 0; k < BLOCKS; ++k) get_floats(at, s[k], slab + i * SLAB_LD + 16 * k, SLAB_LD);
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
