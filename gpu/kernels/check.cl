// SPDX-License-Identifier: Apache-2.0
// check.cl: the errors of every matrix of a batch in float64, as core/ratios.hpp defines them
// (compare LAPACK's TESTING/LIN/dqrt01). A and R are scaled by the matrix's power of two.
//
//   step                   what it does                                        group per
//   form_q_from_reflectors Q (float64) from V and tau as stored (raw only)     matrix x columns
//   measure_residual       ||A - QR||^2 and ||A||^2, tile by tile              matrix x tile
//   measure_gram           ||I - Q'Q||^2, or ||A'A - R'R||^2 for R alone       matrix x tile x slab
//   combine_gram           the same from the sums of row slabs, tall matrices  matrix x tile
//   measure_r              lower part, diagonal and range of R                 matrix x rows
//   finish_errors          sums of the tiles and rows                          matrix
//
// The Gram matrix is symmetric: tiles on and above its diagonal are measured, those above count
// twice. Sums have a fixed order; sums of many terms are compensated (Kahan), since a plain one is
// biased where all terms are equal. Products take R for what it is, upper triangular: what lies below
// its diagonal counts as `lower`.
//
//        tile columns ->                          slab_rows
//      +----+----+----+        X = Q or A      +-----------+ -> X0'X0  \
//      | x2 | x2 | 1  |  tj    X'X = sum of    | X0        |            + combine_gram
//      | x2 | 1  |    |        slabs:          | X1        | -> X1'X1  /
//      | 1  |    |    |  ti                    +-----------+
//
// Defines, set in device_check.cpp   range            meaning
//   STORED                           float, double    type of A, R, V and tau
//   Q_REAL                           STORED, double   type of Q (double where it was formed here)
//   MICRO                            1, 2, 4          tile is 16 MICRO x 16 MICRO
// Local memory: 512 MICRO + 256 doubles. Work-group: 256.
#include "check.clh"

#ifndef Q_REAL
#define Q_REAL STORED
#endif
#ifndef MICRO
#define MICRO 4
#endif

#define GROUP_SIZE 256
#define TILE (16 * MICRO)
#define GROUP __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1)))

// The sum of x over the work-group, in a fixed order. All work-items call it.
INLINE double sum_over_group(double x, __local double* scratch) {
  const int item = get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  scratch[item] = x;
  for (int width = GROUP_SIZE / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < width) scratch[item] += scratch[item + width];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return scratch[0];
}

// Q := H_1 .. H_k [I; 0], one column per work-item, backward. No exchange between work-items.
__kernel GROUP void form_q_from_reflectors(__global const STORED* v, __global const STORED* tau,
                                           __global double* q, CheckShape shape) {
  const int blocks = (shape.q_cols + GROUP_SIZE - 1) / GROUP_SIZE;
  index_t matrix;
  const int col = split_group(blocks, &matrix) * GROUP_SIZE + get_local_id(0);
  const index_t ld = shape.n, ldq = shape.q_cols;
  v += matrix * shape.m * ld;
  tau += matrix * shape.k;
  q += matrix * shape.m * ldq + col;
  if (col < shape.q_cols) {
    for (index_t row = 0; row < shape.m; ++row) q[row * ldq] = row == col ? 1.0 : 0.0;
    for (int j = min(col, shape.k - 1); j >= 0; --j) {
      double sum = q[j * ldq], rest = 0;
      for (index_t row = j + 1; row < shape.m; ++row) {
        add_compensated((double)v[row * ld + j] * q[row * ldq], &sum, &rest);
      }
      const double weight = (double)tau[j] * sum;
      q[j * ldq] -= weight;
      for (index_t row = j + 1; row < shape.m; ++row) {
        q[row * ldq] = fma(-weight, (double)v[row * ld + j], q[row * ldq]);
      }
    }
  }
}

// Entry of R, scaled; only the upper part is R.
INLINE double entry_of_r(__global const STORED* r, CheckShape shape, Scaling scaling, int row,
                         int col) {
  if (row >= shape.k || col >= shape.n || row > col) return 0;
  return scaled((double)r[(index_t)row * shape.n + col], scaling);
}

// partial[matrix][tile] = {||A - QR||^2, ||A||^2} over a tile.
__kernel GROUP void measure_residual(__global const STORED* a, __global const Q_REAL* q,
                                     __global const STORED* r, __global const int* magnitudes,
                                     __global double* partial, CheckShape shape) {
  __local double left[TILE * 16], right[16 * TILE];
  __local double scratch[GROUP_SIZE];
  const int tile_cols = (shape.n + TILE - 1) / TILE;
  const int tiles = (shape.m + TILE - 1) / TILE * tile_cols;
  index_t matrix;
  const int tile = split_group(tiles, &matrix), tile_row = tile / tile_cols;
  const int row0 = tile_row * TILE, col0 = (tile - tile_row * tile_cols) * TILE;
  const int item = get_local_id(0), ty = item / 16, tx = item % 16;
  const Scaling scaling = scaling_of(magnitudes[matrix]);
  a += matrix * shape.m * shape.n;
  q += matrix * shape.m * shape.q_cols;
  r += matrix * shape.r_rows * shape.n;

  double sum[MICRO][MICRO];
#pragma unroll
  for (int u = 0; u < MICRO; ++u) {
#pragma unroll
    for (int w = 0; w < MICRO; ++w) sum[u][w] = 0;
  }
  const int depth = min(shape.q_cols, col0 + TILE);
#pragma unroll 1
  for (int p0 = 0; p0 < depth; p0 += 16) {
#pragma unroll
    for (int u = 0; u < MICRO; ++u) {
      const int row = row0 + ty + 16 * u, p = p0 + tx;
      const bool inside = row < shape.m && p < depth;
      left[(ty + 16 * u) * 16 + tx] = inside ? (double)q[(index_t)row * shape.q_cols + p] : 0.0;
      right[ty * TILE + tx + 16 * u] = entry_of_r(r, shape, scaling, p0 + ty, col0 + tx + 16 * u);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int p = 0; p < 16; ++p) {
#pragma unroll
      for (int u = 0; u < MICRO; ++u) {
        const double x = left[(ty + 16 * u) * 16 + p];
#pragma unroll
        for (int w = 0; w < MICRO; ++w) {
          sum[u][w] = fma(x, right[p * TILE + tx + 16 * w], sum[u][w]);
        }
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  double error = 0, norm = 0;
#pragma unroll
  for (int u = 0; u < MICRO; ++u) {
#pragma unroll
    for (int w = 0; w < MICRO; ++w) {
      const int row = row0 + ty + 16 * u, col = col0 + tx + 16 * w;
      if (row < shape.m && col < shape.n) {
        const double x = scaled((double)a[(index_t)row * shape.n + col], scaling);
        const double d = x - sum[u][w];
        error = fma(d, d, error);
        norm = fma(x, x, norm);
      }
    }
  }
  error = sum_over_group(error, scratch);
  norm = sum_over_group(norm, scratch);
  if (item == 0) {
    partial[2 * get_group_id(0)] = error;
    partial[2 * get_group_id(0) + 1] = norm;
  }
}

// A tile of the Gram matrix: columns row0.. against columns col0..; sums with their compensations.
typedef struct {
  double sum[MICRO][MICRO], rest[MICRO][MICRO];
} GramTile;

INLINE void clear_tile(GramTile* g) {
#pragma unroll
  for (int u = 0; u < MICRO; ++u) {
#pragma unroll
    for (int w = 0; w < MICRO; ++w) g->sum[u][w] = g->rest[u][w] = 0;
  }
}

// G += sign X'X over the 16 rows whose tiles lie in local memory.
INLINE void add_rows(__local const double* left, __local const double* right, double sign,
                     GramTile* g) {
  const int ty = get_local_id(0) / 16, tx = get_local_id(0) % 16;
#pragma unroll
  for (int u = 0; u < MICRO; ++u) {
#pragma unroll
    for (int w = 0; w < MICRO; ++w) {
      double part = 0;
#pragma unroll
      for (int i = 0; i < 16; ++i) {
        part = fma(left[i * TILE + ty + 16 * u], right[i * TILE + tx + 16 * w], part);
      }
      add_compensated(sign * part, &g->sum[u][w], &g->rest[u][w]);
    }
  }
}

// Tile number -> (row, col), row <= col, row by row.
INLINE void tile_position(int tile, int across, int* row, int* col) {
  int first = 0;
  while (tile >= across - first) {
    tile -= across - first;
    ++first;
  }
  *row = first;
  *col = first + tile;
}

// What the Gram tile differs from: the identity for Q, nothing for R alone (R'R is subtracted as
// rows). Off the diagonal a tile stands for its mirror image too.
INLINE double squares_of(const GramTile* g, CheckShape shape, int row0, int col0) {
  const int ty = get_local_id(0) / 16, tx = get_local_id(0) % 16;
  double squares = 0;
#pragma unroll
  for (int u = 0; u < MICRO; ++u) {
#pragma unroll
    for (int w = 0; w < MICRO; ++w) {
      const int row = row0 + ty + 16 * u, col = col0 + tx + 16 * w;
      const double one = shape.q_cols > 0 && row == col ? 1.0 : 0.0;
      const double d = g->sum[u][w] - one;
      if (row < shape.gram_size && col < shape.gram_size) squares = fma(d, d, squares);
    }
  }
  return row0 == col0 ? squares : 2 * squares;
}

// X = Q, or A for R alone, in slabs of rows; for R alone one more slab is -R'R.
// gram_slabs = 1: partial[matrix][tile] = ||.||^2. Else gram[matrix][slab] = the slab's X'X.
__kernel GROUP void measure_gram(__global const Q_REAL* x, __global const STORED* r,
                                 __global const int* magnitudes, __global double* partial,
                                 __global double* gram, CheckShape shape) {
  __local double left[16 * TILE], right[16 * TILE];
  __local double scratch[GROUP_SIZE];
  const int across = (shape.gram_size + TILE - 1) / TILE, tiles = across * (across + 1) / 2;
  const bool is_r_alone = shape.q_cols == 0;
  const int slabs = shape.gram_slabs;
  index_t matrix;
  const int part = split_group((index_t)tiles * slabs, &matrix);
  const int tile = part / slabs, slab = part - tile * slabs;
  const int item = get_local_id(0), ty = item / 16, tx = item % 16;
  int row0, col0;
  tile_position(tile, across, &row0, &col0);
  row0 *= TILE;
  col0 *= TILE;
  const Scaling plain = {1, 1}, scaling = scaling_of(magnitudes[matrix]);
  x += matrix * shape.m * shape.gram_size;
  r += matrix * shape.r_rows * shape.n;

  GramTile g;
  clear_tile(&g);
  const bool is_last = slab == slabs - 1;
  const int x_first = slab * shape.slab_rows, x_last = min(shape.m, x_first + shape.slab_rows);
#pragma unroll 1
  for (int first = x_first; first < x_last; first += 16) {
    const int row = first + ty;
#pragma unroll
    for (int u = 0; u < MICRO; ++u) {
      const int i = row0 + tx + 16 * u, j = col0 + tx + 16 * u;
      const index_t at = (index_t)row * shape.gram_size;
      const Scaling by = is_r_alone ? scaling : plain;
      const bool inside = row < x_last;
      left[ty * TILE + tx + 16 * u] =
          inside && i < shape.gram_size ? scaled((double)x[at + i], by) : 0.0;
      right[ty * TILE + tx + 16 * u] =
          inside && j < shape.gram_size ? scaled((double)x[at + j], by) : 0.0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    add_rows(left, right, 1.0, &g);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const int r_last = is_r_alone && is_last ? min(shape.k, row0 + TILE) : 0;
#pragma unroll 1
  for (int first = 0; first < r_last; first += 16) {
#pragma unroll
    for (int u = 0; u < MICRO; ++u) {
      left[ty * TILE + tx + 16 * u] = entry_of_r(r, shape, scaling, first + ty, row0 + tx + 16 * u);
      right[ty * TILE + tx + 16 * u] =
          entry_of_r(r, shape, scaling, first + ty, col0 + tx + 16 * u);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    add_rows(left, right, -1.0, &g);
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  if (slabs == 1) {
    const double squares = sum_over_group(squares_of(&g, shape, row0, col0), scratch);
    if (item == 0) partial[get_group_id(0)] = squares;
  } else {
    gram += (matrix * slabs + slab) * shape.gram_size * shape.gram_size;
#pragma unroll
    for (int u = 0; u < MICRO; ++u) {
#pragma unroll
      for (int w = 0; w < MICRO; ++w) {
        const int row = row0 + ty + 16 * u, col = col0 + tx + 16 * w;
        if (row < shape.gram_size && col < shape.gram_size) {
          gram[(index_t)row * shape.gram_size + col] = g.sum[u][w];
        }
      }
    }
  }
}

// partial[matrix][tile] from the slabs' Gram matrices.
__kernel GROUP void combine_gram(__global const double* gram, __global double* partial,
                                 CheckShape shape) {
  __local double scratch[GROUP_SIZE];
  const int across = (shape.gram_size + TILE - 1) / TILE, tiles = across * (across + 1) / 2;
  index_t matrix;
  const int tile = split_group(tiles, &matrix);
  const index_t size = shape.gram_size;
  const int ty = get_local_id(0) / 16, tx = get_local_id(0) % 16;
  int row0, col0;
  tile_position(tile, across, &row0, &col0);
  row0 *= TILE;
  col0 *= TILE;
  gram += matrix * shape.gram_slabs * size * size;

  GramTile g;
  clear_tile(&g);
#pragma unroll 1
  for (int slab = 0; slab < shape.gram_slabs; ++slab) {
#pragma unroll
    for (int u = 0; u < MICRO; ++u) {
#pragma unroll
      for (int w = 0; w < MICRO; ++w) {
        const int row = row0 + ty + 16 * u, col = col0 + tx + 16 * w;
        if (row < size && col < size) {
          add_compensated(gram[(slab * size + row) * size + col], &g.sum[u][w], &g.rest[u][w]);
        }
      }
    }
  }
  const double squares = sum_over_group(squares_of(&g, shape, row0, col0), scratch);
  if (get_local_id(0) == 0) partial[get_group_id(0)] = squares;
}

// The sum of every `step`-th of count values, over the work-group.
INLINE double sum_partials(__global const double* values, int count, int step,
                           __local double* scratch) {
  double sum = 0, rest = 0;
  for (index_t i = get_local_id(0); i < count; i += GROUP_SIZE) {
    add_compensated(values[i * step], &sum, &rest);
  }
  return sum_over_group(sum, scratch);
}

// What R itself shows: its part below the diagonal, its diagonal, its range.
typedef struct {
  double lower, smallest, largest, is_finite;
} RSummary;

// x of every work-item, the smallest. All work-items call it.
INLINE double least_of_group(double x, __local double* scratch) {
  barrier(CLK_LOCAL_MEM_FENCE);
  scratch[get_local_id(0)] = x;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < GROUP_SIZE; ++i) x = fmin(x, scratch[i]);
  return x;
}

// parts[matrix][slab] of shape.r_slab_rows rows of R, or of V\R.
__kernel GROUP void measure_r(__global const STORED* r, __global const int* magnitudes,
                              __global RSummary* parts, CheckShape shape) {
  __local double scratch[GROUP_SIZE];
  index_t matrix;
  const int slab = split_group(shape.r_slabs, &matrix), item = get_local_id(0);
  const Scaling scaling = scaling_of(magnitudes[matrix]);
  const int rows = shape.packed_r ? shape.k : shape.r_rows;
  const int last = min(rows, (slab + 1) * shape.r_slab_rows);
  r += matrix * shape.r_rows * shape.n;
  RSummary s = {0, INFINITY, 0, 1};
  const int lanes = shape.n < GROUP_SIZE ? shape.n : GROUP_SIZE, across = GROUP_SIZE / lanes;
  for (int row = slab * shape.r_slab_rows + item / lanes; row < last; row += across) {
    if (item >= across * lanes) break;
    for (int col = item % lanes; col < shape.n; col += lanes) {
      const double x = (double)r[(index_t)row * shape.n + col];
      if (row > col && !shape.packed_r) {
        const double y = scaled(x, scaling);
        s.lower = fma(y, y, s.lower);
      }
      if (row <= col && !isfinite(x)) s.is_finite = 0;
      if (row == col) {
        const double y = fabs(scaled(x, scaling));
        s.smallest = fmin(s.smallest, y);
        s.largest = fmax(s.largest, y);
      }
    }
  }
  s.lower = sum_over_group(s.lower, scratch);
  s.smallest = least_of_group(s.smallest, scratch);
  s.largest = -least_of_group(-s.largest, scratch);
  s.is_finite = least_of_group(s.is_finite, scratch);
  if (item == 0) parts[get_group_id(0)] = s;
}

INLINE RSummary sum_up_r(__global const RSummary* parts, int count, __local double* scratch) {
  RSummary s = {0, INFINITY, 0, 1};
  for (int i = get_local_id(0); i < count; i += GROUP_SIZE) {
    s.lower += parts[i].lower;
    s.smallest = fmin(s.smallest, parts[i].smallest);
    s.largest = fmax(s.largest, parts[i].largest);
    s.is_finite = fmin(s.is_finite, parts[i].is_finite);
  }
  s.lower = sum_over_group(s.lower, scratch);
  s.smallest = least_of_group(s.smallest, scratch);
  s.largest = -least_of_group(-s.largest, scratch);
  s.is_finite = least_of_group(s.is_finite, scratch);
  return s;
}

__kernel GROUP void finish_errors(__global const double* residual_partial,
                                  __global const double* gram_partial,
                                  __global const RSummary* r_parts,
                                  __global const int* magnitudes, __global DeviceErrors* errors,
                                  CheckShape shape) {
  __local double scratch[GROUP_SIZE];
  const index_t matrix = get_group_id(0);
  const int tiles = (shape.m + TILE - 1) / TILE * ((shape.n + TILE - 1) / TILE);
  const int across = (shape.gram_size + TILE - 1) / TILE, gram_tiles = across * (across + 1) / 2;
  residual_partial += matrix * tiles * 2;

  const double residual = sum_partials(residual_partial, tiles, 2, scratch);
  const double norm = sqrt(sum_partials(residual_partial + 1, tiles, 2, scratch));
  const double gram =
      sqrt(sum_partials(gram_partial + matrix * gram_tiles, gram_tiles, 1, scratch));
  const RSummary s = sum_up_r(r_parts + matrix * shape.r_slabs, shape.r_slabs, scratch);
  if (get_local_id(0) == 0) {
    DeviceErrors e;
    const bool has_q = shape.q_cols > 0;
    e.residual = has_q ? relative(sqrt(residual), norm) : relative(gram, norm * norm);
    e.orthogonality = has_q ? gram : (double)NAN;
    e.lower = relative(sqrt(s.lower), norm);
    e.diagonal_ratio = s.largest > 0 ? s.smallest / s.largest : 0.0;
    e.norm = norm;
    e.magnitude = magnitudes[matrix];
    e.r_is_finite = s.is_finite != 0;
    errors[matrix] = e;
  }
}
