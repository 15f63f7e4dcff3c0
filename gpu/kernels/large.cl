// SPDX-License-Identifier: Apache-2.0
// large.cl: Householder QR of matrices of any shape, in blocks of panels, compact WY (LAPACK geqrf,
// orhr_col, orgqr). The products with many terms are those of gemm.cl.
//
//   step                 what it does                                             group per
//   scale_columns        A -> work = A D, D = diag(2^-e_j), largest entry 1/2..1    matrix x 32
//   blocks of BLOCK columns; in a block, panels P of PANEL columns:
//     gram_panel         sums of P'P in float64                                     matrix x slab
//     sum_gram           G = P'P                                                    matrix x part
//     factor_panel       G = R'R (Cholesky); P1 + S R = V1 W (LU), P1 the top
//                        square, S the signs of its pivots; R_panel = -S R          matrix
//     form_v             V2 = P2 W^-1; T = W R^-1 S V1^-T                           matrix x rows
//     transposed_product Z = V'[V of panels before | rest of the block]             gemm.cl
//     apply_panel_t      Z := T'Z; the left part is -X, for the block's T           matrix x strip
//     subtract_product   rest of the block -= V Z                                   gemm.cl
//   then for the block   Z = V'C, Z := T'Z (apply_t), C -= V Z                      gemm.cl
//   store_r              R := R D^-1 with signs; or finish_v and store_tau          any
//   form_q, blocks in reverse: load_v, begin_q, Z = V'Q, Z := T Z, Q -= V Z         any
//
//        J    j    j+PANEL  J+BLOCK          v: the block's reflectors, zeros above their diagonal,
//      R | R  | R  |  R   |   R      |          in a buffer of their own
//    J --+----+----+------+----------|       x: T of the block is kept as X, T_p on the diagonal and
//        | V\R|  R |  R   | C        |          -V_i'V_p T_p above it: T' is applied panel by panel
//    j   |    +----+------|          |
//        |    | P  | rest |          |
//
// Why the Gram matrix: a column by column panel waits for all of its rows once a column. A Gram
// matrix in float64 of a float32 panel has the R factor with an error of 2^-53 cond(P)^2, columns
// scaled, and costs one pass. Householder vectors follow from it (Ballard et al., Reconstructing
// Householder vectors from TSQR), with LAPACK's signs, at one more. Where ||R^-1 diag(G)^1/2||_F^2
// exceeds GRAM_LIMIT, or a pivot vanishes, factor_panel takes the panel column by column itself, as
// it always does in float64 (GRAM 0): one group, slow, any matrix.
//
// Defines, set in variants/large.cpp     range            meaning
//   STORED, REAL, SUB_GROUP_BODY                          common.clh
//   GRAM                                 0, 1             panels by Gram matrices; REAL is float
//   PANEL                                32, 64           columns per panel, NARROW_N
//   BLOCK                                PANEL 1..4       columns per block
//   STRIP, PANEL_STRIP                   8, 16, 32        columns of Z per group of apply_t, of
//                                                         apply_panel_t
//   and those of gemm.cl
// Local memory: BLOCK STRIP REAL; factor_panel PANEL^2 + 512 REAL; form_v 32 KiB.
// Buffers per matrix: work m x ld (may be the one of Q, V or R), codes n int, signs and taus k REAL,
// X per block BLOCK x BLOCK REAL, v m x v_ld REAL, Z, and with GRAM sums of slabs and 4 squares in
// double. A NaN or Inf makes its own matrix NaN: nothing is shared between matrices.
#include "gemm.cl"

#ifndef GRAM
#define GRAM 1
#endif
#ifndef PANEL
#define PANEL 64
#endif
#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef STRIP
#define STRIP 16
#endif
#ifndef PANEL_STRIP
#define PANEL_STRIP 8
#endif
#define GROUP_SIZE 256
#define FORM_GROUP 128
#define SQUARE (PANEL * PANEL)

// Work-items form rows of one item per column.
#define SCAN_COLUMNS 32
#define SCAN_LANES (GROUP_SIZE / SCAN_COLUMNS)
#define PANEL_LANES (GROUP_SIZE / PANEL)
// Terms that are added plainly before a compensated sum takes them over.
#define SUM_ROWS 16

#define FENCE (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define GROUP_OF(size) __attribute__((reqd_work_group_size(size, 1, 1)))
#define GROUP GROUP_OF(GROUP_SIZE)

// X of a block.
INLINE index_t x_offset(index_t matrix, FactorShape shape, int block) {
  const int blocks = (shape.k + BLOCK - 1) / BLOCK;
  return (matrix * blocks + block / BLOCK) * BLOCK * BLOCK;
}

// work := A D
__kernel GROUP void scale_columns(__global const STORED* a, __global REAL* work,
                                  __global int* codes, FactorShape shape, BlockShape at) {
  __local STORED largest_of[GROUP_SIZE];
  __local int bad_of[GROUP_SIZE];
  const int strips = (shape.n + SCAN_COLUMNS - 1) / SCAN_COLUMNS;
  index_t matrix;
  const int strip = split_group(strips, &matrix);
  const int item = get_local_id(0), lane = item / SCAN_COLUMNS;
  const int col = strip * SCAN_COLUMNS + item % SCAN_COLUMNS;
  a += matrix * shape.m * shape.n;
  work += matrix * shape.m * at.ld;
  codes += matrix * shape.n;

  STORED largest = 0;
  int is_bad = 0;
#pragma unroll 8
  for (int row = lane; row < (col < shape.n ? shape.m : 0); row += SCAN_LANES) {
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
  if (lane == 0 && col < shape.n) codes[col] = code;
#pragma unroll 8
  for (int row = lane; row < (col < shape.n ? shape.m : 0); row += SCAN_LANES) {
    work[(index_t)row * at.ld + col] =
        scale_by((REAL)a[(index_t)row * shape.n + col], -scale_of(code));
  }
}

// ---- panels

#if GRAM
#define GRAM_ROWS 32
#define EDGE (PANEL / 16)  // rows and columns of a work-item's part of a square
// Errors of G of 2^-53 PANEL times this stay below float32's.
#define GRAM_LIMIT 0x1p23f
// Sums of squares below this say nothing.
#define GRAM_LEAST 0x1p-200

// Sums of P'P over slabs of rows.
__kernel GROUP void gram_panel(__global const REAL* work, __global double* sums, FactorShape shape,
                               BlockShape at) {
  __local double tile[GRAM_ROWS * PANEL];
  index_t matrix;
  const int slab = split_group(at.gram_slabs, &matrix);
  const int item = get_local_id(0), across = item % 16 * EDGE, down = item / 16 * EDGE;
  const int first = at.first + slab * at.slab_rows, last = min(shape.m, first + at.slab_rows);
  work += matrix * shape.m * at.ld + at.first;
  double sum[EDGE][EDGE];
#pragma unroll
  for (int i = 0; i < EDGE; ++i) {
#pragma unroll
    for (int j = 0; j < EDGE; ++j) sum[i][j] = 0;
  }
#pragma unroll 1
  for (int top = first; top < last; top += GRAM_ROWS) {
#pragma unroll
    for (int i = 0; i < GRAM_ROWS * PANEL / GROUP_SIZE; ++i) {
      const int entry = item + i * GROUP_SIZE, row = top + entry / PANEL, col = entry % PANEL;
      tile[entry] = row < last && col < at.width ? work[row * (index_t)at.ld + col] : (REAL)0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 4
    for (int r = 0; r < GRAM_ROWS; ++r) {
      double x[EDGE], y[EDGE];
#pragma unroll
      for (int i = 0; i < EDGE; ++i) {
        x[i] = tile[r * PANEL + down + i];
        y[i] = tile[r * PANEL + across + i];
      }
#pragma unroll
      for (int i = 0; i < EDGE; ++i) {
#pragma unroll
        for (int j = 0; j < EDGE; ++j) sum[i][j] = fma(x[i], y[j], sum[i][j]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  sums += (matrix * at.gram_slabs + slab) * SQUARE;
#pragma unroll
  for (int i = 0; i < EDGE; ++i) {
#pragma unroll
    for (int j = 0; j < EDGE; ++j) sums[(down + i) * PANEL + across + j] = sum[i][j];
  }
}

// G := sum over slabs, 32 entries per group, in a fixed order.
__kernel GROUP void sum_gram(__global const double* sums, __global double* squares,
                             BlockShape at) {
  __local double parts[GROUP_SIZE];
  index_t matrix;
  const int part = split_group(SQUARE / 32, &matrix);
  const int item = get_local_id(0), entry = part * 32 + item % 32;
  sums += matrix * at.gram_slabs * SQUARE;
  double sum = 0;
#pragma unroll 8
  for (int slab = item / 32; slab < at.gram_slabs; slab += GROUP_SIZE / 32) {
    sum += sums[slab * SQUARE + entry];
  }
  parts[item] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < 32) {
    for (int other = item + 32; other < GROUP_SIZE; other += 32) sum += parts[other];
    squares[matrix * 4 * SQUARE + entry] = sum;
  }
}

// 1 / sqrt(x) of a normal number: float32's, corrected twice.
INLINE double inverse_root(double x) {
  const int e = (int)(as_long(x) >> 52) - 1023, even = e & ~1;
  const double scaled = x * as_double((long)(1023 - even) << 52);  // 1 .. 4
#if SUB_GROUP_BODY == 1
  double y = native_rsqrt((float)scaled);
#else
  double y = 1 / sqrt((float)scaled);
#endif
  y = fma(y, fma(-0.5 * scaled * y, y, 0.5), y);
  y = fma(y, fma(-0.5 * scaled * y, y, 0.5), y);
  return y * as_double((long)(1023 - even / 2) << 52);
}
INLINE double inverse_of(double x) {
  const int e = (int)(as_long(x) >> 52) & 2047;
  const double scaled = x * as_double((long)(2046 - e) << 52);  // 1 .. 2 in size
#if SUB_GROUP_BODY == 1
  double y = native_recip((float)scaled);
#else
  double y = 1 / (float)scaled;
#endif
  y = fma(y, fma(-scaled, y, 1.0), y);
  y = fma(y, fma(-scaled, y, 1.0), y);
  return y * as_double((long)(2046 - e) << 52);
}

// What the group shows of step i: row i of G and P, column i of P, row i of X, by turns.
typedef struct {
  __local double *g, *p, *q;  // 2 PANEL each
  __local float* x;           // 2 PANEL
  __local double* signs;      // PANEL
  __local float* norms;       // GROUP_SIZE
} Shown;

// A work-item's entries (down + 16 a, across + 16 b) of G, P1 and of L^-1 diag(G)^1/2, L = R'.
typedef struct {
  double g[EDGE][EDGE], p[EDGE][EDGE];
  float x[EDGE][EDGE];
} Squares;

// Step i = 16 phase + in_phase of Cholesky and LU at once: row i of R and W, column i of V1.
INLINE void eliminate(Squares* own, const Shown* shown, const int phase, int in_phase,
                      float* norm, int* has_vanished) {
  const int item = get_local_id(0), across = item % 16, down = item / 16;
  const int i = 16 * phase + in_phase, turn = (i & 1) * PANEL;
  if (down == in_phase) {
#pragma unroll
    for (int b = 0; b < EDGE; ++b) {
      shown->g[turn + across + 16 * b] = own->g[phase][b];
      shown->p[turn + across + 16 * b] = own->p[phase][b];
      shown->x[turn + across + 16 * b] = own->x[phase][b];
    }
  }
  if (across == in_phase) {
#pragma unroll
    for (int a = 0; a < EDGE; ++a) shown->q[turn + down + 16 * a] = own->p[a][phase];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const double square = shown->g[turn + i], pivot = shown->p[turn + i];
  if (square < GRAM_LEAST) *has_vanished = 1;
  const double inverse = inverse_root(square), sign = pivot >= 0 ? 1 : -1;
  const double top = fma(sign, square * inverse, pivot), inverse_top = inverse_of(top);
  if (item == 0) shown->signs[i] = sign;
  double r[EDGE], w[EDGE];
  float x[EDGE];
#pragma unroll
  for (int b = 0; b < EDGE; ++b) {
    const int col = across + 16 * b;
    r[b] = b >= phase ? shown->g[turn + col] * inverse : 0;
    w[b] = b >= phase && col > i ? fma(sign, r[b], shown->p[turn + col]) : 0;
    x[b] = b <= phase ? shown->x[turn + col] * (float)inverse : 0;
  }
#pragma unroll
  for (int a = phase; a < EDGE; ++a) {
    const int row = down + 16 * a;
    const double left = row > i ? shown->g[turn + row] * inverse : 0;
    const double v = row > i ? shown->q[turn + row] * inverse_top : 0;
#pragma unroll
    for (int b = phase; b < EDGE; ++b) {
      own->g[a][b] = fma(-left, r[b], own->g[a][b]);
      own->p[a][b] = fma(-v, w[b], own->p[a][b]);
    }
#pragma unroll
    for (int b = 0; b <= phase; ++b) own->x[a][b] = fma(-(float)left, x[b], own->x[a][b]);
    if (across == in_phase && row > i) own->p[a][phase] = v;
  }
  if (down == in_phase) {
#pragma unroll
    for (int b = 0; b < EDGE; ++b) {
      const int col = across + 16 * b;
      if (b >= phase) own->g[phase][b] = r[b];
      if (b >= phase && col >= i) own->p[phase][b] = col == i ? top : w[b];
      if (b <= phase) *norm = fma(x[b], x[b], *norm);
    }
  }
}

// R, V1 and W of the panel from G and its top square; whether they are good enough. squares: G; on
// exit 1: W, 2: R, 3: V1'.
INLINE bool factor_gram(const Shown* shown, __global double* squares, __global REAL* top_square,
                        __global REAL* v, __global REAL* signs, BlockShape at) {
  const int item = get_local_id(0), across = item % 16, down = item / 16;
  Squares own;
  float norm = 0;
  int has_vanished = 0, is_nan = 0;
#pragma unroll
  for (int a = 0; a < EDGE; ++a) {
#pragma unroll
    for (int b = 0; b < EDGE; ++b) {
      const int row = down + 16 * a, col = across + 16 * b;
      const bool is_inside = row < at.width && col < at.width;
      own.g[a][b] = is_inside ? squares[row * PANEL + col] : row == col ? 1.0 : 0.0;
      own.p[a][b] = is_inside ? top_square[row * (index_t)at.ld + col] : (REAL)0;
      own.x[a][b] = row == col ? (float)sqrt(own.g[a][b]) : 0.0f;
      is_nan |= isnan(own.g[a][b]);
    }
  }
#pragma unroll
  for (int phase = 0; phase < EDGE; ++phase) {
#pragma unroll 1
    for (int in_phase = 0; in_phase < 16; ++in_phase) {
      eliminate(&own, shown, phase, in_phase, &norm, &has_vanished);
    }
  }
  // A matrix that is not finite needs no better factors.
  shown->norms[item] = has_vanished ? INFINITY : is_nan ? -INFINITY : norm;
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0;
  bool is_finite = true;
  for (int other = 0; other < GROUP_SIZE; ++other) {
    is_finite = is_finite && shown->norms[other] != -INFINITY;
    sum += shown->norms[other];
  }
  const bool is_good = !is_finite || sum <= GRAM_LIMIT;
#pragma unroll
  for (int a = 0; a < EDGE; ++a) {
#pragma unroll
    for (int b = 0; b < EDGE; ++b) {
      const int row = down + 16 * a, col = across + 16 * b;
      squares[SQUARE + row * PANEL + col] = row <= col ? own.p[a][b] : 0;
      squares[2 * SQUARE + row * PANEL + col] = row <= col ? own.g[a][b] : 0;
      squares[3 * SQUARE + col * PANEL + row] = row > col ? own.p[a][b] : row == col ? 1.0 : 0.0;
      if (is_good && row < at.width && col < at.width) {
        top_square[row * (index_t)at.ld + col] =
            (REAL)(row <= col ? -shown->signs[row] * own.g[a][b] : own.p[a][b]);
        v[row * (index_t)at.v_ld + col] = (REAL)(row > col ? own.p[a][b] : row == col ? 1.0 : 0.0);
      }
    }
  }
  if (is_good && item < at.width) signs[item] = (REAL)-shown->signs[item];
  return is_good;
}
#endif

// T row by row: T(i, i) = tau_i, T(i, c) = -tau_c sum_l T(i, l) gram(l, c), l = i..c-1, where
// gram(l, c) = v_l' v_c. Rows do not depend on each other.
INLINE void form_t(__local const REAL* gram, __local const REAL* taus, __global REAL* t) {
  const int i = get_local_id(0);
  if (i < PANEL) {
    for (int c = 0; c < PANEL; ++c) {
      REAL sum = 0;
      for (int l = i; l < c; ++l) sum = fma(t[i * BLOCK + l], gram[l * PANEL + c], sum);
      t[i * BLOCK + c] = c < i ? (REAL)0 : c == i ? taus[i] : -taus[c] * sum;
    }
  }
}

// What a panel is made of in global memory, beginning in its first row.
typedef struct {
  __global REAL* a;     // P, ld
  __global REAL* v;     // in the buffer of the block's reflectors, v_ld
  __global REAL* signs;
  __global REAL* taus;
  __global REAL* t;     // in X
  int rows;
} PanelBuffers;

// The same column by column, for `columns` of the panel: all or none. A column c meets all columns
// p in one pass: dot products with columns to its right give the update, those with finished
// reflectors to its left give the Gram matrix for T.
INLINE void factor_columns(const PanelBuffers* panel, int ld, int columns, __local REAL* dots,
                           __local REAL* raised, __local REAL* gram, __local REAL* tau_of) {
  const int item = get_local_id(0), p = item % PANEL, lane = item / PANEL, m = panel->rows;
  const bool in_panel = p < columns;
  __global REAL* a = panel->a;
  REAL last_inverse = 0;  // column c-1 is scaled by this while column c is worked on
#pragma unroll 1
  for (int c = 0; c < columns; ++c) {
    const REAL own_scale = p == c - 1 ? last_inverse : (REAL)1;
    const REAL alpha = a[c * (index_t)ld + c];
    const REAL top = in_panel ? a[c * (index_t)ld + p] * own_scale : (REAL)0;
    REAL sum = 0, sum_rest = 0, raised_sum = 0, raised_rest = 0;
    for (int first = c + 1 + lane; first < m; first += PANEL_LANES * SUM_ROWS) {
      REAL part = 0, raised_part = 0;
#pragma unroll
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
      dot += dots[other * PANEL + p];
      tail += dots[other * PANEL + c];
      raised_tail += raised[other * PANEL + c];
    }
    const Reflector h = make_reflector(alpha, tail, raised_tail);
    const REAL product = fma(h.inverse, dot, top);  // v'a_p

    if (lane == 0 && p < c) gram[p * PANEL + c] = product;
    if (item == 0) {
      tau_of[c] = h.tau;
      panel->taus[c] = h.tau;
      panel->signs[c] = h.beta < 0 ? (REAL)-1 : (REAL)1;
      a[c * (index_t)ld + c] = h.beta;
    }
    if (p > c && in_panel) {
      // a_p -= tau v (v'a_p)
      const REAL weight = h.tau * product;
      const REAL below = weight * h.inverse;
      if (lane == 0) a[c * (index_t)ld + p] = top - weight;
#pragma unroll 8
      for (index_t row = c + 1 + lane; row < m; row += PANEL_LANES) {
        a[row * ld + p] = fma(-below, a[row * ld + c], a[row * ld + p]);
      }
    }
    if (p == c - 1) {
      for (index_t row = c + lane; row < m; row += PANEL_LANES) a[row * ld + p] *= own_scale;
    }
    last_inverse = h.inverse;
    barrier(FENCE);
  }
  if (p == columns - 1) {
    for (index_t row = columns + lane; row < m; row += PANEL_LANES) a[row * ld + p] *= last_inverse;
  }
}

// V1\R of the panel and its signs; W, R and V1' in squares, or V\R, tau and T and done[matrix] = 1.
__kernel GROUP void factor_panel(__global REAL* work, __global double* squares,
                                 __global int* done, __global REAL* signs, __global REAL* taus,
                                 __global REAL* x, __global REAL* v, FactorShape shape,
                                 BlockShape at) {
  __local REAL dots[GROUP_SIZE], raised[GROUP_SIZE], gram[SQUARE], tau_of[PANEL];
  const index_t matrix = get_group_id(0);
  const int item = get_local_id(0), in_block = at.first - at.block;
  const PanelBuffers panel = {
      work + (matrix * shape.m + at.first) * at.ld + at.first,
      v + (matrix * shape.m + in_block) * at.v_ld + in_block,
      signs + matrix * shape.k + at.first,
      taus + matrix * shape.k + at.first,
      x + x_offset(matrix, shape, at.block) + in_block * (BLOCK + 1),
      shape.m - at.first};
  int columns = at.width;
#if GRAM
  __local double shown_rows[6 * PANEL], shown_signs[PANEL];
  __local float shown_x[2 * PANEL], norms[GROUP_SIZE];
  const Shown shown = {shown_rows, shown_rows + 2 * PANEL, shown_rows + 4 * PANEL,
                       shown_x,    shown_signs,            norms};
  if (factor_gram(&shown, squares + matrix * 4 * SQUARE, panel.a, panel.v, panel.signs, at)) {
    columns = 0;
  }
#endif
  for (int i = item; i < SQUARE; i += GROUP_SIZE) gram[i] = 0;
  if (item < PANEL) tau_of[item] = 0;
  barrier(FENCE);
  factor_columns(&panel, at.ld, columns, dots, raised, gram, tau_of);
  barrier(FENCE);
  if (item == 0) done[matrix] = columns > 0;
  if (columns > 0) {
    form_t(gram, tau_of, panel.t);
    for (int i = item; i < columns * columns; i += GROUP_SIZE) {
      const int row = i / columns, col = i - row * columns;
      const REAL entry = row > col ? panel.a[row * (index_t)at.ld + col] : row == col ? 1 : 0;
      panel.v[row * (index_t)at.v_ld + col] = entry;
    }
  }
}

#if GRAM
INLINE void load_triangle(__global const double* from, __local double* triangle,
                          __local double* inverses) {
  const int item = get_local_id(0);
  for (int i = item; i < SQUARE; i += FORM_GROUP) triangle[i] = from[i];
  if (item < PANEL) inverses[item] = 1 / from[item * (PANEL + 1)];
}
// row := row M^-1, M upper triangular.
INLINE void solve_row(double row[PANEL], __local const double* matrix,
                      __local const double* inverses) {
#pragma unroll
  for (int j = 0; j < PANEL; ++j) {
    row[j] *= inverses[j];
#pragma unroll
    for (int l = j + 1; l < PANEL; ++l) row[l] = fma(-row[j], matrix[j * PANEL + l], row[l]);
  }
}
#endif

// V2 below the panel's top square, and V in the block's own buffer; T. Group 0 of a matrix forms T
// and writes zeros above the panel, the others take a row per work-item.
__kernel GROUP_OF(FORM_GROUP) void form_v(__global REAL* work, __global const double* squares,
                                          __global const int* done, __global const REAL* signs,
                                          __global REAL* taus, __global REAL* x, __global REAL* v,
                                          FactorShape shape, BlockShape at) {
  const int rows = shape.m - at.first - at.width, item = get_local_id(0);
  index_t matrix;
  const int group = split_group(1 + (rows + FORM_GROUP - 1) / FORM_GROUP, &matrix);
  const int in_block = at.first - at.block;
  const bool forms_t = group == 0;
  const int row = (group - 1) * FORM_GROUP + item;  // below the top square
  const bool has_row = !forms_t && row < rows;
  __global REAL* from = work + (matrix * shape.m + at.first + at.width + row) * at.ld + at.first;
  __global REAL* to = v + (matrix * shape.m + in_block + at.width + row) * at.v_ld + in_block;
  v += matrix * shape.m * at.v_ld + in_block;
#if GRAM
  __local double triangle[SQUARE], inverses[PANEL];
  const bool is_done = done[matrix] != 0;
  squares += matrix * 4 * SQUARE;
  signs += matrix * shape.k + at.first;
  double entries[PANEL];
#pragma unroll
  for (int j = 0; j < PANEL; ++j) {
    entries[j] = has_row && j < at.width ? from[j] : (REAL)0;
    if (forms_t && item < PANEL) entries[j] = squares[SQUARE + item * PANEL + j];
  }
  // V2 = P2 W^-1; U = W R^-1, then T = U S V1^-T
  load_triangle(squares + (forms_t ? 2 : 1) * SQUARE, triangle, inverses);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!is_done) solve_row(entries, triangle, inverses);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (forms_t) load_triangle(squares + 3 * SQUARE, triangle, inverses);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (forms_t && !is_done) {
#pragma unroll
    for (int j = 0; j < PANEL; ++j) {
      entries[j] = j >= at.width || signs[j] > 0 ? -entries[j] : entries[j];
    }
    solve_row(entries, triangle, inverses);
  }
#pragma unroll
  for (int j = 0; j < PANEL; ++j) {
    if (has_row && j < at.width) {
      if (!is_done) from[j] = (REAL)entries[j];
      to[j] = (REAL)entries[j];
    }
  }
  if (forms_t && !is_done && item < PANEL) {
    x += x_offset(matrix, shape, at.block) + (in_block + item) * BLOCK + in_block;
#pragma unroll
    for (int j = 0; j < PANEL; ++j) {
      const REAL entry = (REAL)(item <= j && j < at.width && item < at.width ? entries[j] : 0);
      x[j] = entry;
      if (j == item && j < at.width) taus[matrix * shape.k + at.first + j] = entry;
    }
  }
#else
  if (has_row) {
    for (int j = 0; j < at.width; ++j) to[j] = from[j];
  }
#endif
  if (forms_t) {
    for (int i = item; i < in_block * at.width; i += FORM_GROUP) {
      v[i / at.width * (index_t)at.v_ld + i % at.width] = 0;
    }
  }
}

// ---- the block's T

// sums[] += four rows (transposed: columns) of a square of X, from entry x on, times rows of z.
INLINE void multiply_x(REAL* sums, __global const REAL* x, __local const REAL* z, const int rows,
                       const int strip, const bool transposed) {
#pragma unroll 4
  for (int l = 0; l < PANEL; ++l) {
    const REAL y = z[l * strip];
#pragma unroll
    for (int q = 0; q < rows; ++q) {
      sums[q] = fma(transposed ? x[l * BLOCK + q] : x[q * BLOCK + l], y, sums[q]);
    }
  }
}

// Rows of Z of `panels` panels, sums over slabs, for a strip of columns.
INLINE void load_z(__global const REAL* z, const BlockShape* at, int first_col, int rows,
                   int padded_rows, __local REAL* tile, const int strip) {
  const int col = first_col + get_local_id(0) % strip;
  for (int row = get_local_id(0) / strip; row < padded_rows; row += GROUP_SIZE / strip) {
    REAL sum = 0;
    if (row < rows && col < at->z_cols) {
#pragma unroll 8
      for (int slab = 0; slab < at->z_slabs; ++slab) {
        sum += z[slab * at->z_slab + row * (index_t)at->z_ld + col];
      }
    }
    tile[row * strip + get_local_id(0) % strip] = sum;
  }
}

#define STRIP_ROWS (PANEL * STRIP / GROUP_SIZE)
#define PANEL_STRIP_ROWS (PANEL * PANEL_STRIP / GROUP_SIZE)

// Z := T'Z or T Z for the block: Z_p := T_p'Z_p - sum over i < p of X_ip'Z_i, p upwards; or
// Z_p -= sum over i > p of X_pi Z_i, p downwards, then Z_p := T_p Z_p. X holds -X.
__kernel GROUP void apply_t(__global const REAL* x, __global REAL* z, FactorShape shape,
                            BlockShape at, int transposed) {
  __local REAL tile[BLOCK * STRIP];
  index_t matrix;
  const int strip = split_group((at.z_cols + STRIP - 1) / STRIP, &matrix);
  const int item = get_local_id(0), in_strip = item % STRIP, row = item / STRIP * STRIP_ROWS;
  const int panels = (at.block_width + PANEL - 1) / PANEL, col = strip * STRIP + in_strip;
  x += x_offset(matrix, shape, at.block);
  z += matrix * at.z_stride;
  load_z(z, &at, strip * STRIP, at.block_width, panels * PANEL, tile, STRIP);
  barrier(CLK_LOCAL_MEM_FENCE);
  const int steps = transposed ? panels : 2 * panels;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const int p = transposed ? step : step < panels ? panels - 1 - step : step - panels;
    const int begin = transposed ? 0 : step < panels ? p + 1 : p;
    const int end = transposed ? p + 1 : step < panels ? panels : p + 1;
    __local REAL* own = tile + (p * PANEL + row) * STRIP + in_strip;
    const bool adds = !transposed && step < panels;
    REAL sums[STRIP_ROWS];
#pragma unroll
    for (int q = 0; q < STRIP_ROWS; ++q) sums[q] = adds ? own[q * STRIP] : (REAL)0;
#pragma unroll 1
    for (int i = begin; i < end; ++i) {
      __local const REAL* other = tile + i * PANEL * STRIP + in_strip;
      if (transposed) {
        multiply_x(sums, x + i * PANEL * BLOCK + p * PANEL + row, other, STRIP_ROWS, STRIP, true);
      } else {
        multiply_x(sums, x + (p * PANEL + row) * BLOCK + i * PANEL, other, STRIP_ROWS, STRIP,
                   false);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int q = 0; q < STRIP_ROWS; ++q) own[q * STRIP] = sums[q];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int r = item / STRIP; r < at.block_width; r += GROUP_SIZE / STRIP) {
    if (col < at.z_cols) z[r * (index_t)at.z_ld + col] = tile[r * STRIP + in_strip];
  }
}

// Z := T_p'Z for one panel; columns that belong to the block's reflectors become rows of -X.
__kernel GROUP void apply_panel_t(__global REAL* x, __global REAL* z, FactorShape shape,
                                  BlockShape at) {
  __local REAL tile[PANEL * PANEL_STRIP];
  index_t matrix;
  const int strip = split_group((at.z_cols + PANEL_STRIP - 1) / PANEL_STRIP, &matrix);
  const int item = get_local_id(0), in_strip = item % PANEL_STRIP, in_block = at.first - at.block;
  const int row = item / PANEL_STRIP * PANEL_STRIP_ROWS, col = strip * PANEL_STRIP + in_strip;
  x += x_offset(matrix, shape, at.block) + in_block;
  z += matrix * at.z_stride;
  load_z(z, &at, strip * PANEL_STRIP, at.width, PANEL, tile, PANEL_STRIP);
  barrier(CLK_LOCAL_MEM_FENCE);
  REAL sums[PANEL_STRIP_ROWS];
#pragma unroll
  for (int q = 0; q < PANEL_STRIP_ROWS; ++q) sums[q] = 0;
  multiply_x(sums, x + in_block * BLOCK + row, tile + in_strip, PANEL_STRIP_ROWS, PANEL_STRIP,
             true);
#pragma unroll
  for (int q = 0; q < PANEL_STRIP_ROWS; ++q) {
    if (col < at.z_left) {
      x[col * BLOCK + row + q] = -sums[q];
    } else if (col < at.z_cols && row + q < at.width) {
      z[(row + q) * (index_t)at.z_ld + col] = sums[q];
    }
  }
}

// ---- Q

// v := reflectors of the block, from its first row on, 32 rows per group.
__kernel GROUP void load_v(__global const REAL* work, __global REAL* v, FactorShape shape,
                           BlockShape at) {
  const int rows = shape.m - at.block;
  index_t matrix;
  const int first = split_group((rows + 31) / 32, &matrix) * 32, last = min(rows, first + 32);
  work += (matrix * shape.m + at.block) * at.ld + at.block;
  v += matrix * shape.m * at.v_ld;
  for (int row = first + get_local_id(0) / 32; row < last; row += GROUP_SIZE / 32) {
    for (int col = get_local_id(0) % 32; col < at.block_width; col += 32) {
      const REAL x = work[row * (index_t)at.ld + col];
      v[row * (index_t)at.v_ld + col] = row > col ? x : row == col ? (REAL)1 : (REAL)0;
    }
  }
}

// Rows and columns of Q that the block is the first to touch, columns of the identity with R's
// signs; from row and column at.block on, 32 rows per group.
__kernel GROUP void begin_q(__global REAL* q, __global const int* codes,
                            __global const REAL* signs, FactorShape shape, BlockShape at) {
  __local int code;
  const int rows = shape.m - at.block, end = at.block + at.block_width;
  index_t matrix;
  const int first = at.block + split_group((rows + 31) / 32, &matrix) * 32;
  const int last = min(shape.m, first + 32);
  const bool is_last = end == shape.k;
  q += matrix * shape.m * shape.q_cols;
  const bool is_finite = code_of_matrix(codes + matrix * shape.n, shape.n, &code, GROUP_SIZE) !=
                         MAGNITUDE_NON_FINITE;
  for (int row = first + get_local_id(0) / 64; row < last; row += GROUP_SIZE / 64) {
    const int stop = is_last || row < end ? shape.q_cols : end;
    for (int col = at.block + get_local_id(0) % 64; col < stop; col += 64) {
      REAL x = row == col ? 1 : 0;
      if (row == col && shape.positive && col < shape.k) x = signs[matrix * shape.k + col];
      q[row * (index_t)shape.q_cols + col] = is_finite ? x : (REAL)NAN;
    }
  }
}

// ---- results

// R := R D^-1 with signs, zeros below the diagonal, 32 rows per group; the code of the matrix goes
// to `magnitudes`. R may be where work is. + 0 turns -0 into +0.
__kernel GROUP void store_r(__global const REAL* work, __global const int* codes,
                            __global const REAL* signs, __global STORED* r,
                            __global int* magnitudes, FactorShape shape, BlockShape at) {
  __local int code;
  const int blocks = (shape.r_rows + 31) / 32;
  index_t matrix;
  const int block = split_group(blocks, &matrix), last = min(shape.r_rows, 32 * block + 32);
  work += matrix * shape.m * at.ld;
  codes += matrix * shape.n;
  r += matrix * shape.r_rows * shape.n;

  const bool is_finite = code_of_matrix(codes, shape.n, &code, GROUP_SIZE) != MAGNITUDE_NON_FINITE;
  if (block == 0 && get_local_id(0) == 0) magnitudes[matrix] = code;
  for (int row = 32 * block + get_local_id(0) / 64; row < last; row += GROUP_SIZE / 64) {
    const bool flips = shape.positive && row < shape.k && signs[matrix * shape.k + row] < 0;
    for (int col = get_local_id(0) % 64; col < shape.n; col += 64) {
      STORED x = 0;
      if (row <= col) {
        const REAL y = work[row * (index_t)at.ld + col];
        x = (STORED)scale_by(flips ? -y : y, scale_of(codes[col])) + (STORED)0;
      }
      r[row * (index_t)shape.n + col] = is_finite ? x : (STORED)NAN;
    }
  }
}

// V\R as LAPACK's geqrf leaves it, 32 rows per group. V may be where work is.
__kernel GROUP void finish_v(__global const REAL* work, __global const int* codes,
                             __global STORED* v, __global int* magnitudes, FactorShape shape,
                             BlockShape at) {
  __local int code;
  const int blocks = (shape.m + 31) / 32;
  index_t matrix;
  const int block = split_group(blocks, &matrix), last = min(shape.m, 32 * block + 32);
  work += matrix * shape.m * at.ld;
  codes += matrix * shape.n;
  v += matrix * shape.m * shape.n;

  const bool is_finite = code_of_matrix(codes, shape.n, &code, GROUP_SIZE) != MAGNITUDE_NON_FINITE;
  if (block == 0 && get_local_id(0) == 0) magnitudes[matrix] = code;
  for (int row = 32 * block + get_local_id(0) / 64; row < last; row += GROUP_SIZE / 64) {
    for (int col = get_local_id(0) % 64; col < shape.n; col += 64) {
      const REAL y = work[row * (index_t)at.ld + col];
      const STORED x =
          row <= col ? (STORED)scale_by(y, scale_of(codes[col])) + (STORED)0 : (STORED)y;
      v[row * (index_t)shape.n + col] = is_finite ? x : (STORED)NAN;
    }
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
