// SPDX-License-Identifier: Apache-2.0
// large.cl: Householder QR of a batch, panel by panel, compact WY (LAPACK geqrf, orgqr).
//
//   step               what it does                                              group per
//   scale_columns      A -> work = A D, D = diag(2^-e_j), largest entry 1/2..1   matrix x 32
//   columns per panel of PANEL_WIDTH columns, j = 0, nb, 2nb, ...
//     factor_panel     work(j:m, j:j+nb) -> V\R and tau (geqr2), then
//       form_t         V, tau -> T, H_1 .. H_nb = I - V T V'   (larft)           matrix
//     update_trailing  C := (I - V T' V') C                    (larfb)           matrix x strip
//   store_r            R := R D^-1 with signs; or store_v and store_tau          matrix x 32 rows
//   form_q             Q := (I - V T V') Q, panels in reverse  (orgqr)           matrix x strip
//   store_q            rounds Q where it was computed in a wider type            any
//
//        j   j+nb        n
//      R | R  |  R       |      rows above j: finished
//    j --+----+----------|
//        | V\R| C        |      panel | trailing matrix, cut into strips of STRIP_COLUMNS
//
// A strip of Q needs only itself and the reflectors: one work-group takes it through all panels.
// The panel at row j touches Q[j:, j:] only; columns of the identity are made, not read.
//
// Defines, set in variants/large.cpp     range            meaning
//   STORED, REAL, SUB_GROUP_BODY                          common.clh
//   PANEL_WIDTH                          8, 16, 32        columns per panel (nb)
//   GROUP_SIZE                           64..256, 2^k     work-items per group, >= STRIP_COLUMNS
//   STRIP_COLUMNS                        16, 32           trailing columns per work-group
//   TILE_ROWS                            GROUP_SIZE / STRIP_COLUMNS * 1..8   rows per local tile
// Local memory: update_trailing and form_q (TILE_ROWS (PANEL_WIDTH + STRIP_COLUMNS)
//   + PANEL_WIDTH (PANEL_WIDTH + STRIP_COLUMNS)) REAL; factor_panel 2 (GROUP_SIZE + PANEL_WIDTH^2).
// Work buffers per matrix: work m x n REAL, exponents n int, taus k REAL, T per panel nb x nb REAL.
// A NaN or Inf makes its own matrix NaN: nothing is shared between matrices.
#include "common.clh"

#ifndef PANEL_WIDTH
#define PANEL_WIDTH 16
#endif
#ifndef GROUP_SIZE
#define GROUP_SIZE 256
#endif
#ifndef STRIP_COLUMNS
#define STRIP_COLUMNS 32
#endif
#ifndef TILE_ROWS
#define TILE_ROWS 32
#endif

// Work-items form rows of one item per column.
#define SCAN_COLUMNS 32
#define SCAN_LANES (GROUP_SIZE / SCAN_COLUMNS)
#define PANEL_LANES (GROUP_SIZE / PANEL_WIDTH)
#define STRIP_LANES (GROUP_SIZE / STRIP_COLUMNS)
#define LANE_ROWS (TILE_ROWS / STRIP_LANES)
#define LANE_PANEL (PANEL_WIDTH / STRIP_LANES)
// Terms that are added plainly before a compensated sum takes them over.
#define SUM_ROWS 16

#define FENCE (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define GROUP __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1)))

// work := A D
__kernel GROUP void scale_columns(__global const STORED* a, __global REAL* work,
                                  __global int* exponents, FactorShape shape) {
  __local STORED largest_of[GROUP_SIZE];
  __local int bad_of[GROUP_SIZE];
  const int strips = (shape.n + SCAN_COLUMNS - 1) / SCAN_COLUMNS;
  index_t matrix;
  const int strip = split_group(strips, &matrix);
  const int item = get_local_id(0), lane = item / SCAN_COLUMNS;
  const int col = strip * SCAN_COLUMNS + item % SCAN_COLUMNS;
  a += matrix * shape.m * shape.n;
  work += matrix * shape.m * shape.n;
  exponents += matrix * shape.n;

  STORED largest = 0;
  int is_bad = 0;
  for (int row = lane; row < shape.m && col < shape.n; row += SCAN_LANES) {
    const STORED x = a[(index_t)row * shape.n + col];
    largest = fmax(largest, fabs(x));
    is_bad |= !isfinite(x);
  }
  largest_of[item] = largest;
  bad_of[item] = is_bad;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int other = item % SCAN_COLUMNS; other < GROUP_SIZE; other += SCAN_COLUMNS) {
    largest = fmax(largest, largest_of[other]);
    is_bad |= bad_of[other];
  }
  const int code = magnitude_code(largest, !is_bad);
  if (lane == 0 && col < shape.n) exponents[col] = code;
  for (int row = lane; row < shape.m && col < shape.n; row += SCAN_LANES) {
    const index_t at = (index_t)row * shape.n + col;
    work[at] = scale_by((REAL)a[at], -scale_of(code));
  }
}

// T row by row: T(i, i) = tau_i, T(i, c) = -tau_c sum_l T(i, l) gram(l, c), l = i..c-1, where
// gram(l, c) = v_l' v_c. Rows do not depend on each other.
INLINE void form_t(__local const REAL* gram, __local const REAL* taus, __local REAL* t) {
  const int i = get_local_id(0);
  if (i < PANEL_WIDTH) {
    for (int c = 0; c < PANEL_WIDTH; ++c) {
      REAL sum = 0;
      for (int l = i; l < c; ++l) sum = fma(t[i * PANEL_WIDTH + l], gram[l * PANEL_WIDTH + c], sum);
      t[i * PANEL_WIDTH + c] = c < i ? (REAL)0 : c == i ? taus[i] : -taus[c] * sum;
    }
  }
}

// The panel's column c meets all columns p in one pass: dot products with columns to its right
// give the update, those with finished reflectors to its left give the Gram matrix for T.
__kernel GROUP void factor_panel(__global REAL* work, __global REAL* taus, __global REAL* t,
                                 FactorShape shape, PanelShape panel) {
  __local REAL dots[GROUP_SIZE], raised[GROUP_SIZE];
  __local REAL gram[PANEL_WIDTH * PANEL_WIDTH], t_tile[PANEL_WIDTH * PANEL_WIDTH];
  __local REAL tau_of[PANEL_WIDTH];
  const index_t matrix = get_group_id(0), ld = shape.n;
  const int item = get_local_id(0), p = item % PANEL_WIDTH, lane = item / PANEL_WIDTH;
  const int panels = (shape.k + PANEL_WIDTH - 1) / PANEL_WIDTH;
  const int m = shape.m;
  const bool in_panel = p < panel.width;
  __global REAL* a = work + matrix * m * ld + panel.first;  // the panel's columns
  taus += matrix * shape.k + panel.first;
  t += (matrix * panels + panel.first / PANEL_WIDTH) * PANEL_WIDTH * PANEL_WIDTH;

  for (int i = item; i < PANEL_WIDTH * PANEL_WIDTH; i += GROUP_SIZE) gram[i] = 0;
  if (item < PANEL_WIDTH) tau_of[item] = 0;
  REAL last_inverse = 0;  // column c-1 is scaled by this while column c is worked on
  barrier(CLK_LOCAL_MEM_FENCE);

#pragma unroll 1
  for (int c = 0; c < panel.width; ++c) {
    const int top_row = panel.first + c;
    const REAL own_scale = p == c - 1 ? last_inverse : (REAL)1;
    const REAL alpha = a[top_row * ld + c];
    const REAL top = in_panel ? a[top_row * ld + p] * own_scale : (REAL)0;
    REAL sum = 0, sum_rest = 0, raised_sum = 0, raised_rest = 0;
    for (int first = top_row + 1 + lane; first < m; first += PANEL_LANES * SUM_ROWS) {
      REAL part = 0, raised_part = 0;
      for (int i = 0; i < SUM_ROWS; ++i) {
        const index_t row = first + i * PANEL_LANES;
        if (row < m && in_panel) {
          const REAL x = a[row * ld + c], raised_x = x * RAISE;
          part = fma(x, a[row * ld + p] * own_scale, part);
          raised_part = fma(raised_x, raised_x, raised_part);
        }
      }
      add_compensated(part, &sum, &sum_rest);
      add_compensated(raised_part, &raised_sum, &raised_rest);
    }
    dots[item] = sum;
    raised[item] = raised_sum;
    barrier(FENCE);  // global too: alpha and top are read before others write them

    REAL dot = 0, tail = 0, raised_tail = 0;  // x'a_p, x'x
    for (int other = 0; other < PANEL_LANES; ++other) {
      dot += dots[other * PANEL_WIDTH + p];
      tail += dots[other * PANEL_WIDTH + c];
      raised_tail += raised[other * PANEL_WIDTH + c];
    }
    const Reflector h = make_reflector(alpha, tail, raised_tail);
    const REAL product = fma(h.inverse, dot, top);  // v'a_p

    if (lane == 0 && p < c) gram[p * PANEL_WIDTH + c] = product;
    if (item == 0) {
      tau_of[c] = h.tau;
      taus[c] = h.tau;
      a[top_row * ld + c] = h.beta;
    }
    if (p > c && in_panel) {
      // a_p -= tau v (v'a_p)
      const REAL weight = h.tau * product;
      const REAL below = weight * h.inverse;
      if (lane == 0) a[top_row * ld + p] = top - weight;
      for (index_t row = top_row + 1 + lane; row < m; row += PANEL_LANES) {
        a[row * ld + p] = fma(-below, a[row * ld + c], a[row * ld + p]);
      }
    }
    if (p == c - 1) {
      for (index_t row = top_row + lane; row < m; row += PANEL_LANES) a[row * ld + p] *= own_scale;
    }
    last_inverse = h.inverse;
    barrier(FENCE);
  }
  if (p == panel.width - 1) {
    for (index_t row = panel.first + panel.width + lane; row < m; row += PANEL_LANES) {
      a[row * ld + p] *= last_inverse;
    }
  }
  form_t(gram, tau_of, t_tile);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = item; i < PANEL_WIDTH * PANEL_WIDTH; i += GROUP_SIZE) t[i] = t_tile[i];
}

// A strip of C, or of Q: where the columns lie, and what stands in rows that nobody has written yet
// (columns of the identity, times a sign).
typedef struct {
  __global REAL* data;  // entry (0, first column of the strip)
  index_t ld;
  int columns;     // of the strip
  int fresh_rows;  // rows above this are made
  int one_row;     // row of this work-item's column that holds `one`
  REAL one, zero;  // sign and 0; both NaN where A is not finite
} Strip;

INLINE REAL load_strip(const Strip* strip, int row, int col) {
  if (row < strip->fresh_rows) return row == strip->one_row ? strip->one : strip->zero;
  return strip->data[row * strip->ld + col];
}

// v_tile := rows first..first+TILE_ROWS-1 of V: ones on its diagonal, zeros above it.
INLINE void load_v(__global const REAL* v, index_t ld, int m, int first, const PanelShape* panel,
                   __local REAL* v_tile) {
  for (int i = get_local_id(0); i < TILE_ROWS * PANEL_WIDTH; i += GROUP_SIZE) {
    const int row = first + i / PANEL_WIDTH, p = i % PANEL_WIDTH, one_row = panel->first + p;
    REAL x = 0;
    if (row < m && p < panel->width && row >= one_row)
      x = row == one_row ? (REAL)1 : v[row * ld + p];
    v_tile[i] = x;
  }
}

// W := V'C, each work-item LANE_PANEL entries of its column.
INLINE void multiply_vc(__global const REAL* v, index_t ld, int m, const PanelShape* panel,
                        const Strip* strip, __local REAL* v_tile, __local REAL* c_tile,
                        __local REAL* w) {
  const int item = get_local_id(0), col = item % STRIP_COLUMNS, lane = item / STRIP_COLUMNS;
  REAL sum[LANE_PANEL], rest[LANE_PANEL];
#pragma unroll
  for (int q = 0; q < LANE_PANEL; ++q) sum[q] = rest[q] = 0;
#pragma unroll 1
  for (int first = panel->first; first < m; first += TILE_ROWS) {
    load_v(v, ld, m, first, panel, v_tile);
    for (int i = lane; i < TILE_ROWS; i += STRIP_LANES) {
      const bool inside = first + i < m && col < strip->columns;
      c_tile[i * STRIP_COLUMNS + col] = inside ? load_strip(strip, first + i, col) : (REAL)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    REAL part[LANE_PANEL];
#pragma unroll
    for (int q = 0; q < LANE_PANEL; ++q) part[q] = 0;
    for (int i = 0; i < TILE_ROWS; ++i) {
      const REAL c = c_tile[i * STRIP_COLUMNS + col];
#pragma unroll
      for (int q = 0; q < LANE_PANEL; ++q) {
        part[q] = fma(v_tile[i * PANEL_WIDTH + lane * LANE_PANEL + q], c, part[q]);
      }
    }
#pragma unroll
    for (int q = 0; q < LANE_PANEL; ++q) add_compensated(part[q], &sum[q], &rest[q]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#pragma unroll
  for (int q = 0; q < LANE_PANEL; ++q) w[(lane * LANE_PANEL + q) * STRIP_COLUMNS + col] = sum[q];
}

// W := T W, or T'W.
INLINE void multiply_tw(__global const REAL* t, const bool transposed, __local REAL* t_tile,
                        __local REAL* w) {
  const int item = get_local_id(0), col = item % STRIP_COLUMNS, lane = item / STRIP_COLUMNS;
  for (int i = item; i < PANEL_WIDTH * PANEL_WIDTH; i += GROUP_SIZE) t_tile[i] = t[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  REAL sum[LANE_PANEL];
#pragma unroll
  for (int q = 0; q < LANE_PANEL; ++q) sum[q] = 0;
  for (int l = 0; l < PANEL_WIDTH; ++l) {
    const REAL x = w[l * STRIP_COLUMNS + col];
#pragma unroll
    for (int q = 0; q < LANE_PANEL; ++q) {
      const int p = lane * LANE_PANEL + q;
      sum[q] = fma(t_tile[transposed ? l * PANEL_WIDTH + p : p * PANEL_WIDTH + l], x, sum[q]);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int q = 0; q < LANE_PANEL; ++q) w[(lane * LANE_PANEL + q) * STRIP_COLUMNS + col] = sum[q];
  barrier(CLK_LOCAL_MEM_FENCE);
}

// C := C - V W
INLINE void subtract_vw(__global const REAL* v, index_t ld, int m, const PanelShape* panel,
                        const Strip* strip, __local REAL* v_tile, __local const REAL* w) {
  const int item = get_local_id(0), col = item % STRIP_COLUMNS, lane = item / STRIP_COLUMNS;
#pragma unroll 1
  for (int first = panel->first; first < m; first += TILE_ROWS) {
    load_v(v, ld, m, first, panel, v_tile);
    barrier(CLK_LOCAL_MEM_FENCE);
    REAL sum[LANE_ROWS];
#pragma unroll
    for (int r = 0; r < LANE_ROWS; ++r) sum[r] = 0;
    for (int p = 0; p < PANEL_WIDTH; ++p) {
      const REAL x = w[p * STRIP_COLUMNS + col];
#pragma unroll
      for (int r = 0; r < LANE_ROWS; ++r) {
        sum[r] = fma(v_tile[(lane + r * STRIP_LANES) * PANEL_WIDTH + p], x, sum[r]);
      }
    }
#pragma unroll
    for (int r = 0; r < LANE_ROWS; ++r) {
      const int row = first + lane + r * STRIP_LANES;
      if (row < m && col < strip->columns) {
        strip->data[row * strip->ld + col] = load_strip(strip, row, col) - sum[r];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

// C := (I - V T' V') C for the strip of trailing columns.
__kernel GROUP void update_trailing(__global REAL* work, __global const REAL* t, FactorShape shape,
                                    PanelShape panel) {
  __local REAL v_tile[TILE_ROWS * PANEL_WIDTH], c_tile[TILE_ROWS * STRIP_COLUMNS];
  __local REAL w[PANEL_WIDTH * STRIP_COLUMNS], t_tile[PANEL_WIDTH * PANEL_WIDTH];
  const int first_trailing = panel.first + panel.width;
  const int strips = (shape.n - first_trailing + STRIP_COLUMNS - 1) / STRIP_COLUMNS;
  index_t matrix;
  const int first_col = first_trailing + split_group(strips, &matrix) * STRIP_COLUMNS;
  const index_t ld = shape.n;
  const int panels = (shape.k + PANEL_WIDTH - 1) / PANEL_WIDTH;
  work += matrix * shape.m * ld;
  t += (matrix * panels + panel.first / PANEL_WIDTH) * PANEL_WIDTH * PANEL_WIDTH;

  const Strip strip = {work + first_col, ld, min(STRIP_COLUMNS, shape.n - first_col), 0, 0, 0, 0};
  __global const REAL* v = work + panel.first;
  multiply_vc(v, ld, shape.m, &panel, &strip, v_tile, c_tile, w);
  multiply_tw(t, true, t_tile, w);
  subtract_vw(v, ld, shape.m, &panel, &strip, v_tile, w);
}

// Q := (I - V T V') Q for panels last_panel..first_panel, one strip of Q's columns. A panel that
// lies right of the strip would change nothing and is left out.
__kernel GROUP void form_q(__global const REAL* work, __global const REAL* t,
                           __global const int* exponents, __global REAL* q, FactorShape shape,
                           PanelShape range) {
  __local REAL v_tile[TILE_ROWS * PANEL_WIDTH], c_tile[TILE_ROWS * STRIP_COLUMNS];
  __local REAL w[PANEL_WIDTH * STRIP_COLUMNS], t_tile[PANEL_WIDTH * PANEL_WIDTH];
  __local int code;
  const int strips = (shape.q_cols + STRIP_COLUMNS - 1) / STRIP_COLUMNS;
  index_t matrix;
  const int first_col = split_group(strips, &matrix) * STRIP_COLUMNS;
  const index_t ld = shape.n;
  const int col = first_col + get_local_id(0) % STRIP_COLUMNS;
  const int panels = (shape.k + PANEL_WIDTH - 1) / PANEL_WIDTH;
  work += matrix * shape.m * ld;
  t += matrix * panels * PANEL_WIDTH * PANEL_WIDTH;
  q += matrix * shape.m * shape.q_cols;

  const bool is_finite = code_of_matrix(exponents + matrix * shape.n, shape.n, &code, GROUP_SIZE) !=
                         MAGNITUDE_NON_FINITE;
  const bool flips = shape.positive && col < shape.k && work[col * ld + col] < 0;
  Strip strip = {
      q + first_col, shape.q_cols, min(STRIP_COLUMNS, shape.q_cols - first_col), 0, col, 0, 0};
  strip.one = is_finite ? (flips ? (REAL)-1 : (REAL)1) : (REAL)NAN;
  strip.zero = is_finite ? (REAL)0 : (REAL)NAN;

  const int start = min((first_col + strip.columns - 1) / PANEL_WIDTH, panels - 1);
#pragma unroll 1
  for (int i = min(start, range.last_panel); i >= range.first_panel; --i) {
    PanelShape panel = {i * PANEL_WIDTH, min(PANEL_WIDTH, shape.k - i * PANEL_WIDTH), 0, 0};
    strip.fresh_rows = i == start ? shape.m : min(shape.m, panel.first + PANEL_WIDTH);
    __global const REAL* v = work + panel.first;
    multiply_vc(v, ld, shape.m, &panel, &strip, v_tile, c_tile, w);
    multiply_tw(t + (index_t)i * PANEL_WIDTH * PANEL_WIDTH, false, t_tile, w);
    subtract_vw(v, ld, shape.m, &panel, &strip, v_tile, w);
  }
}

// ---- results

// Entry (row, col) of R, row <= col: unscaled, its row's sign flipped where R_ii must be positive.
// + 0 turns -0 into +0.
INLINE STORED entry_of_r(__global const REAL* work, __global const int* exponents,
                         FactorShape shape, int row, int col) {
  const index_t ld = shape.n;
  const bool flips = shape.positive && work[row * ld + row] < 0;
  const REAL x = work[row * ld + col];
  return (STORED)scale_by(flips ? -x : x, scale_of(exponents[col])) + (STORED)0;
}

// R := R D^-1, 32 rows per group; the code of the matrix goes to `magnitudes`.
__kernel GROUP void store_r(__global const REAL* work, __global const int* exponents,
                            __global STORED* r, __global int* magnitudes, FactorShape shape) {
  __local int code;
  const int blocks = (shape.r_rows + 31) / 32;
  index_t matrix;
  const int block = split_group(blocks, &matrix), rows = min(32, shape.r_rows - 32 * block);
  work += matrix * shape.m * shape.n;
  exponents += matrix * shape.n;
  r += matrix * shape.r_rows * shape.n;

  const bool is_finite =
      code_of_matrix(exponents, shape.n, &code, GROUP_SIZE) != MAGNITUDE_NON_FINITE;
  if (block == 0 && get_local_id(0) == 0) magnitudes[matrix] = code;
  for (index_t i = get_local_id(0); i < (index_t)rows * shape.n; i += GROUP_SIZE) {
    const int in_block = (int)(i / shape.n), col = (int)(i - (index_t)in_block * shape.n);
    const int row = 32 * block + in_block;
    const STORED x = row <= col ? entry_of_r(work, exponents, shape, row, col) : (STORED)0;
    r[(index_t)row * shape.n + col] = is_finite ? x : (STORED)NAN;
  }
}

// V\R as LAPACK's geqrf leaves it, 32 rows per group.
__kernel GROUP void store_v(__global const REAL* work, __global const int* exponents,
                            __global STORED* v, __global int* magnitudes, FactorShape shape) {
  __local int code;
  const int blocks = (shape.m + 31) / 32;
  index_t matrix;
  const int block = split_group(blocks, &matrix), rows = min(32, shape.m - 32 * block);
  work += matrix * shape.m * shape.n;
  exponents += matrix * shape.n;
  v += matrix * shape.m * shape.n;

  const bool is_finite =
      code_of_matrix(exponents, shape.n, &code, GROUP_SIZE) != MAGNITUDE_NON_FINITE;
  if (block == 0 && get_local_id(0) == 0) magnitudes[matrix] = code;
  for (index_t i = get_local_id(0); i < (index_t)rows * shape.n; i += GROUP_SIZE) {
    const int in_block = (int)(i / shape.n), col = (int)(i - (index_t)in_block * shape.n);
    const int row = 32 * block + in_block;
    const index_t at = (index_t)row * shape.n + col;
    const STORED x = row <= col ? entry_of_r(work, exponents, shape, row, col) : (STORED)work[at];
    v[at] = is_finite ? x : (STORED)NAN;
  }
}

// tau; where V was rounded, tau = 2 / v'v of the rounded v keeps I - tau v v' orthogonal.
__kernel GROUP void store_tau(__global const REAL* taus, __global const STORED* v,
                              __global const int* magnitudes, __global STORED* tau,
                              FactorShape shape) {
  const index_t i = get_global_id(0), matrix = i / shape.k;
  const int col = (int)(i - matrix * shape.k);
  if (matrix < shape.count) {
    REAL x = taus[i];
    if (sizeof(STORED) < sizeof(REAL) && x != 0) {
      REAL sum = 1;
      for (index_t row = col + 1; row < shape.m; ++row) {
        const REAL y = v[(matrix * shape.m + row) * shape.n + col];
        sum = fma(y, y, sum);
      }
      x = 2 / sum;
    }
    tau[i] = magnitudes[matrix] == MAGNITUDE_NON_FINITE ? (STORED)NAN : (STORED)x;
  }
}

__kernel GROUP void store_q(__global const REAL* wide_q, __global STORED* q, FactorShape shape) {
  const index_t i = get_global_id(0);
  if (i < (index_t)shape.count * shape.m * shape.q_cols) q[i] = (STORED)wide_q[i];
}
