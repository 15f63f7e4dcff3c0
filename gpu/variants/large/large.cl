// SPDX-License-Identifier: Apache-2.0
// large.cl: Householder QR of matrices of any shape, in blocks of panels, compact WY (LAPACK geqrf,
// orhr_col, orgqr). The products with many terms are those of gemm.cl.
//
//   step                 what it does                                             group per
//   scale_columns        A -> work = A D, D = diag(2^-e_j), largest entry 1/2..1    matrix x 32
//   blocks of BLOCK columns; in a block, panels P of PANEL columns:
//     gram_panel         sums of P'P in float64                                     matrix x slab
//     sum_panel_gram     G = P'P                                                    matrix x part
//     factor_panel       G = R'R (Cholesky); P1 + S R = V1 W (LU), P1 the top
//                        square, S the signs of its pivots; R_panel = -S R          matrix
//     form_v             V2 = P2 W^-1; T = W R^-1 S V1^-T                           matrix x rows
//     transposed_product Z = V'[V of panels before | rest of the block]             gemm.cl
//     apply_panel_t      Z := T'Z; the left part is -X, for the block's T           matrix x strip
//     subtract_product   rest of the block -= V Z                                   gemm.cl
//   then for the block   Z = V'C, Z := T'Z (apply_t), C -= V Z                      gemm.cl
//                        with products of halves, or with body 5, V and T
//                        (form_block_t) are prepared first, and T'Z is a product too
//   finish_r             R := R D^-1 with signs; or finish_v and store_tau          any
//   form_q, blocks in reverse: load_v, or V packed, or both; begin_q, Z = V'Q, Z := T Z, Q -= V Z
//
//        J    j    j+PANEL  J+BLOCK       v: the block's reflectors, zeros above their diagonal,
//      R | R  | R  |  R   |   R      |       in a buffer of their own
//    J --+----+----+------+----------|    x: T of the block is kept as X, T_p on the diagonal and
//        | V\R|  R |  R   | C        |       -V_i'V_p T_p above it: T' is applied panel by panel
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
// Defines, set in large.cpp              range            meaning
//   STORED, REAL, SUB_GROUP_BODY                          common.clh
//   GRAM                                 0, 1             panels by Gram matrices; REAL is float
//   PANEL                                32, 64           columns per panel, NARROW_N
//   BLOCK                                PANEL 1..4       columns per block
//   STRIP, PANEL_STRIP                   8, 16, 32        columns of Z per group of apply_t, of
//                                                         apply_panel_t; PANEL times that is
//                                                         1024 or more
//   and those of gemm.cl
// Local memory: (BLOCK STRIP + PANEL (PANEL + 4)) REAL; factor_panel PANEL^2 + PANEL + 512 REAL,
// and with GRAM 8 PANEL double and 256 float more; form_v with GRAM PANEL (PANEL + 9) double.
// Buffers per matrix: work m x ld (may be the one of Q, V or R), codes n int, signs and taus k
// REAL, X per block BLOCK x BLOCK REAL, v m x v_ld REAL, whose place T'Z takes, Z, which sums of
// slabs share, wide_q m x q_cols REAL where Q has another type, done 1 int, prepared V and T, and
// with GRAM 5 squares in double. A NaN or Inf makes its own matrix NaN: nothing is shared between
// matrices.
#include "gpu/products/gemm.cl"

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

#if GRAM
#include "gpu/variants/large/panel_triangles.clh"
#endif
#include "gpu/variants/large/panel.clh"
// Uses what panel.clh defines.
#include "gpu/variants/large/block_t.clh"

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
__kernel GROUP void begin_q(__global REAL* q, __global const int* codes, __global const REAL* signs,
                            FactorShape shape, BlockShape at) {
  __local int code;
  const int rows = shape.m - at.block, end = at.block + at.block_width;
  index_t matrix;
  const int first = at.block + split_group((rows + 31) / 32, &matrix) * 32;
  const int last = min(shape.m, first + 32);
  const bool is_last = end == shape.k;
  q += matrix * shape.m * shape.q_cols;
  const bool is_finite =
      code_of_matrix(codes + matrix * shape.n, shape.n, &code, GROUP_SIZE) != MAGNITUDE_NON_FINITE;
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
__kernel GROUP void finish_r(__global const REAL* work, __global const int* codes,
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
