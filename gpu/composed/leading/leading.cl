// SPDX-License-Identifier: Apache-2.0
// leading.cl: QR of wide matrices by their leading square block (LAPACK geqrf, ormqr).
//
//   A = [A1 A2], A1 m x m:   A1 = Q R1,   R = [R1 Q'A2]
//
//   take_leading     A1                                                 LOOK_ENTRIES of all A1
//   another variant  A1 = Q R1                                          (leading.cpp)
//   multiply_strips  Q'A2 in its columns of R, and the magnitude of A   a strip of columns of R
//   or multiply_tiles                                                   a tile of R
//   store_leading    R1 in its columns of R                             LOOK_ENTRIES of all R1
//
// Matrices with few rows are multiplied by strips: a work-item has all ITEM_ROWS = m entries of a
// few adjacent columns of R. Adjacent work-items have adjacent strips, of one matrix or of several;
// so they load the same entries of Q and adjacent ones of A2, and share nothing.
//
// The others are multiplied by tiles of 8 ITEM_ROWS x TILE_SIDE: stages of STAGE_TERMS terms of Q
// and A2 are copied to local memory, one of them during the products with the other. A work-item
// has ITEM_ROWS x 8 sums. float64 is multiplied by matrix units where there are such.
//
// Q is square, so that the norm of A2 - Q (Q'A2) is at most ||I - Q'Q|| ||A2||, whatever A1 is: the
// rest of a matrix of deficient rank has its R too. A matrix that is not finite gets NaN in Q, R.
// A has fewer than 2^31 entries.
//
// The magnitude of A is the maximum of those of A1 and of all parts of A2. The maximum of integers
// does not depend on the order of the groups.
//
// Defines, set in leading.cpp    range      meaning
//   STORED, REAL, SUB_GROUP_BODY            common.clh
//   MMA                          0, 1       nvidia.clh
//   STRIPS                       0, 1       1: multiply_strips, 0: multiply_tiles
//   ITEM_ROWS                    1..16      rows of R of a work-item; with STRIPS those of A
//   PIECE                        1, 2, 4    adjacent entries that are loaded at once: divides m, n
// Local memory: STRIP_GROUP int with STRIPS, otherwise an int and two stages of 2 STAGE_TERMS
// TERM_LD REAL.
#include "gpu/common/copy.clh"

#ifndef STRIPS
#define STRIPS 0
#endif
#ifndef ITEM_ROWS
#define ITEM_ROWS 8
#endif
#ifndef PIECE
#define PIECE 1
#endif
#define STRIP_COLUMNS ((int)(16 / sizeof(STORED)))  // columns of a strip
#define STRIP_TERMS 4    // rows of a strip that are loaded ahead of their products
#define STRIP_GROUP 128
#define ITEMS_ACROSS 8   // work-items down and across a tile
#define TILE_SIDE (ITEMS_ACROSS * ITEMS_ACROSS)  // its columns, and places for its rows
#define STAGE_TERMS 16   // terms of a stage
#define TILE_GROUP TILE_SIDE
#define LOOK_GROUP 256
#define LOOK_ENTRIES 2048

#if PIECE > 1
typedef JOIN(STORED, PIECE) Piece;
#else
typedef STORED Piece;
#endif
typedef union {
  Piece whole;
  STORED entries[PIECE];
} Pieces;

// Goes over the entries i of this group, out of the square blocks of all matrices.
#define FOR_SQUARE_ENTRIES(i, square)                                                       \
  const index_t start = get_group_id(0) * (index_t)LOOK_ENTRIES;                            \
  const index_t first_matrix = start / (square);                                            \
  const uint skipped = (uint)(start - first_matrix * (square));                             \
  const int end = (int)min((index_t)LOOK_ENTRIES, shape.count * (index_t)(square) - start); \
  for (int i = get_local_id(0); i < end; i += LOOK_GROUP)

__kernel GROUP_OF(LOOK_GROUP) void take_leading(__global const STORED* a, __global STORED* leading,
                                                __global int* codes, FactorShape shape) {
  const uint m = shape.m, square = m * m;
  FOR_SQUARE_ENTRIES(i, square) {
    const uint at = skipped + i, later = at / square, entry = at - later * square, row = entry / m;
    const index_t matrix = first_matrix + later;
    if (entry == 0) codes[matrix] = MAGNITUDE_ZERO;
    leading[start + i] = a[(matrix * m + row) * shape.n + (entry - row * m)];
  }
}

__kernel GROUP_OF(LOOK_GROUP) void store_leading(__global const STORED* leading, __global STORED* q,
                                                 __global STORED* r,
                                                 __global const int* codes, FactorShape shape) {
  const uint m = shape.m, square = m * m;
  FOR_SQUARE_ENTRIES(i, square) {
    const uint at = skipped + i, later = at / square, entry = at - later * square, row = entry / m;
    const index_t matrix = first_matrix + later;
    __global STORED* to = r + (matrix * m + row) * shape.n;
    int col = entry - row * m;
    to[col] = leading[start + i];
    if (codes[matrix] == MAGNITUDE_NON_FINITE) {
      q[start + i] = NAN;
      for (; col < shape.n; col += m) to[col] = NAN;
    }
  }
}

// The magnitude code of the entries that a work-item has seen.
typedef struct {
  STORED largest, nan_if_not_finite;
} Seen;
INLINE void see(Seen* seen, STORED x) {
  seen->largest = fmax(seen->largest, fabs(x));
  seen->nan_if_not_finite = fma(x, (STORED)0, seen->nan_if_not_finite);
}
INLINE int code_of(const Seen* seen) {
  return magnitude_code(seen->largest, seen->nan_if_not_finite == 0);
}

// to := PIECE entries.
INLINE void store_piece(__global STORED* to, const REAL entries[PIECE], bool exists) {
  Pieces x;
#pragma unroll
  for (int e = 0; e < PIECE; ++e) x.entries[e] = (STORED)entries[e];
  if (exists) *(__global Piece*)to = x.whole;
}

#if STRIPS
// to[t] := the `left` first of STRIP_COLUMNS entries of row first + t, or zeros.
INLINE void load_terms(STORED to[STRIP_TERMS][STRIP_COLUMNS], __global const STORED* from, int ld,
                       int rows, int left) {
#pragma unroll
  for (int t = 0; t < STRIP_TERMS; ++t) {
#pragma unroll
    for (int c = 0; c < STRIP_COLUMNS; c += PIECE) {
      Pieces x;
      x.whole = 0;
      if (t < rows && c < left) x.whole = *(__global const Piece*)(from + t * (index_t)ld + c);
#pragma unroll
      for (int e = 0; e < PIECE; ++e) to[t][c + e] = x.entries[e];
    }
  }
}

// sum := Q' y for the strip y of A2 that begins at `a`.
INLINE void multiply_strip(REAL sum[ITEM_ROWS][STRIP_COLUMNS], __global const STORED* a,
                           __global const STORED* q, int n, int left, Seen* seen) {
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; ++i) {
#pragma unroll
    for (int c = 0; c < STRIP_COLUMNS; ++c) sum[i][c] = 0;
  }
  STORED ahead[STRIP_TERMS][STRIP_COLUMNS];
  load_terms(ahead, a, n, ITEM_ROWS, left);
#pragma unroll 1
  for (int first = 0; first < ITEM_ROWS; first += STRIP_TERMS) {
    STORED y[STRIP_TERMS][STRIP_COLUMNS];
#pragma unroll
    for (int t = 0; t < STRIP_TERMS; ++t) {
#pragma unroll
      for (int c = 0; c < STRIP_COLUMNS; ++c) y[t][c] = ahead[t][c];
    }
    a += STRIP_TERMS * (index_t)n;
    load_terms(ahead, a, n, ITEM_ROWS - first - STRIP_TERMS, left);
#pragma unroll
    for (int t = 0; t < STRIP_TERMS; ++t) {
      // Past the last term, y is zero.
      __global const STORED* from = q + min(first + t, ITEM_ROWS - 1) * ITEM_ROWS;
      REAL x[ITEM_ROWS];
#pragma unroll
      for (int i = 0; i < ITEM_ROWS; i += PIECE) {
        Pieces piece;
        piece.whole = *(__global const Piece*)(from + i);
#pragma unroll
        for (int e = 0; e < PIECE; ++e) x[i + e] = piece.entries[e];
      }
#pragma unroll
      for (int c = 0; c < STRIP_COLUMNS; ++c) {
        see(seen, y[t][c]);
#pragma unroll
        for (int i = 0; i < ITEM_ROWS; ++i) sum[i][c] = fma(x[i], (REAL)y[t][c], sum[i][c]);
      }
    }
  }
}

__kernel GROUP_OF(STRIP_GROUP) void multiply_strips(__global const STORED* a,
                                                    __global const STORED* q, __global STORED* r,
                                                    __global int* codes,
                                                    __global const int* leading_codes,
                                                    FactorShape shape) {
  __local int group_codes[STRIP_GROUP];  // of the matrices of the group
  const int n = shape.n, item = get_local_id(0);
  const int strips = (n - ITEM_ROWS + STRIP_COLUMNS - 1) / STRIP_COLUMNS;
  const index_t first = get_group_id(0) * (index_t)STRIP_GROUP, first_matrix = first / strips;
  const int skipped = (int)(first - first_matrix * strips) + item, later = skipped / strips;
  const index_t matrix = first_matrix + later;
  const bool exists = matrix < shape.count;
  group_codes[item] = MAGNITUDE_ZERO;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (exists) {
    const int col0 = ITEM_ROWS + (skipped - later * strips) * STRIP_COLUMNS, left = n - col0;
    REAL sum[ITEM_ROWS][STRIP_COLUMNS];
    Seen seen = {0, 0};
    multiply_strip(sum, a + matrix * ITEM_ROWS * n + col0, q + matrix * ITEM_ROWS * ITEM_ROWS, n,
                   left, &seen);
    atomic_max(group_codes + later, max(code_of(&seen), leading_codes[matrix]));
    r += matrix * ITEM_ROWS * n + col0;
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; ++i) {
#pragma unroll
      for (int c = 0; c < STRIP_COLUMNS; c += PIECE) {
        store_piece(r + i * (index_t)n + c, sum[i] + c, c < left);
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int code = group_codes[item];
  if (code != MAGNITUDE_ZERO) atomic_max(codes + first_matrix + item, code);
}

#else

// With UNITS the matrix units multiply: warp w has the columns 32 w .. of the tile, by blocks of
// 16 x 8. Otherwise a work-item has ITEM_ROWS rows and pieces of 16 adjacent bytes of columns,
// ITEMS_ACROSS pieces apart; the rows are the first ITEM_ROWS of ITEMS_ACROSS places in local
// memory.
#define UNITS_FOR_float 0
#define UNITS_FOR_double MMA
#define UNITS JOIN(UNITS_FOR_, REAL)
#if UNITS
#define ROW_AT(place) ((place) < ITEMS_ACROSS * ITEM_ROWS ? (place) : shape.m)
#define TERM_LD \
  (TILE_SIDE + 4)  // with it, the entries that half a warp reads are in different banks
#else
#define ROW_AT(place)                                                \
  ((place) % ITEMS_ACROSS < ITEM_ROWS                                \
       ? (place) / ITEMS_ACROSS * ITEM_ROWS + (place) % ITEMS_ACROSS \
       : shape.m)
#define TERM_LD TILE_SIDE
#endif
#define OWN_COLS (TILE_SIDE / ITEMS_ACROSS)
#define TERM_STAGE (2 * STAGE_TERMS * TERM_LD)
#define RIGHT (STAGE_TERMS * TERM_LD)  // the place of A2 in a stage
// Adjacent rows that are copied at once.
#define ROW_PIECE (ITEM_ROWS % PIECE == 0 ? PIECE : ITEM_ROWS % 2 == 0 && PIECE > 1 ? 2 : 1)

INLINE void copy_piece(__local REAL* to, __global const STORED* from, bool exists,
                       const int width) {
#if MMA
  copy_bytes(to, from, exists, width * (int)sizeof(STORED));
#else
  for (int e = 0; e < width; ++e) to[e] = exists ? (REAL)from[e] : (REAL)0;
#endif
}

// Copies this work-item's entries of the terms of a stage, `width` entries of every width-th term,
// or zeros. from: its first entries; terms: how many exist from there on.
INLINE void copy_own_terms(__local REAL* to, __global const STORED* from, int ld, int terms,
                       bool exists, const int width) {
#pragma unroll
  for (int term = 0; term < STAGE_TERMS; term += width) {
    copy_piece(to + term * TERM_LD, from, exists && term < terms, width);
    from += width * ld;
  }
}

// Copies the terms from `first` on. q, a: the tile's first row of Q' and column of A2; rows, cols:
// how many exist from there on.
INLINE void fetch_terms(__local REAL* stage, __global const STORED* q, __global const STORED* a,
                        int first, FactorShape shape, int rows, int cols) {
  const int item = get_local_id(0);
  const int place = item % (TILE_SIDE / ROW_PIECE) * ROW_PIECE;
  const int of_row = item / (TILE_SIDE / ROW_PIECE), row = ROW_AT(place);
  copy_own_terms(stage + of_row * TERM_LD + place, q + (first + of_row) * (index_t)shape.m + row,
                 shape.m, shape.m - first - of_row, row < rows, ROW_PIECE);
  const int col = item % (TILE_SIDE / PIECE) * PIECE, of_col = item / (TILE_SIDE / PIECE);
  copy_own_terms(stage + RIGHT + of_col * TERM_LD + col,
                 a + (first + of_col) * (index_t)shape.n + col, shape.n, shape.m - first - of_col,
                 col < cols, PIECE);
  commit_copies();
}

typedef REAL ItemSums[ITEM_ROWS][OWN_COLS];

#if UNITS
// sums[2 b + h][2 j + e] is entry (16 b + 8 h + g, 8 j + 2 t + e) of the warp's part; lane 4 g + t.
INLINE void multiply_slab(ItemSums sums, __local const REAL* stage) {
  const int item = get_local_id(0), g = item % 32 / 4, t = item % 4;
  stage += t * TERM_LD + g;
#pragma unroll
  for (int term = 0; term < STAGE_TERMS; term += 4) {
    REAL x[ITEM_ROWS], y[4];
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; ++i) x[i] = stage[term * TERM_LD + 8 * i];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = stage[RIGHT + term * TERM_LD + item / 32 * 32 + 8 * j];
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; i += 2) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        mma_quad(&sums[i][2 * j], &sums[i][2 * j + 1], &sums[i + 1][2 * j], &sums[i + 1][2 * j + 1],
                 x[i], x[i + 1], y[j]);
      }
    }
  }
}
INLINE void store_tile(const ItemSums sums, __global STORED* r, int n, int rows, int cols) {
  const int item = get_local_id(0), g = item % 32 / 4, col0 = item / 32 * 32 + item % 4 * 2;
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 2; e += PIECE) {
        const int row = 8 * i + g, col = col0 + 8 * j + e;
        store_piece(r + row * (index_t)n + col, sums[i] + 2 * j + e, row < rows && col < cols);
      }
    }
  }
}
#else
#define WORD_OF_float 4
#define WORD_OF_double 2
#define WORD JOIN(WORD_OF_, REAL)
typedef JOIN(REAL, WORD) Word;

INLINE void load_places(REAL x[ITEMS_ACROSS], __local const REAL* from, const int words,
                        const int stride) {
#pragma unroll
  for (int i = 0; i < words; ++i) {
    const Word word = *(__local const Word*)(from + i * stride);
    x[WORD * i] = word.x;
    x[WORD * i + 1] = word.y;
#if WORD > 2
    x[WORD * i + 2] = word.z;
    x[WORD * i + 3] = word.w;
#endif
  }
}

INLINE void multiply_slab(ItemSums sums, __local const REAL* stage) {
  const int down = get_local_id(0) / ITEMS_ACROSS, across = get_local_id(0) % ITEMS_ACROSS;
#pragma unroll 4
  for (int term = 0; term < STAGE_TERMS; ++term) {
    REAL x[ITEMS_ACROSS], y[OWN_COLS];
    load_places(x, stage + term * TERM_LD + down * ITEMS_ACROSS, (ITEM_ROWS + WORD - 1) / WORD,
                WORD);
    load_places(y, stage + RIGHT + term * TERM_LD + across * WORD, OWN_COLS / WORD,
                ITEMS_ACROSS * WORD);
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; ++i) {
#pragma unroll
      for (int c = 0; c < OWN_COLS; ++c) sums[i][c] = fma(x[i], y[c], sums[i][c]);
    }
  }
}
INLINE void store_tile(const ItemSums sums, __global STORED* r, int n, int rows, int cols) {
  const int down = get_local_id(0) / ITEMS_ACROSS, across = get_local_id(0) % ITEMS_ACROSS;
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; ++i) {
    const int row = down * ITEM_ROWS + i;
#pragma unroll
    for (int c = 0; c < OWN_COLS; c += PIECE) {
      const int col = (c / WORD * ITEMS_ACROSS + across) * WORD + c % WORD;
      store_piece(r + row * (index_t)n + col, sums[i] + c, row < rows && col < cols);
    }
  }
}
#endif

__kernel GROUP_OF(TILE_GROUP) void multiply_tiles(__global const STORED* a,
                                                  __global const STORED* q, __global STORED* r,
                                                  __global int* codes,
                                                  __global const int* leading_codes,
                                                  FactorShape shape) {
  __local REAL stages[2 * TERM_STAGE] __attribute__((aligned(16)));
  __local int code;
  const int m = shape.m, n = shape.n, item = get_local_id(0);
  const int row_tiles = (m + ITEMS_ACROSS * ITEM_ROWS - 1) / (ITEMS_ACROSS * ITEM_ROWS);
  const int col_tiles = (n - m + TILE_SIDE - 1) / TILE_SIDE;
  index_t matrix;
  const int tile = split_group(row_tiles * (index_t)col_tiles, &matrix), j = tile / row_tiles;
  const int row0 = (tile - j * row_tiles) * ITEMS_ACROSS * ITEM_ROWS, col0 = m + j * TILE_SIDE;
  a += matrix * m * n + col0;
  q += matrix * m * m + row0;
  r += (matrix * m + row0) * n + col0;
  if (item == 0) code = MAGNITUDE_ZERO;
  ItemSums sums;
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; ++i) {
#pragma unroll
    for (int c = 0; c < OWN_COLS; ++c) sums[i][c] = 0;
  }
  Seen seen = {0, 0};
  fetch_terms(stages, q, a, 0, shape, m - row0, n - col0);
#pragma unroll 1
  for (int first = 0, turn = 0; first < m; first += STAGE_TERMS, turn ^= 1) {
    __local const REAL* stage = stages + turn * TERM_STAGE;
    wait_for_copies();
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first + STAGE_TERMS < m) {
      fetch_terms(stages + (turn ^ 1) * TERM_STAGE, q, a, first + STAGE_TERMS, shape, m - row0,
                  n - col0);
    }
    if (row0 == 0) {
#pragma unroll
      for (int i = 0; i < STAGE_TERMS; ++i) see(&seen, (STORED)stage[RIGHT + i * TERM_LD + item]);
    }
    multiply_slab(sums, stage);
  }
  atomic_max(&code, code_of(&seen));
  store_tile(sums, r, n, m - row0, n - col0);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item == 0) atomic_max(codes + matrix, max(code, leading_codes[matrix]));
}
#endif
