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
//                                                         apply_panel_t; PANEL times that is
//                                                         1024 or more
//   and those of gemm.cl
// Local memory: (BLOCK STRIP + PANEL (PANEL + 4)) REAL; factor_panel PANEL^2 + 512 REAL and 4 KiB;
// form_v 8 PANEL (PANEL + 9) bytes.
// Buffers per matrix: work m x ld (may be the one of Q, V or R), codes n int, signs and taus k REAL,
// X per block BLOCK x BLOCK REAL, v m x v_ld REAL, Z, which sums of slabs share, and with GRAM 5
// squares in double. A NaN or Inf makes its own matrix NaN: nothing is shared between matrices.
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
#define STRIP (1024 / PANEL)
#endif
#ifndef PANEL_STRIP
#define PANEL_STRIP (1024 / PANEL)
#endif
#define GROUP_SIZE 256
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
// 2^-44, of inverses, and 2^-53 PANEL, of G, times this stay below float32's errors.
#define GRAM_LIMIT 0x1p20f
// Squares of norms below this, or above its inverse, have no float32.
#define GRAM_LEAST 0x1p-100
#define SQUARES 5

// Sums of P'P over slabs of rows.
__kernel GROUP void gram_panel(__global const REAL* work, __global double* sums, FactorShape shape,
                               BlockShape at) {
  __local double tile[GRAM_ROWS * PANEL];
  index_t matrix;
  const int slab = split_group(at.gram_slabs, &matrix);
  const int item = get_local_id(0), across = item % 16, down = item / 16;
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
        x[i] = tile[r * PANEL + down + 16 * i];
        y[i] = tile[r * PANEL + across + 16 * i];
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
    for (int j = 0; j < EDGE; ++j) sums[(down + 16 * i) * PANEL + across + 16 * j] = sum[i][j];
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
    squares[matrix * SQUARES * SQUARE + entry] = sum;
  }
}

// 1 / sqrt(x) and 1 / x: float32's, corrected once, 44 bits.
INLINE double inverse_root(double x) {
#if SUB_GROUP_BODY == 1
  const double y = native_rsqrt((float)x);
#else
  const double y = 1 / sqrt((float)x);
#endif
  return fma(y, fma(-0.5 * x * y, y, 0.5), y);
}
INLINE double inverse_of(double x) {
#if SUB_GROUP_BODY == 1
  const double y = native_recip((float)x);
#else
  const double y = 1 / (float)x;
#endif
  return fma(y, fma(-x, y, 1.0), y);
}

// What the group shows of step i, by turns: row i of G and of P, column i of P.
typedef struct {
  __local double *g, *p, *q;  // 2 PANEL each
  __local double* signs;      // PANEL
  __local double* diagonal;   // PANEL, of G
  __local float* norms;       // GROUP_SIZE
  __local REAL* v;            // PANEL x PANEL: V1
} Shown;

// A work-item's entries (down + 16 a, across + 16 b). Two squares become six triangles, step by
// step, as in Gauss and Jordan's inversion:
//   g: G -> R above the diagonal, R^-T on and below it
//   p: P1 -> W^-1 on and above the diagonal, V1^-1 below it; W goes to global memory, V1 to local
typedef struct {
  double g[EDGE][EDGE], p[EDGE][EDGE];
} Squares;

// Step i = 16 phase + in_phase: row i of R and W, column i of V1. `triangle`: W.
INLINE void eliminate(Squares* own, const Shown* shown, __global double* triangle, const int phase,
                      int in_phase, int* has_vanished) {
  const int item = get_local_id(0), across = item % 16, down = item / 16;
  const int i = 16 * phase + in_phase, turn = (i & 1) * PANEL;
  if (down == in_phase) {
#pragma unroll
    for (int b = 0; b < EDGE; ++b) {
      shown->g[turn + across + 16 * b] = own->g[phase][b];
      shown->p[turn + across + 16 * b] = own->p[phase][b];
    }
  }
  if (across == in_phase) {
#pragma unroll
    for (int a = 0; a < EDGE; ++a) shown->q[turn + down + 16 * a] = own->p[a][phase];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const double square = shown->g[turn + i], pivot = shown->p[turn + i];
  if (square < GRAM_LEAST || square > 1 / GRAM_LEAST) *has_vanished = 1;
  const double inverse = inverse_root(square), sign = pivot >= 0 ? 1 : -1;
  const double top = fma(sign, square * inverse, pivot), inverse_top = inverse_of(top);
  if (item == 0) shown->signs[i] = sign;
  double row_g[EDGE], row_p[EDGE];
#pragma unroll
  for (int b = 0; b < EDGE; ++b) {
    const int col = across + 16 * b;
    const bool is_own = b == phase && across == in_phase;
    const bool is_right = b > phase || (b == phase && across > in_phase);
    row_g[b] = is_own ? inverse : shown->g[turn + col] * inverse;
    row_p[b] = is_own ? 1 : shown->p[turn + col];
    if (is_right) row_p[b] = fma(sign, row_g[b], row_p[b]);
    if (down == in_phase) triangle[i * PANEL + col] = is_own ? top : is_right ? row_p[b] : 0;
  }
#pragma unroll
  for (int a = 0; a < EDGE; ++a) {
    const int row = down + 16 * a;
    const bool is_own_row = a == phase && down == in_phase;
    const bool is_below = a > phase || (a == phase && down > in_phase);
    const double left = is_below ? shown->g[turn + row] * inverse : 0;
    const double factor = (is_own_row ? 1 : shown->q[turn + row]) * inverse_top;
#pragma unroll
    for (int b = 0; b < EDGE; ++b) {
      const bool is_own = b == phase && across == in_phase;
      const bool is_right = b > phase || (b == phase && across > in_phase);
      if (a >= phase) {
        const double x = fma(-left, row_g[b], is_own && is_below ? 0 : own->g[a][b]);
        own->g[a][b] = is_own_row ? row_g[b] : x;
      }
      if (a >= phase || b >= phase) {
        const bool starts = is_own || (is_own_row && is_right);
        const double y = fma(-factor, row_p[b], starts ? 0 : own->p[a][b]);
        if (is_below || is_right) {
          own->p[a][b] = y;
        } else if (is_own) {
          own->p[a][b] = factor;
        }
      }
    }
    if (across == in_phase) {
      shown->v[row * PANEL + i] = (REAL)(is_below ? factor : is_own_row ? 1 : 0);
    }
  }
}

// R, V1, W and what form_v wants, from G and the panel's top square; whether they are good enough.
// squares: G; on exit 1: W^-1, 2: W, 3: R^-T, 4: V1^-1.
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
      if (row == col) shown->diagonal[row] = own.g[a][b];
      is_nan |= isnan(own.g[a][b]);
    }
  }
#pragma unroll
  for (int phase = 0; phase < EDGE; ++phase) {
#pragma unroll 1
    for (int in_phase = 0; in_phase < 16; ++in_phase) {
      eliminate(&own, shown, squares + 2 * SQUARE, phase, in_phase, &has_vanished);
    }
  }
  // ||R^-1 diag(G)^1/2||_F^2
#pragma unroll
  for (int a = 0; a < EDGE; ++a) {
#pragma unroll
    for (int b = 0; b < EDGE; ++b) {
      const int row = down + 16 * a, col = across + 16 * b;
      const float x = (float)(own.g[a][b] * shown->diagonal[col]);
      if (row >= col) norm = fma(x, (float)own.g[a][b], norm);
    }
  }
  // A matrix that is not finite needs no better factors: NaN passes.
  shown->norms[item] = is_nan ? NAN : has_vanished ? INFINITY : norm;
  barrier(FENCE);
  if (item < 32) {
    for (int other = item + 32; other < GROUP_SIZE; other += 32) {
      shown->norms[item] += shown->norms[other];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0;
#pragma unroll
  for (int other = 0; other < 32; ++other) sum += shown->norms[other];
  const bool is_good = !(sum > GRAM_LIMIT);
#pragma unroll
  for (int a = 0; a < EDGE; ++a) {
#pragma unroll
    for (int b = 0; b < EDGE; ++b) {
      const int row = down + 16 * a, col = across + 16 * b;
      squares[SQUARE + row * PANEL + col] = row <= col ? own.p[a][b] : 0;
      squares[3 * SQUARE + row * PANEL + col] = row >= col ? own.g[a][b] : 0;
      squares[4 * SQUARE + row * PANEL + col] = row > col ? own.p[a][b] : row == col ? 1 : 0;
      if (is_good && row < at.width && col < at.width) {
        // R's diagonal: what its inverse is the inverse of
        const double r = row == col ? 1 / own.g[a][b] : own.g[a][b];
        const REAL entry = shown->v[row * PANEL + col];
        top_square[row * (index_t)at.ld + col] =
            row <= col ? (REAL)(-shown->signs[row] * r) : entry;
        v[row * (index_t)at.v_ld + col] = entry;
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

// V1\R of the panel and its signs; triangles for form_v in squares, or V\R, tau and T and done[matrix] = 1.
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
  __local double shown_rows[6 * PANEL], shown_signs[PANEL], diagonal[PANEL];
  __local float norms[GROUP_SIZE];
  const Shown shown = {shown_rows,  shown_rows + 2 * PANEL, shown_rows + 4 * PANEL,
                       shown_signs, diagonal,               norms,
                       gram};
  if (factor_gram(&shown, squares + matrix * SQUARES * SQUARE, panel.a, panel.v, panel.signs, at)) {
    columns = 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);  // V1 was where `gram` is
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
#define TILE_LD (PANEL + 1)
#define CHUNK 8
#define CHUNK_SHARE (CHUNK * PANEL / GROUP_SIZE)
// sums := tile (PANEL x PANEL) times b, or times b', `terms` rows of it: PANEL or 0. The next rows
// are fetched while these are multiplied.
INLINE void multiply_squares(double sums[EDGE][EDGE], __local const double* tile,
                             __global const double* b, const bool transposed, int terms,
                             __local double* chunk) {
  const int item = get_local_id(0), across = item % 16, down = item / 16;
#pragma unroll
  for (int i = 0; i < EDGE; ++i) {
#pragma unroll
    for (int j = 0; j < EDGE; ++j) sums[i][j] = 0;
  }
  // Entry (k, col) of b, its place in the chunk.
  int from[CHUNK_SHARE], to[CHUNK_SHARE];
  double next[CHUNK_SHARE];
#pragma unroll
  for (int i = 0; i < CHUNK_SHARE; ++i) {
    const int entry = item + i * GROUP_SIZE;
    const int k = transposed ? entry % CHUNK : entry / PANEL;
    const int col = transposed ? entry / CHUNK : entry % PANEL;
    from[i] = transposed ? col * PANEL + k : k * PANEL + col;
    to[i] = k * PANEL + col;
    next[i] = b[from[i]];
  }
#pragma unroll 1
  for (int first = 0; first < terms; first += CHUNK) {
#pragma unroll
    for (int i = 0; i < CHUNK_SHARE; ++i) {
      chunk[to[i]] = next[i];
      const int ahead = min(first + CHUNK, PANEL - CHUNK);
      next[i] = b[from[i] + (transposed ? ahead : ahead * PANEL)];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int k = 0; k < CHUNK; ++k) {
      double x[EDGE], y[EDGE];
#pragma unroll
      for (int i = 0; i < EDGE; ++i) {
        x[i] = tile[(down + 16 * i) * TILE_LD + first + k];
        y[i] = chunk[k * PANEL + across + 16 * i];
      }
#pragma unroll
      for (int i = 0; i < EDGE; ++i) {
#pragma unroll
        for (int j = 0; j < EDGE; ++j) sums[i][j] = fma(x[i], y[j], sums[i][j]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
#endif

// V2 = P2 W^-1 below the panel's top square, and V in the block's own buffer; T = W R^-1 S V1^-T.
// Group 0 of a matrix forms T and writes zeros above the panel, the others take PANEL rows each.
__kernel GROUP void form_v(__global REAL* work, __global const double* squares,
                           __global const int* done, __global const REAL* signs,
                           __global REAL* taus, __global REAL* x, __global REAL* v,
                           FactorShape shape, BlockShape at) {
  const int rows = shape.m - at.first - at.width, item = get_local_id(0);
  index_t matrix;
  const int group = split_group(1 + (rows + PANEL - 1) / PANEL, &matrix);
  const int in_block = at.first - at.block, first = (group - 1) * PANEL;  // below the top square
  const bool forms_t = group == 0;
  __global REAL* from = work + (matrix * shape.m + at.first + at.width + first) * at.ld + at.first;
  __global REAL* to = v + (matrix * shape.m + in_block + at.width + first) * at.v_ld + in_block;
  v += matrix * shape.m * at.v_ld + in_block;
#if GRAM
  __local double tile[PANEL * TILE_LD], chunk[CHUNK * PANEL];
  const bool is_done = done[matrix] != 0;
  const int across = item % 16, down = item / 16;
  double sums[EDGE][EDGE];
  squares += matrix * SQUARES * SQUARE;
  signs += matrix * shape.k + at.first;
#pragma unroll 4
  for (int i = item; i < SQUARE; i += GROUP_SIZE) {
    const int row = i / PANEL, col = i % PANEL;
    double entry = 0;
    if (forms_t) {
      entry = squares[2 * SQUARE + i];
    } else if (first + row < rows && col < at.width) {
      entry = from[row * (index_t)at.ld + col];
    }
    tile[row * TILE_LD + col] = entry;
  }
  barrier(FENCE);  // global too: all of P2 is read before V2 takes its place
  if (forms_t) {
    multiply_squares(sums, tile, squares + 3 * SQUARE, true, is_done ? 0 : PANEL, chunk);
  } else {
    multiply_squares(sums, tile, squares + SQUARE, false, is_done ? 0 : PANEL, chunk);
  }
#pragma unroll
  for (int a = 0; a < EDGE; ++a) {
#pragma unroll
    for (int b = 0; b < EDGE; ++b) {
      const int row = down + 16 * a, col = across + 16 * b;
      if (!forms_t && first + row < rows && col < at.width) {
        const REAL entry = (REAL)(is_done ? tile[row * TILE_LD + col] : sums[a][b]);
        from[row * (index_t)at.ld + col] = entry;
        to[row * (index_t)at.v_ld + col] = entry;
      } else if (forms_t && !is_done) {
        tile[row * TILE_LD + col] = col >= at.width || signs[col] > 0 ? -sums[a][b] : sums[a][b];
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  multiply_squares(sums, tile, squares + 4 * SQUARE, true, forms_t && !is_done ? PANEL : 0, chunk);
  x += x_offset(matrix, shape, at.block) + in_block * (BLOCK + 1);
#pragma unroll
  for (int a = 0; a < EDGE; ++a) {
#pragma unroll
    for (int b = 0; b < EDGE; ++b) {
      const int row = down + 16 * a, col = across + 16 * b;
      if (forms_t && !is_done) {
        const bool is_inside = row <= col && col < at.width;
        x[row * BLOCK + col] = is_inside ? (REAL)sums[a][b] : (REAL)0;
        if (row == col && is_inside) taus[matrix * shape.k + at.first + row] = (REAL)sums[a][b];
      }
    }
  }
#else
  for (int i = item; i < PANEL * at.width; i += GROUP_SIZE) {
    const int row = i / at.width, col = i - row * at.width;
    if (!forms_t && first + row < rows) {
      to[row * (index_t)at.v_ld + col] = from[row * (index_t)at.ld + col];
    }
  }
#endif
  if (forms_t) {
    for (int i = item; i < in_block * at.width; i += GROUP_SIZE) {
      const int row = i / at.width;
      v[row * (index_t)at.v_ld + i - row * at.width] = 0;
    }
  }
}

// ---- the block's T

#define SQUARE_LD (PANEL + 4)
// square := a PANEL x PANEL square of X, or its transpose.
INLINE void load_square(__global const REAL* x, __local REAL* square, const bool transposes) {
#pragma unroll 8
  for (int i = get_local_id(0); i < SQUARE; i += GROUP_SIZE) {
    const int row = i / PANEL, col = i % PANEL;
    square[transposes ? col * SQUARE_LD + row : row * SQUARE_LD + col] = x[row * BLOCK + col];
  }
}
// sums[q] += sum over l of square(l, row + q) z(l).
INLINE void multiply_x(REAL* sums, __local const REAL* square, __local const REAL* z,
                       const int rows, const int strip) {
#pragma unroll 8
  for (int l = 0; l < PANEL; ++l) {
    const REAL y = z[l * strip];
#pragma unroll
    for (int q = 0; q < rows; q += 4) {
      const real4 x = *(__local const real4*)(square + l * SQUARE_LD + q);
      sums[q] = fma(x.x, y, sums[q]);
      sums[q + 1] = fma(x.y, y, sums[q + 1]);
      sums[q + 2] = fma(x.z, y, sums[q + 2]);
      sums[q + 3] = fma(x.w, y, sums[q + 3]);
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
  __local real4 square_words[PANEL * SQUARE_LD / 4];
  __local REAL* square = (__local REAL*)square_words;
  index_t matrix;
  const int strip = split_group((at.z_cols + STRIP - 1) / STRIP, &matrix);
  const int item = get_local_id(0), in_strip = item % STRIP, row = item / STRIP * STRIP_ROWS;
  const int panels = (at.block_width + PANEL - 1) / PANEL, col = strip * STRIP + in_strip;
  x += x_offset(matrix, shape, at.block);
  z += matrix * at.z_stride;
  load_z(z, &at, strip * STRIP, at.block_width, panels * PANEL, tile, STRIP);
  barrier(FENCE);
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
      barrier(CLK_LOCAL_MEM_FENCE);
      load_square(x + (transposed ? i * PANEL * BLOCK + p * PANEL : p * PANEL * BLOCK + i * PANEL),
                  square, !transposed);
      barrier(CLK_LOCAL_MEM_FENCE);
      multiply_x(sums, square + row, tile + i * PANEL * STRIP + in_strip, STRIP_ROWS, STRIP);
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
  __local real4 square_words[PANEL * SQUARE_LD / 4];
  __local REAL* square = (__local REAL*)square_words;
  index_t matrix;
  const int strip = split_group((at.z_cols + PANEL_STRIP - 1) / PANEL_STRIP, &matrix);
  const int item = get_local_id(0), in_strip = item % PANEL_STRIP, in_block = at.first - at.block;
  const int row = item / PANEL_STRIP * PANEL_STRIP_ROWS, col = strip * PANEL_STRIP + in_strip;
  x += x_offset(matrix, shape, at.block) + in_block;
  z += matrix * at.z_stride;
  load_square(x + in_block * BLOCK, square, false);
  load_z(z, &at, strip * PANEL_STRIP, at.width, PANEL, tile, PANEL_STRIP);
  barrier(FENCE);  // global too: Z is read before it is overwritten
  REAL sums[PANEL_STRIP_ROWS];
#pragma unroll
  for (int q = 0; q < PANEL_STRIP_ROWS; ++q) sums[q] = 0;
  multiply_x(sums, square + row, tile + in_strip, PANEL_STRIP_ROWS, PANEL_STRIP);
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
