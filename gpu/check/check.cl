// SPDX-License-Identifier: Apache-2.0
// check.cl: measures the errors of every matrix of a batch in float64, with the definitions of
// core/report/ratios.hpp (compare LAPACK's TESTING/LIN/dqrt01). A and R are divided by the matrix's
// power of two. A device without float64, or with a slow one, measures float32 in pairs of floats.
//
//   step                   what it does                                        group per
//   form_q_from_reflectors Q and R (wide) from V\R and tau (raw only)         matrix x 16 columns
//   measure_residual       ||A - QR||^2 and ||A||^2, tile by tile              matrix x tile
//   measure_gram           ||I - Q'Q||^2, or ||A'A - R'R||^2 for R alone       matrix x tile x slab
//   combine_gram           the same from the sums of row slabs, tall matrices  matrix x 16 entries
//   measure_r              lower part, diagonal and range of R                 matrix x rows
//   finish_errors          sums of the tiles and rows                          matrix
//
// The Gram matrix is symmetric: only tiles on and above its diagonal are measured, and those above
// count twice. All sums have a fixed order. Sums of many terms are compensated (Kahan) if the bias
// of a plain sum of equal terms would be visible. Products use R as an upper triangular matrix; the
// entries below its diagonal are measured as `lower`.
//
//        tile columns ->                          slab_rows
//      +----+----+----+        X = Q or A      +-----------+ -> X0'X0  \
//      | x2 | x2 | 1  |  tj    X'X = sum of    | X0        |            + combine_gram
//      | x2 | 1  |    |        slabs:          | X1        | -> X1'X1  /
//      | 1  |    |    |  ti                    +-----------+
//
// The sums of a tile have two bodies, check_plain.clh and check_units.clh. check_rows.cl measures
// float32 matrices of few columns in one pass.
//
// Pairs of floats (wide.clh), with v = 2^-48: 16 terms are added with an error of 168 v times the
// sum of their sizes, and then t / 16 + 64 such parts at most, in tiles, slabs and groups, with 4 v
// each. An entry of QR is off by (t / 4 + 424) v |Q||R|, and one of Q'Q by as much of |Q'||Q|.
// Since ||Q||_F^2 is k, the residual is off by sqrt(k), and the orthogonality by k times
// (t / 4 + 424) v at most, t = k and t = m: below 2^-8 of the bar up to 2^24 rows and 2^17 columns.
// Squares, roots and quotients add 2^-40 of the ratios. Errors below 2^-63 of the largest entry of
// A count as 0.
//
// Complex matrices are measured as real ones of their rows re, im, re, im, .. with twice as many
// columns, as the host does (core/measure/error_meter.cpp). In A - QR, R is embedded: an element
// has two rows, [re im; -im re]. The Gram matrix W of the columns of X then folds into the complex
// one:
//
//     re G_ij = W(re_i, re_j) + W(im_i, im_j)      im G_ij = W(re_i, im_j) - W(im_i, re_j)
//
// Defines, set in device_check.cpp   range            meaning
//   STORED                           float, double    common.clh; but Q and R have FACTOR
//   FACTOR                           STORED, double,  check.clh
//                                    wide
//   ELEMENT_PARTS                    1, 2             check.clh
//   MMA                              0, 1             nvidia.clh; 1: its float64 matrix units
//   MICRO                            1, 2, 4          MMA 0: a tile is 16 MICRO x 16 MICRO; 2 or 4
//                                                     with ELEMENT_PARTS 2
//   VECTOR                           1, 2, 4          copy.clh; MMA 1: at most 16 bytes; 2 or 4
//                                                     with ELEMENT_PARTS 2
// Work-group: 256; MMA 1 and FACTOR float: 128.
// Local memory: 512 MICRO + 256 doubles; MMA 1: at most 42 KB.
#include "gpu/check/check.clh"

#define WIDE_FACTORS_float 0
#define WIDE_FACTORS_double 1
#define WIDE_FACTORS_wide 1
#define HAS_WIDE_FACTORS JOIN(WIDE_FACTORS_, FACTOR)

// Describes adjacent rows of a matrix. R is used as upper triangular. An embedded matrix has two
// rows for each row of x: the row as it is, then the one of [-im, re].
typedef struct {
  __global const FACTOR* x;
  int rows, cols;
  bool is_upper, is_scaled, is_embedded;
  Scaling scaling;
} MatrixRows;
INLINE int stored_row(const MatrixRows* m, int row) { return m->is_embedded ? row / 2 : row; }
INLINE bool is_second_row(const MatrixRows* m, int row) { return m->is_embedded && row % 2 == 1; }
INLINE bool is_below(const MatrixRows* m, int row, int col) {
  return m->is_upper && stored_row(m, row) > col / ELEMENT_PARTS;
}

// The body that sums the products of a tile: its functions, the size of the tile, the number of a
// work-item's entries and their positions in the tile, and the entries of local memory.
#if MMA
#include "gpu/check/check_units.clh"
#define SUMS(name) JOIN(units_, name)
#define CHECK_TILE UNITS_TILE
#define CHECK_ENTRIES UNITS_ENTRIES
#define ENTRY_ROW(e) UNITS_ENTRY_ROW(e)
#define ENTRY_COL(e) UNITS_ENTRY_COL(e)
#define SPACE_ENTRIES UNITS_SPACE_ENTRIES
typedef UnitsSums TileSums;
typedef FACTOR Space;
#else
// The numbers that are multiplied.
#if !WIDE_PAIRS
typedef double Space;
#else
typedef FACTOR Space;
#endif
#include "gpu/check/check_plain.clh"
#define SUMS(name) JOIN(plain_, name)
#define CHECK_TILE PLAIN_TILE
#define CHECK_ENTRIES PLAIN_ENTRIES
#define ENTRY_ROW(e) PLAIN_ENTRY_ROW(e)
#define ENTRY_COL(e) PLAIN_ENTRY_COL(e)
#define SPACE_ENTRIES PLAIN_SPACE_ENTRIES
typedef PlainSums TileSums;
#endif
#include "gpu/check/check_finish.clh"

INLINE MatrixRows matrix_q(__global const FACTOR* q, CheckShape shape, index_t matrix) {
  const Scaling none = {1, 1};
  const MatrixRows m = {
      q + matrix * shape.m * shape.q_cols, shape.m, shape.q_cols, false, false, false, none};
  return m;
}
INLINE MatrixRows matrix_r(__global const FACTOR* r, CheckShape shape, index_t matrix, Scaling by,
                           const bool is_embedded) {
  const int rows = is_embedded ? 2 * shape.r_rows : shape.r_rows;
  const MatrixRows m = {
      r + matrix * shape.r_rows * shape.n, rows, shape.n, true, true, is_embedded, by};
  return m;
}

// Elements of V and tau, in float64 or in pairs, and their arithmetic.
#if ELEMENT_PARTS == 2
typedef JOIN(STORED, 2) StoredElement;
typedef double2 WideElement;
#define ONE ((double2)(1, 0))
INLINE double2 widened(StoredElement x) { return (double2)(x.x, x.y); }
INLINE bool is_nothing(double2 x) { return x.x == 0 && x.y == 0; }
// sum - x y, and conj(x) y
INLINE double2 minus_product(double2 sum, double2 x, double2 y) {
  return (double2)(fma(x.y, y.y, fma(-x.x, y.x, sum.x)), fma(-x.y, y.x, fma(-x.x, y.y, sum.y)));
}
INLINE double2 conjugate_product(double2 x, double2 y) {
  return (double2)(fma(x.x, y.x, x.y * y.y), fma(x.x, y.y, -x.y * y.x));
}
INLINE void add_element(double2 term, double2* sum, double2* rest) {
  const double2 corrected = term - *rest, next = *sum + corrected;
  *rest = (next - *sum) - corrected;
  *sum = next;
}
INLINE double2 sum_of_elements(double2 x, double2 y) { return x + y; }
INLINE double2 product_with(double2 x, double2 y) {
  return (double2)(fma(x.x, y.x, -x.y * y.y), fma(x.x, y.y, x.y * y.x));
}
#else
typedef STORED StoredElement;
typedef wide WideElement;
#define ONE WIDE_ONE
INLINE wide widened(StoredElement x) { return wide_of(x); }
INLINE bool is_nothing(wide x) { return high_of(x) == 0; }
INLINE wide minus_product(wide sum, wide x, wide y) { return fma_wide(-x, y, sum); }
INLINE wide conjugate_product(wide x, wide y) { return multiply_wide(x, y); }
INLINE wide product_with(wide x, wide y) { return multiply_wide(x, y); }
INLINE wide sum_of_elements(wide x, wide y) { return add_wide(x, y); }
INLINE void add_element(wide term, wide* sum, wide* rest) { add_to_long_sum(term, sum, rest); }
#endif

// Q := H_1 .. H_k [I; 0]: a group computes 16 columns, from the last reflector to the first, and
// copies as many of R. Every 16th row of a column belongs to one work-item (with 256 of them): it
// applies reflector j + 1 to these rows and in the same pass sums its part of v_j'q, so that
// work-items exchange these sums alone. v_j is zero above row j and one in it. Several rows are
// loaded before the first of them is stored: the rows come from far, once for each reflector.
#define FORMED_AT_ONCE 8
#define FORMED_COLUMNS 16
#define FORMED_LANES (CHECK_GROUP / FORMED_COLUMNS)
__kernel IN_CHECK_GROUPS void form_q_from_reflectors(__global const StoredElement* v,
                                                     __global const StoredElement* tau,
                                                     __global WideElement* q,
                                                     __global WideElement* r, CheckShape shape) {
  __local WideElement parts[2][FORMED_LANES][FORMED_COLUMNS];
  const int k = shape.q_cols / ELEMENT_PARTS, n = shape.n / ELEMENT_PARTS;
  const int column = get_local_id(0) % FORMED_COLUMNS, lane = get_local_id(0) / FORMED_COLUMNS;
  index_t matrix;
  const int first = split_group((n + FORMED_COLUMNS - 1) / FORMED_COLUMNS, &matrix) *
                    FORMED_COLUMNS,
            col = first + column;
  const index_t ld = n, ldq = k;
  v += matrix * shape.m * ld;
  tau += matrix * k;
  q += matrix * shape.m * ldq + col;
  r += matrix * k * ld + col;
  if (col < n) {
    for (int row = lane; row < k; row += FORMED_LANES)
      r[row * ld] = row <= col ? widened(v[row * ld + col]) : (WideElement)(0);
  }
  if (col < k) {
    for (index_t row = lane; row < shape.m; row += FORMED_LANES)
      q[row * ldq] = row == col ? ONE : (WideElement)(0);
  }
  if (first >= k) return;
  // Later reflectors act below the ones of these columns, where there are zeros.
  WideElement weight = (WideElement)(0);
  for (int j = min(first + FORMED_COLUMNS, k) - 1; j >= -1; --j) {
    WideElement sum = (WideElement)(0), rest = (WideElement)(0);
    if (col < k) {
      const int from = max(j, 0);
      const bool changes = !is_nothing(weight);
      index_t row = from + (lane - from % FORMED_LANES + FORMED_LANES) % FORMED_LANES;
      for (; row < shape.m; row += FORMED_AT_ONCE * FORMED_LANES) {
        WideElement entries[FORMED_AT_ONCE];
        StoredElement next[FORMED_AT_ONCE], own[FORMED_AT_ONCE];
#pragma unroll
        for (int u = 0; u < FORMED_AT_ONCE; ++u) {
          const index_t later = row + u * FORMED_LANES, i = later < shape.m ? later : row;
          entries[u] = q[i * ldq];
          next[u] = v[i * ld + min(j + 1, n - 1)];
          own[u] = v[i * ld + from];
        }
#pragma unroll
        for (int u = 0; u < FORMED_AT_ONCE; ++u) {
          const index_t i = row + u * FORMED_LANES;
          if (i >= shape.m) break;
          if (changes && i > j) {
            const WideElement of_v = i == j + 1 ? ONE : widened(next[u]);
            entries[u] = minus_product(entries[u], weight, of_v);
            q[i * ldq] = entries[u];
          }
          if (j >= 0) {
            const WideElement of_v = i == j ? ONE : widened(own[u]);
            add_element(conjugate_product(of_v, entries[u]), &sum, &rest);
          }
        }
      }
    }
    if (j < 0) break;
    parts[j % 2][lane][column] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    weight = parts[j % 2][0][column];
    for (int other = 1; other < FORMED_LANES; ++other)
      weight = sum_of_elements(weight, parts[j % 2][other][column]);
    weight = product_with(weight, widened(tau[j]));
  }
}

// Finds the first row and column of a tile by its number. Tiles are numbered by columns within BAND
// rows of tiles, so that groups that run at the same time read few operands. Columns are numbered
// from the right, because their sums are the longest.
#define BAND 16
INLINE void place_of_tile(int tile, CheckShape shape, int* row0, int* col0) {
  const int across = (shape.n + CHECK_TILE - 1) / CHECK_TILE,
            down = (shape.m + CHECK_TILE - 1) / CHECK_TILE;
  const int band = tile / (BAND * across), rest = tile - band * BAND * across;
  const int rows = min(BAND, down - band * BAND), col = rest / rows;
  *row0 = (band * BAND + rest - col * rows) * CHECK_TILE;
  *col0 = (across - 1 - col) * CHECK_TILE;
}

// partial[matrix][tile] = {||A - QR||^2, ||A||^2} over a tile.
__kernel IN_CHECK_GROUPS void measure_residual(__global const STORED* a, __global const FACTOR* q,
                                               __global const FACTOR* r,
                                               __global const int* magnitudes,
                                               __global wide* partial, CheckShape shape) {
  __local Space space[SPACE_ENTRIES] __attribute__((aligned(16)));
  __local wide scratch[CHECK_GROUP];
  index_t matrix;
  int row0, col0;
  place_of_tile(split_group(shape.residual_parts, &matrix), shape, &row0, &col0);
  const Scaling scaling = scaling_of(magnitudes[matrix]);
  const MatrixRows left = matrix_q(q, shape, matrix);
  const MatrixRows right = matrix_r(r, shape, matrix, scaling, ELEMENT_PARTS == 2);
  TileSums sums;
  SUMS(clear_sums)(&sums);
  const int end = min(shape.q_cols, col0 + CHECK_TILE);
  SUMS(add_tile_terms)(&sums, space, &left, row0, &right, col0, 0, end, true);

  STORED entries[CHECK_ENTRIES];
  SUMS(load_entries)(entries, a + matrix * shape.m * shape.n, shape, row0, col0);
  wide error = WIDE_ZERO, norm = WIDE_ZERO;
#pragma unroll
  for (int e = 0; e < CHECK_ENTRIES; ++e) {
    const wide x = scaled(wide_of(entries[e]), scaling);
    const wide d = add_wide(x, -SUMS(sum_of_entry)(&sums, e, scaling, 1));
    error = fma_wide(d, d, error);
    norm = fma_wide(x, x, norm);
  }
  error = sum_of_group(error, scratch);
  norm = sum_of_group(norm, scratch);
  if (get_local_id(0) == 0) {
    partial[2 * get_group_id(0)] = error;
    partial[2 * get_group_id(0) + 1] = norm;
  }
}

// Finds the first row and column of a tile by its number, which counts row by row in the upper
// triangle.
INLINE void place_of_gram_tile(int tile, int size, int* row0, int* col0) {
  const int across = (size + CHECK_TILE - 1) / CHECK_TILE;
  int first = 0;
  while (tile >= across - first) {
    tile -= across - first;
    ++first;
  }
  *row0 = first * CHECK_TILE;
  *col0 = (first + tile) * CHECK_TILE;
}

// X = Q, or A for R alone, in slabs of rows. For R alone the last slab subtracts R'R.
// gram_slabs = 1: partial[matrix][tile] = ||.||^2. Otherwise gram[matrix][slab] = X'X of the slab.
__kernel IN_CHECK_GROUPS void measure_gram(__global const FACTOR* x, __global const FACTOR* r,
                                           __global const int* magnitudes, __global wide* partial,
                                           __global wide* gram, CheckShape shape) {
  __local Space space[SPACE_ENTRIES] __attribute__((aligned(16)));
  __local wide scratch[CHECK_GROUP];
  const bool is_r_alone = shape.q_cols == 0;
  const int slabs = shape.gram_slabs, size = shape.gram_size;
  index_t matrix;
  const int part = split_group((index_t)shape.gram_tiles * slabs, &matrix);
  const int tile = part / slabs, slab = part - tile * slabs;
  int row0, col0;
  place_of_gram_tile(tile, size, &row0, &col0);
  const Scaling scaling = scaling_of(magnitudes[matrix]);
  const MatrixRows rows = {
      x + matrix * shape.m * size, shape.m, size, false, is_r_alone, false, scaling};
  const MatrixRows upper = matrix_r(r, shape, matrix, scaling, false);

  TileSums sums;
  SUMS(clear_sums)(&sums);
  const int first = slab * shape.slab_rows, last = min(shape.m, first + shape.slab_rows);
  SUMS(add_tile_terms)(&sums, space, &rows, row0, &rows, col0, first, last, false);
  if (is_r_alone && slab == slabs - 1) {
    SUMS(negate_sums)(&sums);
    const int end = min(shape.r_rows, (row0 + CHECK_TILE) / ELEMENT_PARTS);
    SUMS(add_tile_terms)(&sums, space, &upper, row0, &upper, col0, 0, end, false);
    SUMS(negate_sums)(&sums);
  }

  const int scaled_factors = is_r_alone ? 2 : 0;
  wide squares = WIDE_ZERO;
  gram += (matrix * slabs + slab) * size * size;
#pragma unroll
  for (int e = 0; e < CHECK_ENTRIES; ++e) {
    const int row = row0 + ENTRY_ROW(e), col = col0 + ENTRY_COL(e);
    const bool exists = row < size && col < size;
    wide sum = SUMS(sum_of_entry)(&sums, e, scaling, scaled_factors);
    if (slabs > 1 && exists) gram[(index_t)row * size + col] = sum;
#if ELEMENT_PARTS == 2
    sum = folded(sum, SUMS(sum_across)(&sums, e, scaling, scaled_factors), col);
#endif
    if (exists && row % ELEMENT_PARTS == 0) {
      const wide d = add_wide(sum, -(!is_r_alone && row == col ? WIDE_ONE : WIDE_ZERO));
      squares = fma_wide(d, d, squares);
    }
  }
  // A tile off the diagonal also counts for its mirror image.
  squares = sum_of_group(row0 == col0 ? squares : 2 * squares, scratch);
  if (slabs == 1 && get_local_id(0) == 0) partial[get_group_id(0)] = squares;
}

// Measures R in slabs of shape.r_slab_rows rows. Each slab's result goes to parts[matrix][slab].
__kernel IN_CHECK_GROUPS void measure_r(__global const Element* r, __global const int* magnitudes,
                                        __global RSummary* parts, CheckShape shape) {
  __local wide scratch[CHECK_GROUP];
  index_t matrix;
  const int slab = split_group(shape.r_slabs, &matrix), item = get_local_id(0);
  const Scaling scaling = scaling_of(magnitudes[matrix]);
  const int last = min(shape.r_rows, (slab + 1) * shape.r_slab_rows);
  const int n = shape.n / ELEMENT_PARTS;
  r += matrix * shape.r_rows * n;
  RSummary s = no_summary();
  // A group loads from several rows at the same time, or from one row.
  const int lanes = min(n, CHECK_GROUP), across = CHECK_GROUP / lanes, col = item % lanes;
  const int first = slab * shape.r_slab_rows + (item < across * lanes ? item / lanes : last);
  if (lanes < CHECK_GROUP || n == CHECK_GROUP) {
#pragma unroll 4
    for (int row = first; row < last; row += across) {
      look_at_entry(&s, r[(index_t)row * n + col], row, col, scaling);
    }
  } else {
    for (int row = first; row < last; ++row) {
#pragma unroll 4
      for (int c = col; c < n; c += CHECK_GROUP) {
        look_at_entry(&s, r[(index_t)row * n + c], row, c, scaling);
      }
    }
  }
  s = sum_up(s, scratch);
  if (item == 0) parts[get_group_id(0)] = s;
}
