// SPDX-License-Identifier: Apache-2.0
// leading.cl: QR of wide matrices by their leading square block (LAPACK geqrf, ormqr).
//
//   A = [A1 A2], A1 m x m:   A1 = Q R1,   R = [R1 Q'A2]
//
//   clear_codes      the magnitude codes                                  64 matrices a group
//   take_leading     A1, and the magnitude code of A                      LOOK_ENTRIES of A
//   another variant  A1 = Q R1                                            (leading.cpp)
//   store_leading    R1 in its columns of R                               LOOK_ENTRIES of R1
//   multiply_rest    Q'A2 in its columns of R                             ROWS x 64 entries of R
//
// Q is square, so that the norm of A2 - Q (Q'A2) is at most ||I - Q'Q|| ||A2||, whatever A1 is: the
// rest of a matrix of deficient rank has its R too. A matrix that is not finite gets NaN in Q, R.
// A has fewer than 2^31 entries.
//
// Defines, set in leading.cpp    range      meaning
//   STORED, REAL, SUB_GROUP_BODY            common.clh
//   ROWS                         16, 32, 64 rows of R that a group computes
// Local memory: SLAB (ROWS + COLS) REAL in multiply_rest.
#include "gpu/common/common.clh"

#ifndef ROWS
#define ROWS 64
#endif
#define COLS 64
#define SLAB 16  // terms in local memory at a time
// A work-item has OWN_ROWS x 8 entries of a tile. Its rows and columns are pieces of at most 16
// adjacent bytes, each of which it loads at once.
#define SIDE_ITEMS 8
#define OWN_ROWS (ROWS / SIDE_ITEMS)
#define OWN_COLS (COLS / SIDE_ITEMS)
#define PIECE(own) ((own) * sizeof(REAL) < 16 ? (own) : (int)(16 / sizeof(REAL)))
#define PLACE_OF(own, i, item) \
  (((i) / PIECE(own) * SIDE_ITEMS + (item)) * PIECE(own) + (i) % PIECE(own))
#define GROUP 64
#define LOOK_GROUP 256
#define LOOK_ENTRIES 4096

#define GROUP_OF(size) __attribute__((reqd_work_group_size(size, 1, 1)))

__kernel GROUP_OF(GROUP) void clear_codes(__global int* codes, FactorShape shape) {
  const int matrix = get_global_id(0);
  if (matrix < shape.count) codes[matrix] = MAGNITUDE_ZERO;
}

// The maximum of integers does not depend on the order of the groups.
__kernel GROUP_OF(LOOK_GROUP) void take_leading(__global const STORED* a, __global STORED* leading,
                                                __global int* codes, FactorShape shape) {
  __local int code;
  if (get_local_id(0) == 0) code = MAGNITUDE_ZERO;
  barrier(CLK_LOCAL_MEM_FENCE);
  const index_t entries = shape.m * (index_t)shape.n;
  const index_t parts = (entries + LOOK_ENTRIES - 1) / LOOK_ENTRIES;
  const index_t matrix = get_group_id(0) / parts;
  const index_t first = get_group_id(0) % parts * LOOK_ENTRIES;
  a += matrix * entries;
  leading += matrix * shape.m * shape.m;
  STORED largest = 0;
  int is_finite_here = 1;
  const int end = (int)min((index_t)LOOK_ENTRIES, entries - first);
  for (int i = get_local_id(0); i < end; i += LOOK_GROUP) {
    const STORED x = a[first + i];
    largest = fmax(largest, fabs(x));
    is_finite_here &= isfinite(x);
    const uint at = (uint)(first + i), row = at / (uint)shape.n, col = at % (uint)shape.n;
    if (col < (uint)shape.m) leading[row * (uint)shape.m + col] = x;
  }
  atomic_max(&code, magnitude_code(largest, is_finite_here));
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) == 0) atomic_max(codes + matrix, code);
}

__kernel GROUP_OF(LOOK_GROUP) void store_leading(__global const STORED* leading, __global STORED* q,
                                                 __global STORED* r, __global const int* codes,
                                                 FactorShape shape) {
  const index_t entries = shape.m * (index_t)shape.m;
  const index_t parts = (entries + LOOK_ENTRIES - 1) / LOOK_ENTRIES;
  const index_t matrix = get_group_id(0) / parts;
  const index_t first = get_group_id(0) % parts * LOOK_ENTRIES;
  const bool is_finite = codes[matrix] != MAGNITUDE_NON_FINITE;
  leading += matrix * entries;
  q += matrix * entries;
  r += matrix * shape.m * shape.n;
  const int end = (int)min((index_t)LOOK_ENTRIES, entries - first);
  for (int i = get_local_id(0); i < end; i += LOOK_GROUP) {
    const uint at = (uint)(first + i), row = at / (uint)shape.m, col = at % (uint)shape.m;
    r[row * (index_t)shape.n + col] = is_finite ? leading[first + i] : (STORED)NAN;
    if (!is_finite) q[first + i] = NAN;
  }
}

// Entries of Q' and A2 with terms first .. first + SLAB - 1, or zeros.
INLINE void copy_padded_terms(__local REAL* to, __global const STORED* from, int ld, int first,
                              int last, int left, int right, const int width) {
#pragma unroll
  for (int u = 0; u < SLAB * width / GROUP; ++u) {
    const int i = u * GROUP + (int)get_local_id(0);
    const int term = first + i / width, col = left + i % width;
    const bool exists = term < last && col < right;
    to[i] = exists ? (REAL)from[term * (index_t)ld + col] : (REAL)0;
  }
}

__kernel GROUP_OF(GROUP) void multiply_rest(__global const STORED* a, __global const STORED* q,
                                            __global STORED* r, __global const int* codes,
                                            FactorShape shape) {
  __local REAL left[SLAB * ROWS] __attribute__((aligned(16)));
  __local REAL right[SLAB * COLS] __attribute__((aligned(16)));
  const int m = shape.m, n = shape.n, item = get_local_id(0);
  const int row_tiles = (m + ROWS - 1) / ROWS, col_tiles = (n - m + COLS - 1) / COLS;
  const int tile = get_group_id(0) % (row_tiles * col_tiles);
  const index_t matrix = get_group_id(0) / (row_tiles * col_tiles);
  const int row0 = tile % row_tiles * ROWS, col0 = m + tile / row_tiles * COLS;
  const bool is_finite = codes[matrix] != MAGNITUDE_NON_FINITE;
  a += matrix * m * n;
  q += matrix * m * m;
  r += matrix * m * n;
  const int down = item / SIDE_ITEMS, across = item % SIDE_ITEMS;
  REAL sum[OWN_ROWS][OWN_COLS];
#pragma unroll
  for (int i = 0; i < OWN_ROWS; ++i) {
#pragma unroll
    for (int j = 0; j < OWN_COLS; ++j) sum[i][j] = 0;
  }
#pragma unroll 1
  for (int first = 0; first < m; first += SLAB) {
    barrier(CLK_LOCAL_MEM_FENCE);
    copy_padded_terms(left, q, m, first, m, row0, m, ROWS);
    copy_padded_terms(right, a, n, first, m, col0, n, COLS);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 4
    for (int term = 0; term < SLAB; ++term) {
      REAL x[OWN_ROWS], y[OWN_COLS];
#pragma unroll
      for (int i = 0; i < OWN_ROWS; ++i) x[i] = left[term * ROWS + PLACE_OF(OWN_ROWS, i, down)];
#pragma unroll
      for (int j = 0; j < OWN_COLS; ++j) y[j] = right[term * COLS + PLACE_OF(OWN_COLS, j, across)];
#pragma unroll
      for (int i = 0; i < OWN_ROWS; ++i) {
#pragma unroll
        for (int j = 0; j < OWN_COLS; ++j) sum[i][j] = fma(x[i], y[j], sum[i][j]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < OWN_ROWS; ++i) {
    const int row = row0 + PLACE_OF(OWN_ROWS, i, down);
#pragma unroll
    for (int j = 0; j < OWN_COLS; ++j) {
      const int col = col0 + PLACE_OF(OWN_COLS, j, across);
      if (row < m && col < n) {
        r[row * (index_t)n + col] = is_finite ? (STORED)sum[i][j] : (STORED)NAN;
      }
    }
  }
}
