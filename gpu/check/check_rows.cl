// SPDX-License-Identifier: Apache-2.0
// check_rows.cl: the errors of check.cl for float32 matrices of at most 64 columns, in one pass
// over A, Q and R, on NVIDIA's float64 matrix units.
//
//   measure_rows    everything, if a matrix is one slab of rows              matrix x slab
//   combine_gram    as in check.cl, for several slabs                        matrix x 16 entries
//   finish_errors   as in check.cl                                           matrix
//
//   R is in local memory with zeros below its diagonal, together with CHECK_ROWS rows of Q:
//
//             16 BLOCKS                  residual  A - QR   32 work-items (a warp) have 16 rows;
//           +----------+   +----------+                     their sums begin with -A, and skip the
//           | warp 0   |   | R        |                     zeros below R's diagonal
//           | warp 1   | x |          |  gram      X'X      blocks of 16 x 16 on and above the
//           | ..       |   +----------+                     diagonal; the warps share them and keep
//           +----------+                                    their sums for the next rows
//
//   For R alone X = A, ||A||^2 is the trace of A'A, and R'R is subtracted at the end. The sums are
//   plain sums and are scaled at the end (check_units.clh gives the reason).
//
// Defines, set in device_check.cpp   range          meaning
//   STORED, FACTOR                   float          check.clh
//   ELEMENT_PARTS                    1, 2           check.clh; complex matrices are measured as
//                                                   check.cl says
//   SUB_GROUP_BODY, MMA              1              common.clh, mma.clh
//   VECTOR                           1, 2, 4        copy.clh; divides the rows of A, Q and R; 2 or
//                                                   4 with ELEMENT_PARTS 2
//   BLOCKS                           1 .. 4         blocks of 16 columns; of A and of Q
//   CHECK_WARPS                      1, 2, 4        4 if there are more than two blocks
//   HAS_Q                            0, 1           0: R alone
// Work-group: 32 CHECK_WARPS. Local memory: at most 37 KB.
#ifndef BLOCKS
#define BLOCKS 4
#endif
#ifndef CHECK_WARPS
#define CHECK_WARPS 4
#endif
#ifndef HAS_Q
#define HAS_Q 1
#endif

#include "gpu/check/check_finish.clh"
#include "gpu/common/copy.clh"
#include "gpu/common/mma.clh"

#define CHECK_ROWS (16 * CHECK_WARPS)
// Rows in local memory are so far apart that products read from different banks, in pairs along a
// row of X.
#define CHECK_X_LD (PADDED_COLUMNS + 8)
#define R_LD (PADDED_COLUMNS + 4)
// The rows in local memory for a row of R, which is embedded if there is a Q.
#define ROWS_OF_ROW (HAS_Q ? ELEMENT_PARTS : 1)

// The blocks of X'X that a warp sums, one digit per warp: blocks (o0, o1), (o2, o1), (o0, o0), or
// fewer.
#if BLOCKS == 4
#define OPERANDS 0x0020, 0x3231, 0x1131
#define OWN_OF_WARP 0x2233
#define OWN_SUMS 3
#elif BLOCKS == 3
#define OPERANDS 0x0200, 0x0221, 0x0011
#define OWN_OF_WARP 0x1122
#define OWN_SUMS 2
#elif BLOCKS == 2 && CHECK_WARPS == 4
#define OPERANDS 0x0010, 0x0110, 0
#define OWN_OF_WARP 0x0111
#define OWN_SUMS 1
#elif BLOCKS == 2 && CHECK_WARPS == 2
#define OPERANDS 0, 0x01, 0x01
#define OWN_OF_WARP 0x12
#define OWN_SUMS 2
#elif BLOCKS == 2
#define OPERANDS 0, 1, 1
#define OWN_OF_WARP 3
#define OWN_SUMS 3
#else
#define OPERANDS 0, 0, 0
#define OWN_OF_WARP 1
#define OWN_SUMS 1
#endif

// Says which block columns the blocks of a warp are in, and how many blocks it has.
typedef struct {
  int operands[3], own;
} Share;
INLINE Share share_of(int warp) {
  const uint digits[3] = {OPERANDS};
  Share share;
#pragma unroll
  for (int o = 0; o < 3; ++o) share.operands[o] = digits[o] >> 4 * warp & 15;
  share.own = OWN_OF_WARP >> 4 * warp & 15;
  return share;
}
INLINE int row_of_own(const Share* share, const int s) { return share->operands[s == 1 ? 2 : 0]; }
INLINE int col_of_own(const Share* share, const int s) { return share->operands[s == 2 ? 0 : 1]; }

// Starts the copies of `rows` rows of a matrix of n columns, each of which is copied to `times`
// rows; rows that do not exist become zeros.
INLINE void copy_rows(__local float* to, const int ld, __global const float* from, int n,
                      int rows_left, const int rows, const int times) {
#pragma unroll 4
  for (int i = (int)get_local_id(0) * VECTOR; i < rows * PADDED_COLUMNS;
       i += CHECK_GROUP * VECTOR) {
    const int row = i / PADDED_COLUMNS, col = i % PADDED_COLUMNS;
    const bool exists = row < times * rows_left && col < n;
    copy_bytes(to + row * ld + col, from + (exists ? row / times * n + col : 0), exists,
               VECTOR * sizeof(float));
  }
}

// The type of |r_kk|: float32 does not hold that of every complex number.
#if ELEMENT_PARTS == 2
typedef double DiagonalSize;
#define shuffle_size shuffle_xor
#else
typedef float DiagonalSize;
#define shuffle_size shuffle_xor_float
#endif

// What is measured of R itself, before it is scaled.
typedef struct {
  double lower;
  DiagonalSize smallest, largest;
  int is_finite;
} SeenOfR;

// Measures the elements of R that the work-item has copied, and makes them zero below the diagonal.
// The second rows of an embedded R get their entries.
INLINE SeenOfR prepare_r(__local float* r, int diagonal) {
  SeenOfR s = {0, INFINITY, 0, 1};
  const Scaling none = {1, 1};
#pragma unroll 2
  for (int i = (int)get_local_id(0) * VECTOR; i < PADDED_COLUMNS * PADDED_COLUMNS;
       i += CHECK_GROUP * VECTOR) {
    const int place = i / PADDED_COLUMNS, row = place / ROWS_OF_ROW;
    const bool is_second = place % ROWS_OF_ROW == 1;
#pragma unroll
    for (int e = 0; e < VECTOR; e += ELEMENT_PARTS) {
      const int first = i % PADDED_COLUMNS + e, col = first / ELEMENT_PARTS;
      __local Element* at = (__local Element*)(r + place * R_LD + first);
      const Element x = *at;
      if (row > col && is_not_zero(x)) {
        const double size = size_of(x, none);
        if (!is_second) s.lower = fma(size, size, s.lower);
        *at = 0;
      }
      if (row <= col && !is_finite(x)) s.is_finite = 0;
      if (row == col && row < diagonal) {
        const DiagonalSize size = (DiagonalSize)size_of(x, none);
        s.smallest = fmin(s.smallest, size);
        s.largest = fmax(s.largest, size);
      }
#if ELEMENT_PARTS == 2
      if (is_second && row <= col) *at = (Element)(-x.y, x.x);
#endif
    }
  }
  return s;
}
INLINE SeenOfR both_seen(SeenOfR x, SeenOfR y) {
  const SeenOfR s = {x.lower + y.lower, fmin(x.smallest, y.smallest), fmax(x.largest, y.largest),
                  x.is_finite & y.is_finite};
  return s;
}
// Combines the measurements of a warp; all of its work-items call it.
INLINE SeenOfR seen_by_warp(SeenOfR s) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const SeenOfR other = {shuffle_xor(s.lower, offset), shuffle_size(s.smallest, offset),
                        shuffle_size(s.largest, offset),
                        shuffle_xor_word(s.is_finite, offset)};
    s = both_seen(s, other);
  }
  return s;
}

// The part that a work-item holds of eight terms of 16 rows or columns.
typedef Quarter EightTerms[2];
INLINE void add_eight_terms(Block c, const EightTerms x, const EightTerms y) {
#pragma unroll
  for (int i = 0; i < 2; ++i) add_quarter(c, x[i], y[i]);
}
// Loads 16 columns of 8 rows of X or of R, or 16 rows of X. `from`: their first entry. The terms of
// a work-item are t and t + 4 for X'X, and 2 t and 2 t + 1 for products with R.
INLINE void get_columns(const Warp* at, EightTerms x, __local const float* from) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
      x[i][h] = (double)from[(at->t + 4 * i) * CHECK_X_LD + at->g + 8 * h];
  }
}
INLINE void get_r_columns(const Warp* at, EightTerms x, __local const float* from) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) x[i][h] = (double)from[(2 * at->t + i) * R_LD + at->g + 8 * h];
  }
}
INLINE void get_rows(const Warp* at, EightTerms x, __local const float* from) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float2 pair = *(__local const float2*)(from + (at->g + 8 * h) * CHECK_X_LD + 2 * at->t);
    x[0][h] = (double)pair.x;
    x[1][h] = (double)pair.y;
  }
}

// own += X'X of 8 rows.
INLINE void add_rows_to_gram(const Warp* at, Block own[OWN_SUMS], const Share* share,
                             __local const float* x) {
  EightTerms left, right;
  sync_warp();  // here and below: the compiler cannot load everything before it multiplies
  get_columns(at, left, x + 16 * share->operands[0]);
  get_columns(at, right, x + 16 * share->operands[1]);
  add_eight_terms(own[0], left, right);
#if OWN_SUMS > 2
  if (share->own > 2) add_eight_terms(own[2], left, left);
#endif
#if OWN_SUMS > 1
  if (share->own > 1) {
    get_columns(at, left, x + 16 * share->operands[2]);
    add_eight_terms(own[1], left, right);
  }
#endif
}

// own -= R'R.
INLINE void subtract_r_gram(const Warp* at, Block own[OWN_SUMS], const Share* share,
                            __local const float* r) {
#pragma unroll
  for (int s = 0; s < OWN_SUMS; ++s) {
    flip_block(own[s]);
    const int row = 16 * row_of_own(share, s), col = 16 * col_of_own(share, s);
    const int depth = s < share->own ? (row + 16) / ELEMENT_PARTS : 0;
#pragma unroll 2
    for (int k = 0; k < depth; k += 8) {
      EightTerms left, right;
      get_r_columns(at, left, r + k * R_LD + row);
      get_r_columns(at, right, r + k * R_LD + col);
      add_eight_terms(own[s], left, right);
    }
    flip_block(own[s]);
  }
}

// x := -A (16 x 16), with zeros for entries that do not exist.
INLINE void load_negative(const Warp* at, Block x, __global const float* a, int n, int rows_left,
                          int cols_left) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; w += 4) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = BLOCK_ROW(w + h, at->g), col = BLOCK_COL(w, at->t);
      __global const float* from = a + row * n + col;
      float2 y = 0;
#if VECTOR > 1
      if (row < rows_left && col < cols_left) y = *(__global const float2*)from;
#else
      if (row < rows_left && col < cols_left) y.x = from[0];
      if (row < rows_left && col + 1 < cols_left) y.y = from[1];
#endif
      x[w + h] = -(double)y.x;
      x[w + h + 2] = -(double)y.y;
    }
  }
}
INLINE double add_squares(const Block x, double sum) {
#pragma unroll
  for (int w = 0; w < BLOCK_WORDS; ++w) sum = fma(x[w], x[w], sum);
  return sum;
}

#if HAS_Q
// Adds the squares of A - QR in 16 rows. On entry `sum` is -A; q and r are in local memory.
INLINE double add_residual(const Warp* at, Block sum[BLOCKS], __local const float* q,
                           __local const float* r, double squares) {
#pragma unroll 1
  for (int k = 0; k < PADDED_COLUMNS; k += 8) {
    EightTerms left, right;
    get_rows(at, left, q + k);
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
      if (j >= k / 16) {
        sync_warp();
        get_r_columns(at, right, r + k * R_LD + 16 * j);
        add_eight_terms(sum[j], left, right);
      }
    }
  }
#pragma unroll
  for (int j = 0; j < BLOCKS; ++j) squares = add_squares(sum[j], squares);
  return squares;
}
#endif

// Sums the diagonal entries of X'X that are in the warp's blocks.
INLINE double trace_of(const Warp* at, Block own[OWN_SUMS], const Share* share) {
  double trace = 0;
#pragma unroll
  for (int s = 0; s < OWN_SUMS; ++s) {
    const bool is_diagonal = s < share->own && row_of_own(share, s) == col_of_own(share, s);
#pragma unroll
    for (int w = 0; w < BLOCK_WORDS; ++w) {
      if (is_diagonal && BLOCK_ROW(w, at->g) == BLOCK_COL(w, at->t)) trace += own[s][w];
    }
  }
  return trace;
}

INLINE double scaled_square(double x, Scaling by) { return scaled(scaled(x, by), by); }

// Returns ||.||^2 of the warp's blocks, or writes the blocks to memory if there are several slabs.
INLINE double finish_gram(const Warp* at, Block own[OWN_SUMS], const Share* share, Scaling scaling,
                          __global double* gram, CheckShape shape) {
  double squares = 0;
#pragma unroll
  for (int s = 0; s < OWN_SUMS; ++s) {
    const int row0 = 16 * row_of_own(share, s), col0 = 16 * col_of_own(share, s);
#pragma unroll
    for (int w = 0; w < BLOCK_WORDS; ++w) {
      const int row = row0 + BLOCK_ROW(w, at->g), col = col0 + BLOCK_COL(w, at->t);
      const bool exists = s < share->own && row <= col && col < shape.gram_size;
      double sum = HAS_Q ? own[s][w] : scaled_square(own[s][w], scaling);
      if (shape.gram_slabs > 1 && exists) gram[row * shape.gram_size + col] = sum;
#if ELEMENT_PARTS == 2
      // The lane with the other row of a pair has its other column in word w ^ 2.
      const double other = HAS_Q ? own[s][w ^ 2] : scaled_square(own[s][w ^ 2], scaling);
      sum = folded(sum, shuffle_xor(other, 4), col);
#endif
      if (exists && row % ELEMENT_PARTS == 0) {
        const double d = sum - (HAS_Q && row == col ? 1.0 : 0.0);
        squares += row / ELEMENT_PARTS < col / ELEMENT_PARTS ? 2 * d * d : d * d;
      }
    }
  }
  return squares;
}

// gram_slabs = 1: errors[matrix]. Otherwise partial[matrix][slab] = {||A - QR||^2, ||A||^2},
// gram[matrix][slab] = X'X of the slab, and parts[matrix].
__kernel IN_CHECK_GROUPS void measure_rows(__global const float* a, __global const float* q,
                                           __global const float* r, __global const int* magnitudes,
                                           __global double* partial, __global double* gram,
                                           __global RSummary* parts, __global DeviceErrors* errors,
                                           CheckShape shape) {
  __local float xs[CHECK_ROWS * CHECK_X_LD] __attribute__((aligned(16)));
  __local float rs[PADDED_COLUMNS * R_LD] __attribute__((aligned(16)));
  __local SeenOfR r_of_warps[CHECK_WARPS];
  __local Squares of_warps[CHECK_WARPS];
  index_t matrix;
  const int slab = split_group(shape.gram_slabs, &matrix), item = get_local_id(0);
  const int first = slab * shape.slab_rows, rows = min(shape.m - first, shape.slab_rows);
  const int warp = item / 32, columns = shape.gram_size;
  const Warp here = {item % 32, item % 32 / 4, item % 4, 0};
  const Warp* at = &here;
  // Some warps have more blocks than others. Which ones have more is different in each group.
  const Share share = share_of((warp + (int)get_group_id(0)) % CHECK_WARPS);
  a += (matrix * shape.m + first) * shape.n;
  __global const float* x = HAS_Q ? q + (matrix * shape.m + first) * columns : a;

  Block own[OWN_SUMS];
#pragma unroll
  for (int s = 0; s < OWN_SUMS; ++s) clear_block(own[s]);
  Squares squares = {0, 0, 0};
  copy_rows(rs, R_LD, r + matrix * shape.r_rows * shape.n, shape.n, shape.r_rows, PADDED_COLUMNS,
            ROWS_OF_ROW);
#pragma unroll 1
  for (int row = 0; row < rows; row += CHECK_ROWS) {
    copy_rows(xs, CHECK_X_LD, x + (index_t)row * columns, columns, rows - row, CHECK_ROWS,
              1);
#if HAS_Q
    Block sum[BLOCKS];
#pragma unroll
    for (int j = 0; j < BLOCKS; ++j) {
      load_negative(at, sum[j], a + (index_t)(row + 16 * warp) * shape.n + 16 * j, shape.n,
                    rows - row - 16 * warp, shape.n - 16 * j);
      squares.norm = add_squares(sum[j], squares.norm);
    }
#endif
    wait_for_copies();
    if (row == 0) {
      const SeenOfR s = seen_by_warp(prepare_r(rs, min(shape.r_rows, shape.n / ELEMENT_PARTS)));
      if (at->lane == 0) r_of_warps[warp] = s;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (share.own > 0) {
#pragma unroll 1
      for (int k = 0; k < CHECK_ROWS; k += 8)
        add_rows_to_gram(at, own, &share, xs + k * CHECK_X_LD);
    }
#if HAS_Q
    squares.residual = add_residual(at, sum, xs + 16 * warp * CHECK_X_LD, rs, squares.residual);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const Scaling scaling = scaling_of(magnitudes[matrix]);
  if (!HAS_Q) {
    squares.norm = trace_of(at, own, &share);
    if (slab == shape.gram_slabs - 1) subtract_r_gram(at, own, &share, rs);
  }
  gram += (matrix * shape.gram_slabs + slab) * columns * columns;
  squares.gram = finish_gram(at, own, &share, scaling, gram, shape);
  squares.residual = sum_over_lanes(squares.residual, 32);
  squares.norm = sum_over_lanes(squares.norm, 32);
  squares.gram = sum_over_lanes(squares.gram, 32);
  if (at->lane == 0) of_warps[warp] = squares;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item > 0) return;
  SeenOfR seen = r_of_warps[0];
#pragma unroll
  for (int w = 1; w < CHECK_WARPS; ++w) {
    squares.residual += of_warps[w].residual;
    squares.norm += of_warps[w].norm;
    squares.gram += of_warps[w].gram;
    seen = both_seen(seen, r_of_warps[w]);
  }
  squares.residual = scaled_square(squares.residual, scaling);
  squares.norm = scaled_square(squares.norm, scaling);
  const RSummary s = {scaled_square(seen.lower, scaling), scaled((double)seen.smallest, scaling),
                      scaled((double)seen.largest, scaling), seen.is_finite};
  if (shape.gram_slabs == 1) {
    errors[matrix] = errors_of(squares, s, magnitudes[matrix], HAS_Q);
  } else {
    partial[2 * get_group_id(0)] = squares.residual;
    partial[2 * get_group_id(0) + 1] = squares.norm;
    if (slab == 0) parts[matrix] = s;
  }
}
