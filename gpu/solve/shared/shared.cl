// SPDX-License-Identifier: Apache-2.0
// shared.cl: least squares for many right sides of one matrix A = QR, whose Q and R the host knows.
// All sums are in float64. B is read once for SLAB_COLUMNS columns.
//
//   solve_shared       z = Q'b,  x = R^-1 z                                 right sides of a group
//   check_shared       r = b - A x,  g = A'r for the stored x, and the      the same
//                      least of the bounds; standard errors
//   with more than SLAB_COLUMNS columns, in place of check_shared:
//   find_residuals     r = b - A x,  b'b  ->  scratch                       the same
//   check_residuals    g = A'r and the rest                                 the same
//
// A and Q are m x SHARED_WIDTH and R is SHARED_WIDTH x SHARED_WIDTH, row-major, with zero columns
// after the last one; the diagonal of R holds its reciprocals, with 1 after the last one. The rows
// of A and Q are those of the weighted problem. Column j of A and R is multiplied by powers[j],
// which brings its norm to about 1, and so is x_j where it is stored; b is not scaled. x is
// computed from its last block to its first one, as R^-1 z is. `scratch` has x in float64, and
// later b'b, r and g, entry by entry for all right sides; one block needs none.
//
// The error is NaN, and the host solves the right side again, where a number is not finite or out
// of range (least_bound.clh): also where b has NaN.
//
// Defines, set in shared_matrix.cpp   range   meaning
//   STORED                                     common.clh
//   COLUMNS, SLAB_COLUMNS, GROUP, SIDES, TAKEN_ROWS, SLAB_ROWS,   shared_rows.clh
//   IN_ROWS, WEIGHS, MMA, VECTOR                                  shared_rows.clh
// Work-group: GROUP. Local memory: shared_rows.clh, SharedRoom.
#include "gpu/common/common.clh"
#include "gpu/solve/parts/least_bound.clh"
#include "gpu/solve/parts/powers.clh"
#include "gpu/solve/shared/shared_rows.clh"

// sums[s][j] += the product of column j of the slab and rows of right side s.
INLINE void add_products(const SharedRoom room, const double rows[TAKEN], int slab_row,
                         double sums[SIDES * SLAB_COLUMNS]) {
#pragma unroll
  for (int k = 0; k < TAKEN_ROWS; ++k) {
#pragma unroll
    for (int pair = 0; pair < SLAB_COLUMNS / 2; ++pair) {
      const double2 q = pair_of_slab(room, slab_row + k, pair);
#pragma unroll
      for (int s = 0; s < SIDES; ++s) {
        double* sum = sums + s * SLAB_COLUMNS + 2 * pair;
        sum[0] = fma(q.x, rows[s * TAKEN_ROWS + k], sum[0]);
        sum[1] = fma(q.y, rows[s * TAKEN_ROWS + k], sum[1]);
      }
    }
  }
}

// rows[s][k] -= row k of the slab times x of right side s.
INLINE void subtract_products(const SharedRoom room, double rows[TAKEN], int slab_row,
                              const double x[SIDES * SLAB_COLUMNS]) {
#pragma unroll
  for (int k = 0; k < TAKEN_ROWS; ++k) {
#pragma unroll
    for (int pair = 0; pair < SLAB_COLUMNS / 2; ++pair) {
      const double2 a = pair_of_slab(room, slab_row + k, pair);
#pragma unroll
      for (int s = 0; s < SIDES; ++s) {
        double r = rows[s * TAKEN_ROWS + k];
        r = fma(-a.x, x[s * SLAB_COLUMNS + 2 * pair], r);
        rows[s * TAKEN_ROWS + k] = fma(-a.y, x[s * SLAB_COLUMNS + 2 * pair + 1], r);
      }
    }
  }
}

INLINE void widen_rows(const SharedRoom room, const STORED rows[TAKEN], int slab_row,
                       double wide[TAKEN]) {
#pragma unroll
  for (int k = 0; k < TAKEN_ROWS; ++k) {
#pragma unroll
    for (int s = 0; s < SIDES; ++s)
      wide[s * TAKEN_ROWS + k] = weighted(room, rows[s * TAKEN_ROWS + k], slab_row + k);
  }
}

INLINE void clear_sums(double* sums, const int count) {
#pragma unroll
  for (int e = 0; e < count; ++e) sums[e] = 0;
}

// x := the block's entries of the stored x for the scaled A, with zeros after the last column.
INLINE void take_x(double x[SIDES * SLAB_COLUMNS], __global const STORED* all_x,
                   __global const double* powers, int block, const SharedShape* shape) {
#pragma unroll
  for (int s = 0; s < SIDES; ++s) {
#pragma unroll
    for (int j = 0; j < SLAB_COLUMNS; ++j) {
      const int column = block * SLAB_COLUMNS + j;
      const double stored =
          column < COLUMNS ? all_x[place_of_x(number_of_side(s, shape), column, shape)] : 0;
      x[s * SLAB_COLUMNS + j] = stored * reciprocal_of_power(powers[min(column, COLUMNS - 1)]);
    }
  }
}

// ---- x

// x := R^-1 z within a block.
INLINE void solve_block(__global const double* r, double x[SIDES * SLAB_COLUMNS], int block) {
  __global const double* corner =
      r + (index_t)block * SLAB_COLUMNS * SHARED_WIDTH + block * SLAB_COLUMNS;
#pragma unroll
  for (int i = SLAB_COLUMNS - 1; i >= 0; --i) {
#pragma unroll
    for (int s = 0; s < SIDES; ++s) {
      double sum = x[s * SLAB_COLUMNS + i];
#pragma unroll
      for (int j = 0; j < SLAB_COLUMNS; ++j)
        if (j > i) sum = fma(-corner[i * SHARED_WIDTH + j], x[s * SLAB_COLUMNS + j], sum);
      x[s * SLAB_COLUMNS + i] = sum * corner[i * SHARED_WIDTH + i];
    }
  }
}

#if SLABS_ACROSS > 1
// z -= R(block, later) x(later)
INLINE void subtract_later(__global const double* r, __global const double* scratch,
                           double z[SIDES * SLAB_COLUMNS], int block, const SharedShape* shape) {
#pragma unroll 1
  for (int c = (block + 1) * SLAB_COLUMNS; c < SHARED_WIDTH; ++c) {
#pragma unroll
    for (int s = 0; s < SIDES; ++s) {
      const double x = scratch[c * shape->count + number_of_side(s, shape)];
#pragma unroll
      for (int j = 0; j < SLAB_COLUMNS; ++j)
        z[s * SLAB_COLUMNS + j] = fma(-r[(index_t)(block * SLAB_COLUMNS + j) * SHARED_WIDTH + c], x,
                                      z[s * SLAB_COLUMNS + j]);
    }
  }
}
#endif

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void solve_shared(
    __global const STORED* b, __global const double* q, __global const double* r,
    __global const double* weights, __global const double* powers, __global double* scratch,
    __global STORED* x, SharedShape shape) {
  DECLARE_SHARED_ROOM(room);
#pragma unroll 1
  for (int block = SLABS_ACROSS - 1; block >= 0; --block) {
    double sums[SIDES * SLAB_COLUMNS];
    clear_sums(sums, SIDES * SLAB_COLUMNS);
#pragma unroll 1
    for (int first = 0; first < shape.data_rows; first += SLAB_ROWS) {
      const int rows = min(SLAB_ROWS, shape.data_rows - first);
      take_slab_and_sides(room, q, weights, b, block, first, rows, shape.data_rows, &shape);
#pragma unroll 1
      for (int row = 0; row < rows; row += TAKEN_ROWS) {
        STORED stored[TAKEN];
        double wide[TAKEN];
        take_rows(room, stored, b, first, row, &shape);
        widen_rows(room, stored, row, wide);
        add_products(room, wide, row, sums);
      }
    }
#if SLABS_ACROSS > 1
    subtract_later(r, scratch, sums, block, &shape);
#endif
    solve_block(r, sums, block);
#pragma unroll
    for (int s = 0; s < SIDES; ++s) {
      const index_t side = number_of_side(s, &shape);
#pragma unroll
      for (int j = 0; j < SLAB_COLUMNS; ++j) {
        const int column = block * SLAB_COLUMNS + j;
#if SLABS_ACROSS > 1
        if (side_exists(s, &shape))
          scratch[column * shape.count + side] = sums[s * SLAB_COLUMNS + j];
#endif
        if (side_exists(s, &shape) && column < COLUMNS)
          x[place_of_x(side, column, &shape)] =
              (STORED)(sums[s * SLAB_COLUMNS + j] * powers[column]);
      }
    }
  }
}

// ---- the check

// What is known of a right side: sums of squares.
typedef struct {
  double b, r, data, x, g, transposed;
} SideSquares;

INLINE void judge_side(index_t side, const SideSquares* squares, __global SolutionErrors* errors,
                       __global const double* inverse_norms, __global STORED* se,
                       const SharedShape* shape) {
  const double b = sqrt(squares->b), x = sqrt(squares->x), r = sqrt(squares->r);
  const bool counts = has_safe_squares(b) && has_safe_squares(x);
  SolutionErrors of_x;
  of_x.residual_norm = sqrt(squares->data);
  of_x.error = counts ? least_bound(shape->norm, b, x, r, sqrt(squares->g),
                                    sqrt(squares->transposed))
                      : NAN;
  errors[side] = of_x;
  // se_j = sigma ||row j of R^-1||
  const double sigma = r / shape->root_freedom;
  for (int j = 0; j < COLUMNS && shape->wants_se; ++j)
    se[place_of_x(side, j, shape)] = (STORED)(sigma * inverse_norms[j]);
}

// y := R^-T y within a block.
INLINE void solve_block_transposed(__global const double* r, double y[SLAB_COLUMNS], int block) {
  __global const double* corner =
      r + (index_t)block * SLAB_COLUMNS * SHARED_WIDTH + block * SLAB_COLUMNS;
#pragma unroll
  for (int i = 0; i < SLAB_COLUMNS; ++i) {
    y[i] *= corner[i * SHARED_WIDTH + i];
#pragma unroll
    for (int j = 0; j < SLAB_COLUMNS; ++j)
      if (j > i) y[j] = fma(-corner[i * SHARED_WIDTH + j], y[i], y[j]);
  }
}

INLINE double squares_of(const double* v, const int count) {
  double sum = 0;
#pragma unroll
  for (int e = 0; e < count; ++e) sum = fma(v[e], v[e], sum);
  return sum;
}

#if SLABS_ACROSS == 1
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void check_shared(
    __global const STORED* b, __global const double* a, __global const double* r,
    __global const double* weights, __global const double* powers, __global const STORED* all_x,
    __global const double* inverse_norms, __global SolutionErrors* errors, __global STORED* se,
    SharedShape shape) {
  DECLARE_SHARED_ROOM(room);
  double x[SIDES * SLAB_COLUMNS], g[SIDES * SLAB_COLUMNS], b_squares[SIDES], r_squares[SIDES],
      data_squares[SIDES];
  take_x(x, all_x, powers, 0, &shape);
  clear_sums(g, SIDES * SLAB_COLUMNS);
  clear_sums(b_squares, SIDES);
  clear_sums(r_squares, SIDES);
  clear_sums(data_squares, SIDES);
#pragma unroll 1
  for (int first = 0; first < shape.m; first += SLAB_ROWS) {
    const int rows = min(SLAB_ROWS, shape.m - first);
    take_slab_and_sides(room, a, weights, b, 0, first, rows, shape.m, &shape);
#pragma unroll 1
    for (int row = 0; row < rows; row += TAKEN_ROWS) {
      STORED stored[TAKEN];
      double residual[TAKEN];
      take_rows(room, stored, b, first, row, &shape);
      widen_rows(room, stored, row, residual);
#pragma unroll
      for (int s = 0; s < SIDES; ++s)
        b_squares[s] += squares_of(residual + s * TAKEN_ROWS, TAKEN_ROWS);
      subtract_products(room, residual, row, x);
      add_products(room, residual, row, g);
#pragma unroll
      for (int s = 0; s < SIDES; ++s) {
#pragma unroll
        for (int k = 0; k < TAKEN_ROWS; ++k) {
          const double square = residual[s * TAKEN_ROWS + k] * residual[s * TAKEN_ROWS + k];
          r_squares[s] += square;
          data_squares[s] += first + row + k < shape.data_rows ? square : 0;
        }
      }
    }
  }
#pragma unroll
  for (int s = 0; s < SIDES; ++s) {
    SideSquares squares;
    squares.b = b_squares[s];
    squares.r = r_squares[s];
    squares.data = data_squares[s];
    squares.x = squares_of(x + s * SLAB_COLUMNS, SLAB_COLUMNS);
    squares.g = squares_of(g + s * SLAB_COLUMNS, SLAB_COLUMNS);
    solve_block_transposed(r, g + s * SLAB_COLUMNS, 0);
    squares.transposed = squares_of(g + s * SLAB_COLUMNS, SLAB_COLUMNS);
    if (side_exists(s, &shape))
      judge_side(number_of_side(s, &shape), &squares, errors, inverse_norms, se, &shape);
  }
}
#else
// scratch: row 0 b'b, rows 1 .. m r, then SHARED_WIDTH rows for R^-T g.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void find_residuals(
    __global const STORED* b, __global const double* a, __global const double* weights,
    __global const double* powers, __global const STORED* all_x, __global double* scratch,
    SharedShape shape) {
  DECLARE_SHARED_ROOM(room);
  double b_squares[SIDES];
  clear_sums(b_squares, SIDES);
#pragma unroll 1
  for (int first = 0; first < shape.m; first += SLAB_ROWS) {
    take_sides(room, b, first, &shape);
#pragma unroll 1
    for (int row = 0; row < min(SLAB_ROWS, shape.m - first); row += TAKEN_ROWS) {
      const int from = first + row, left = shape.m - from;
      STORED stored[TAKEN];
      double residual[TAKEN];
      take_rows(room, stored, b, first, row, &shape);
#pragma unroll 1
      for (int block = 0; block < SLABS_ACROSS; ++block) {
        take_slab(room, a, weights, block, from, min(TAKEN_ROWS, left), shape.m);
        if (block == 0) {
          widen_rows(room, stored, 0, residual);
#pragma unroll
          for (int s = 0; s < SIDES; ++s)
            b_squares[s] += squares_of(residual + s * TAKEN_ROWS, TAKEN_ROWS);
        }
        double x[SIDES * SLAB_COLUMNS];
        take_x(x, all_x, powers, block, &shape);
        subtract_products(room, residual, 0, x);
      }
#pragma unroll
      for (int s = 0; s < SIDES; ++s) {
#pragma unroll
        for (int k = 0; k < TAKEN_ROWS; ++k)
          if (side_exists(s, &shape) && k < left)
            scratch[(1 + from + k) * shape.count + number_of_side(s, &shape)] =
                residual[s * TAKEN_ROWS + k];
      }
    }
  }
#pragma unroll
  for (int s = 0; s < SIDES; ++s)
    if (side_exists(s, &shape)) scratch[number_of_side(s, &shape)] = b_squares[s];
}

// y -= R(earlier, block)' y(earlier) for y = R^-T g, whose entries are rows `from` .. of scratch.
INLINE void subtract_earlier(__global const double* r, __global const double* from,
                             double y[SLAB_COLUMNS], int block, index_t count) {
#pragma unroll 1
  for (int c = 0; c < block * SLAB_COLUMNS; ++c) {
    const double known = from[c * count];
#pragma unroll
    for (int j = 0; j < SLAB_COLUMNS; ++j)
      y[j] = fma(-r[(index_t)c * SHARED_WIDTH + block * SLAB_COLUMNS + j], known, y[j]);
  }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void check_residuals(
    __global double* scratch, __global const double* a, __global const double* r,
    __global const double* weights, __global const double* powers, __global const STORED* all_x,
    __global const double* inverse_norms, __global SolutionErrors* errors, __global STORED* se,
    SharedShape shape) {
  DECLARE_SHARED_ROOM(room);
  SideSquares squares[SIDES];
#pragma unroll
  for (int s = 0; s < SIDES; ++s) {
    squares[s].b = scratch[number_of_side(s, &shape)];
    squares[s].r = squares[s].data = squares[s].x = squares[s].g = squares[s].transposed = 0;
  }
  // R^-T g, after r.
  __global double* solved = scratch + (shape.m + 1) * shape.count;
#pragma unroll 1
  for (int block = 0; block < SLABS_ACROSS; ++block) {
    double g[SIDES * SLAB_COLUMNS], x[SIDES * SLAB_COLUMNS];
    clear_sums(g, SIDES * SLAB_COLUMNS);
#pragma unroll 1
    for (int first = 0; first < shape.m; first += SLAB_ROWS) {
      const int rows = min(SLAB_ROWS, shape.m - first);
      take_slab(room, a, weights, block, first, rows, shape.m);
#pragma unroll 1
      for (int row = 0; row < rows; row += TAKEN_ROWS) {
        double residual[TAKEN];
#pragma unroll
        for (int k = 0; k < TAKEN_ROWS; ++k) {
          const int i = first + row + k;
#pragma unroll
          for (int s = 0; s < SIDES; ++s) {
            const double e =
                i < shape.m ? scratch[(1 + i) * shape.count + number_of_side(s, &shape)] : 0;
            residual[s * TAKEN_ROWS + k] = e;
            squares[s].r += block == 0 ? e * e : 0;
            squares[s].data += block == 0 && i < shape.data_rows ? e * e : 0;
          }
        }
        add_products(room, residual, row, g);
      }
    }
    take_x(x, all_x, powers, block, &shape);
#pragma unroll
    for (int s = 0; s < SIDES; ++s) {
      const index_t side = number_of_side(s, &shape);
      double* y = g + s * SLAB_COLUMNS;
      squares[s].x += squares_of(x + s * SLAB_COLUMNS, SLAB_COLUMNS);
      squares[s].g += squares_of(y, SLAB_COLUMNS);
      subtract_earlier(r, solved + side, y, block, shape.count);
      solve_block_transposed(r, y, block);
      squares[s].transposed += squares_of(y, SLAB_COLUMNS);
#pragma unroll
      for (int j = 0; j < SLAB_COLUMNS; ++j)
        if (side_exists(s, &shape)) solved[(block * SLAB_COLUMNS + j) * shape.count + side] = y[j];
    }
  }
#pragma unroll
  for (int s = 0; s < SIDES; ++s)
    if (side_exists(s, &shape))
      judge_side(number_of_side(s, &shape), &squares[s], errors, inverse_norms, se, &shape);
}
#endif
