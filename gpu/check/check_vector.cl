// SPDX-License-Identifier: Apache-2.0
// check_vector.cl: the errors of every matrix of a batch in float64, with the definitions of
// check.cl, for CPU devices. A work-item measures a whole matrix in tiles of 4 rows and 8 columns,
// without barriers.
//
//   ||A - QR||^2    x (4 rows of A) -= q r_p for p < k            tile by tile of A
//   ||I - Q'Q||^2   tiles of the Gram matrix on and above its diagonal; those above count twice.
//                   For R alone: ||A'A - R'R||^2
//
// Defines, set in device_check.cpp   range            meaning
//   STORED, FACTOR                   float, double    check.clh; FACTOR is STORED
// Local memory: none. Group size 1. One launch: measure, groups = matrices.
#include "gpu/check/check.clh"

#define PACK_COLUMNS 8
#define PACK_ROWS 4
// Number of rows that are summed plainly.
#define PACK_SUM_ROWS 32

typedef struct {
  __global const STORED* x;
  int rows, columns;
  Scaling scaling;
} PackMatrix;

INLINE double entry(const PackMatrix* m, int i, int j) {
  return i < m->rows && j < m->columns
             ? scaled((double)m->x[(index_t)i * m->columns + j], m->scaling)
             : 0.0;
}

// Returns the entries (i, j), .., (i, j + 7), with zeros outside the matrix.
INLINE double8 entries(const PackMatrix* m, int i, int j) {
  __global const STORED* x = m->x + (index_t)i * m->columns + j;
  if (i < m->rows && j + PACK_COLUMNS <= m->columns)
    return convert_double8(vload8(0, x)) * m->scaling.first * m->scaling.second;
  double8 y = 0;
  for (int c = 0; c < PACK_COLUMNS; ++c) ((double*)&y)[c] = entry(m, i, j + c);
  return y;
}

INLINE double sum_of(double8 x) {
  const double4 y = x.lo + x.hi;
  return (y.x + y.y) + (y.z + y.w);
}

// Returns ||A||^2 and ||A - QR||^2.
INLINE double2 measure_residual_of_pack(const PackMatrix* a, const PackMatrix* q,
                                        const PackMatrix* r) {
  double norm = 0, norm_rest = 0, residual = 0, residual_rest = 0;
  for (int i = 0; i < a->rows; i += PACK_ROWS) {
    double8 norms = 0, squares = 0;
    for (int j = 0; j < a->columns; j += PACK_COLUMNS) {
      double8 x0 = entries(a, i, j), x1 = entries(a, i + 1, j), x2 = entries(a, i + 2, j),
              x3 = entries(a, i + 3, j);
      norms += x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3;
      for (int p = 0; p < q->columns; ++p) {
        const double8 y = entries(r, p, j);
        x0 = fma(-(double8)entry(q, i, p), y, x0);
        x1 = fma(-(double8)entry(q, i + 1, p), y, x1);
        x2 = fma(-(double8)entry(q, i + 2, p), y, x2);
        x3 = fma(-(double8)entry(q, i + 3, p), y, x3);
      }
      squares += x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3;
    }
    add_compensated(sum_of(norms), &norm, &norm_rest);
    add_compensated(sum_of(squares), &residual, &residual_rest);
  }
  return (double2)(norm, residual);
}

typedef struct {
  double8 x[PACK_ROWS];
} PackTile;

// sum := rows p .. p + 3 of X'X, for 8 columns from j on.
INLINE void gram_tile(const PackMatrix* m, int p, int j, PackTile* sum) {
  PackTile rest;
  for (int t = 0; t < PACK_ROWS; ++t) sum->x[t] = rest.x[t] = 0;
  for (int first = 0; first < m->rows; first += PACK_SUM_ROWS) {
    double8 s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int i = first; i < min(first + PACK_SUM_ROWS, m->rows); ++i) {
      const double8 y = entries(m, i, j);
      s0 = fma((double8)entry(m, i, p), y, s0);
      s1 = fma((double8)entry(m, i, p + 1), y, s1);
      s2 = fma((double8)entry(m, i, p + 2), y, s2);
      s3 = fma((double8)entry(m, i, p + 3), y, s3);
    }
    const double8 parts[PACK_ROWS] = {s0, s1, s2, s3};
    for (int t = 0; t < PACK_ROWS; ++t) {
      const double8 corrected = parts[t] - rest.x[t], next = sum->x[t] + corrected;
      rest.x[t] = (next - sum->x[t]) - corrected;
      sum->x[t] = next;
    }
  }
}

// |X'X - Y||^2 with Y = I or Y = Z'Z.
INLINE double measure_gram_of_pack(const PackMatrix* x, const PackMatrix* z, bool is_identity) {
  const int n = x->columns;
  double total = 0, total_rest = 0;
  for (int p = 0; p < n; p += PACK_ROWS) {
    for (int j = p / PACK_COLUMNS * PACK_COLUMNS; j < n; j += PACK_COLUMNS) {
      PackTile tile, other;
      gram_tile(x, p, j, &tile);
      if (!is_identity) gram_tile(z, p, j, &other);
      double squares = 0;
      for (int t = 0; t < PACK_ROWS && p + t < n; ++t) {
        for (int c = 0; c < PACK_COLUMNS && j + c < n; ++c) {
          const int row = p + t, column = j + c;
          const double y = is_identity ? (row == column ? 1.0 : 0.0) : ((double*)&other.x[t])[c];
          const double d = ((double*)&tile.x[t])[c] - y;
          squares = fma(row == column ? d : row < column ? 2 * d : 0.0, d, squares);
        }
      }
      add_compensated(squares, &total, &total_rest);
    }
  }
  return total;
}

// Measures R itself.
INLINE void summarise_r(const PackMatrix* r, DeviceErrors* e) {
  double lower = 0, smallest = INFINITY, largest = 0;
  e->r_is_finite = 1;
  for (int i = 0; i < r->rows; ++i) {
    for (int j = 0; j < r->columns; ++j) {
      const double x = entry(r, i, j);
      if (i > j) lower = fma(x, x, lower);
      if (i <= j && !isfinite(r->x[(index_t)i * r->columns + j])) e->r_is_finite = 0;
      if (i == j) {
        smallest = fmin(smallest, fabs(x));
        largest = fmax(largest, fabs(x));
      }
    }
  }
  e->lower = relative(sqrt(lower), e->norm);
  e->diagonal_ratio = largest > 0 ? smallest / largest : 0.0;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void measure(
    __global const STORED* a, __global const STORED* q, __global const STORED* r,
    __global const int* magnitudes, __global DeviceErrors* errors, CheckShape shape) {
  const index_t b = get_group_id(0);
  const Scaling scaling = scaling_of(magnitudes[b]), one = scaling_of(0);
  const PackMatrix a_b = {a + b * shape.m * shape.n, shape.m, shape.n, scaling};
  const PackMatrix q_b = {q + b * shape.m * shape.q_cols, shape.m, shape.q_cols, one};
  const PackMatrix r_b = {r + b * shape.r_rows * shape.n, shape.r_rows, shape.n, scaling};
  const bool has_q = shape.q_cols > 0;
  const double2 squares = measure_residual_of_pack(&a_b, &q_b, &r_b);
  const double gram = sqrt(measure_gram_of_pack(has_q ? &q_b : &a_b, &r_b, has_q));
  DeviceErrors e;
  e.norm = sqrt(squares.x);
  e.residual = has_q ? relative(sqrt(squares.y), e.norm) : relative(gram, squares.x);
  e.orthogonality = has_q ? gram : (double)NAN;
  e.magnitude = magnitudes[b];
  summarise_r(&r_b, &e);
  errors[b] = e;
}
