// SPDX-License-Identifier: Apache-2.0
// large.cl: Householder QR of matrices of any shape, in blocks of panels, with the compact WY form
// (LAPACK geqrf, orhr_col, orgqr). gemm.cl computes the products with many terms.
//
//   launches, in this order                                                       one group per
//   scan_columns         the largest entry of each column in slabs of rows
//   scale_columns        work := A D; D = diag(2^-e_j) brings the largest
//                        entry of a column to 1/2..1                              matrix x 32 cols
//                        or scale_short_columns for both                          matrix x 32 cols
//   for each block of BLOCK columns:
//   for each panel P of PANEL columns of the block:
//     gram_panel         sums of P'P in float64 or in pairs                       matrix x slab
//     sum_panel_gram     G = P'P                                                  matrix x part
//                        or gram_panel_by_units for both                          matrix
//     factor_panel       G = R'R (Cholesky); P1 + S R = V1 W (LU) with P1 the
//                        top square of P, S the signs of the pivots;
//                        R of the panel = -S R                                    matrix
//     factor_refused_panel  refused panels of few rows, if PASSES is 1            matrix
//     if PASSES is 2, for panels with WAY_TWO_PASSES:
//       form_first_q     Q1 = P R^-1, sums of Q1'Q1                               matrix x slab
//       sum_panel_gram   G = Q1'Q1                                                matrix x part
//       factor_panel     as before, with Q1 in place of P; R1 is R of the first
//                        pass, R of the panel = -S R R1                           matrix
//     form_v             V2 = P2 W^-1; T = W R^-1 S V1^-T                         matrix x rows
//                        or form_v_by_units
//     form_exact_t       T from V'V by exact sums, if PASSES is 2 and the matrix
//                        has few rows                                             matrix
//     transposed_product Z = V'[V of earlier panels | rest of the block]          gemm.cl
//     apply_panel_t      Z := T'Z; its left part, negated, goes to X              matrix x strip
//     subtract_product   rest of the block -= V Z                                 gemm.cl
//   for the columns C right of the block:
//     Z = V'C, Z := T'Z (apply_t), C -= V Z                                       gemm.cl
//     If the products use halves, or body 5, then V and T (form_block_t) are prepared for them
//     first, and T'Z is such a product too. In float64 with long blocks only T is prepared.
//   finish_r             R := R D^-1 with signs; or finish_v and store_tau        matrix x 32 rows
//   for each block from the last to the first, if Q is wanted:
//     load_v, or V is packed, or both; then begin_q, Z = V'Q, Z := T Z, Q -= V Z
//
//        J    j    j+PANEL  J+BLOCK       v: the reflectors of the block in a buffer of their own,
//      R | R  | R  |  R   |   R      |       with zeros above the diagonal
//    J --+----+----+------+----------|    x: the matrix X, from which T of the block is applied
//        | V\R|  R |  R   | C        |       panel by panel; T_p is on its diagonal, -V_i'V_p T_p
//    j   |    +----+------|          |       is above it
//        |    | P  | rest |          |
//
// Why the Gram matrix: a panel that is factored column by column needs a pass over all of its rows
// for every column. The Gram matrix of a float32 panel, in float64, costs one pass and gives R with
// an error of 2^-53 cond(P)^2 (for scaled columns). A second pass gives the Householder vectors
// with LAPACK's signs (Ballard et al., Reconstructing Householder vectors from TSQR). Without
// float64 on the device the Gram matrix, the triangles and their products are in pairs of floats
// (wide.clh), with an error of 2^-36, and only REAL float and PASSES 1 are there. If
// ||R^-1 diag(G)^1/2||_F^2 exceeds GRAM_LIMIT, or a pivot vanishes, factor_panel factors the panel
// column by column with one group. This is slow, but works for any matrix. In float32 a panel of at
// most REFUSED_ROWS rows is left to factor_refused_panel, which keeps it in registers.
//
// Float64 (PASSES 2). One pass has an error of 2^-53 ||R^-1 diag(G)^1/2||_F^2 times a small number,
// and so it is enough for panels whose columns are nearly orthogonal, as those of Gaussian matrices
// are. The others need two passes. Q1 is stored before its Gram matrix is computed, and so
// ||Q1'Q1 - I|| is measured. If it is at most 1/4, the condition of Q1 is at most sqrt(5/3), and
// the second pass loses nothing: explicit inverses of its triangles are accurate. P = Q1 R1 holds
// to c 2^-53 |Q1| |R1| for any condition, because of the corrections in form_first_q. If Q1 is
// worse, P is still there to be factored column by column.
//
// Defines, set in large.cpp              range            meaning
//   STORED, REAL, SUB_GROUP_BODY                          common.clh
//   PASSES                               1, 2             by Gram matrices; REAL: float, double
//   BY_COLUMNS                           0, 1             1: no panel by its Gram matrix, for a
//                                                         second try
//   PANEL                                32, 64           columns per panel, NARROW_N
//   BLOCK                                PANEL 1..4       columns per block
//   SHORT_ROWS                           multiple of 8    the most rows that a group of
//                                                         scale_short_columns has in registers
//   REFUSED_ROWS                         0..512, 128 i    the most rows of a panel that
//                                                         factor_refused_panel has in registers;
//                                                         with PASSES 2 there is no such kernel
//   PANEL_UNITS                          0, 1             1: panels by float64 matrix units; with
//                                                         bodies 1 and 2 of products, PANEL 64
//   STRIP, PANEL_STRIP                   8, 16, 32        columns of Z per group, of apply_t and of
//                                                         apply_panel_t; at least 1024 / PANEL
//   and the defines of gemm.cl
// Local memory: BLOCK STRIP + SQUARE_TERMS (PANEL + 4) REAL in apply_t; PANEL^2 + PANEL + 512 REAL,
// 8 PANEL wide and 256 float (PASSES 2: double) in factor_panel; PANEL^2 + 36 PANEL + 64 +
// 2 REFUSED_ROWS REAL, or 256 more, in factor_refused_panel; PANEL (PANEL + 9) wide in form_v;
// PANEL (PANEL + 8) REAL and 10 BLOCK_ROOM double in form_v_by_units.
// Buffers per matrix:
//   work     m x ld REAL; it may share the buffer of Q, V or R
//   codes    n int; done: 1 int; signs and taus: k REAL each
//   x        BLOCK x BLOCK REAL per block
//   v        m x v_ld REAL; T'Z may overwrite it
//   z        Z in slabs; the sums of a panel's Gram matrix use the same buffer before
//   wide_q   m x q_cols REAL, if Q is stored in another type
//   packed_v, packed_t: V and T prepared for the products
//   squares  5 squares of PANEL x PANEL wide (PASSES 2: 7)
// Matrices share no data, so a NaN or Inf spoils only its own matrix.
#include "gpu/products/gemm.cl"

#ifndef BY_COLUMNS
#define BY_COLUMNS 0
#endif
#ifndef PASSES
#define PASSES 1
#endif
#ifndef PANEL
#define PANEL 64
#endif
#ifndef BLOCK
#define BLOCK 128
#endif
#ifndef SHORT_ROWS
#define SHORT_ROWS 512
#endif
#ifndef REFUSED_ROWS
#define REFUSED_ROWS 512
#endif
#ifndef PANEL_UNITS
#define PANEL_UNITS HAS_UNITS
#endif
#ifndef STRIP
#define STRIP (1024 / PANEL)
#endif
#ifndef PANEL_STRIP
#define PANEL_STRIP (1024 / PANEL)
#endif
#define LARGE_GROUP 256
#define SQUARE (PANEL * PANEL)
// Kernels that run in both passes are told the pass, 1 or 2.
#if PASSES == 2
#define PASS_ARGUMENT , int pass
#define DONE_AND_PASS_ARGUMENTS , __global const int *done, int pass
#else
#define PASS_ARGUMENT
#define DONE_AND_PASS_ARGUMENTS
#endif

// A group is divided into rows of work-items, with one work-item per column of the matrix.
#define SCAN_COLUMNS 32
#define SCAN_LANES (LARGE_GROUP / SCAN_COLUMNS)
#define PANEL_LANES (LARGE_GROUP / PANEL)
// The number of terms that are added plainly; their sum is then added to a compensated sum.
#define SUM_ROWS 16

#define IN_LARGE_GROUPS GROUP_OF(LARGE_GROUP)

// The offset of X of the block that begins at column `block`.
INLINE index_t x_offset(index_t matrix, FactorShape shape, int block) {
  const int blocks = (shape.k + BLOCK - 1) / BLOCK;
  return (matrix * blocks + block / BLOCK) * BLOCK * BLOCK;
}

// Knows the rows first .. last - 1 of column `col` for a work-item, whose next row is SCAN_LANES
// further, and its place in a group.
typedef struct {
  index_t matrix;
  int slab, col, first, last;
} ScanPlace;
INLINE ScanPlace scan_place(FactorShape shape, BlockShape at) {
  const int strips = (shape.n + SCAN_COLUMNS - 1) / SCAN_COLUMNS, item = get_local_id(0);
  ScanPlace place;
  const int group = split_group(strips * at.gram_slabs, &place.matrix);
  place.slab = group / strips;
  place.col = group % strips * SCAN_COLUMNS + item % SCAN_COLUMNS;
  const int first = place.slab * at.slab_rows;
  place.first = first + item / SCAN_COLUMNS;
  place.last = place.col < shape.n ? min(first + at.slab_rows, shape.m) : 0;
  return place;
}

// The larger of x and `largest`, or Inf if x is NaN.
INLINE STORED larger_or_inf(STORED x, STORED largest) {
  return x <= largest ? largest : isnan(x) ? (STORED)INFINITY : x;
}

// z[slab][j] := the largest |a(i, j)| of a slab of rows, or Inf for a NaN. One group per matrix,
// slab and 32 columns.
__kernel IN_LARGE_GROUPS void scan_columns(__global const STORED* a, __global REAL* z,
                                           FactorShape shape, BlockShape at) {
  __local STORED largest_of[LARGE_GROUP];
  const int item = get_local_id(0);
  const ScanPlace place = scan_place(shape, at);
  a += place.matrix * shape.m * shape.n;
  STORED largest = 0;
#pragma unroll 8
  for (int row = place.first; row < place.last; row += SCAN_LANES) {
    largest = larger_or_inf(fabs(a[(index_t)row * shape.n + place.col]), largest);
  }
  largest_of[item] = largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item >= SCAN_COLUMNS || place.col >= shape.n) return;
  for (int other = item; other < LARGE_GROUP; other += SCAN_COLUMNS) {
    largest = fmax(largest, largest_of[other]);
  }
  z[place.matrix * at.z_stride + place.slab * (index_t)shape.n + place.col] = largest;
}

// work := A D; codes[j] := the magnitude code of column j. Groups as in scan_columns.
__kernel IN_LARGE_GROUPS void scale_columns(__global const STORED* a, __global REAL* work,
                                            __global int* codes, __global const REAL* z,
                                            FactorShape shape, BlockShape at) {
  __local REAL largest_of[LARGE_GROUP];
  const int item = get_local_id(0);
  const ScanPlace place = scan_place(shape, at);
  a += place.matrix * shape.m * shape.n;
  work += place.matrix * shape.m * at.ld;
  z += place.matrix * at.z_stride + place.col;
  REAL largest = 0;
  for (int slab = item / SCAN_COLUMNS; slab < (place.col < shape.n ? at.gram_slabs : 0);
       slab += SCAN_LANES) {
    largest = fmax(largest, z[slab * (index_t)shape.n]);
  }
  largest_of[item] = largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int other = item % SCAN_COLUMNS; other < LARGE_GROUP; other += SCAN_COLUMNS) {
    largest = fmax(largest, largest_of[other]);
  }
  const int code = magnitude_code(largest, isfinite(largest));
  if (place.slab == 0 && item < SCAN_COLUMNS && place.col < shape.n) {
    codes[place.matrix * shape.n + place.col] = code;
  }
#pragma unroll 8
  for (int row = place.first; row < place.last; row += SCAN_LANES) {
    work[(index_t)row * at.ld + place.col] =
        scale_by((REAL)a[(index_t)row * shape.n + place.col], -scale_of(code));
  }
}

// As scan_columns and scale_columns, for columns in one slab of up to SHORT_ROWS rows, which are
// read once. One group per matrix and 32 columns.
__kernel IN_LARGE_GROUPS void scale_short_columns(__global const STORED* a, __global REAL* work,
                                                  __global int* codes, FactorShape shape,
                                                  BlockShape at) {
  __local STORED largest_of[LARGE_GROUP];
  const int item = get_local_id(0);
  const ScanPlace place = scan_place(shape, at);
  a += place.matrix * shape.m * shape.n + place.col;
  work += place.matrix * shape.m * at.ld + place.col;
  STORED own[SHORT_ROWS / SCAN_LANES], largest = 0;
#pragma unroll
  for (int i = 0; i < SHORT_ROWS / SCAN_LANES; ++i) {
    const int row = place.first + i * SCAN_LANES;
    own[i] = row < place.last ? a[row * (index_t)shape.n] : (STORED)0;
  }
#pragma unroll
  for (int i = 0; i < SHORT_ROWS / SCAN_LANES; ++i) largest = larger_or_inf(fabs(own[i]), largest);
  largest_of[item] = largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int other = item % SCAN_COLUMNS; other < LARGE_GROUP; other += SCAN_COLUMNS) {
    largest = fmax(largest, largest_of[other]);
  }
  const int code = magnitude_code(largest, isfinite(largest));
  if (item < SCAN_COLUMNS && place.col < shape.n) codes[place.matrix * shape.n + place.col] = code;
#pragma unroll
  for (int i = 0; i < SHORT_ROWS / SCAN_LANES; ++i) {
    const int row = place.first + i * SCAN_LANES;
    if (row < place.last) work[row * (index_t)at.ld] = scale_by((REAL)own[i], -scale_of(code));
  }
}

#include "gpu/reflectors/large/panel_triangles.clh"
// panel.clh uses definitions of panel_triangles.clh.
#include "gpu/reflectors/large/panel.clh"
// refused_panel.clh uses definitions of panel.clh.
#include "gpu/reflectors/large/refused_panel.clh"
#include "gpu/reflectors/large/panel_units.clh"
// block_t.clh uses definitions of panel.clh.
#include "gpu/reflectors/large/block_t.clh"

// ---- Q

// v := the reflectors of the block, beginning at its first row. One group per matrix and 32 rows.
__kernel IN_LARGE_GROUPS void load_v(__global const REAL* work, __global REAL* v, FactorShape shape,
                                     BlockShape at) {
  const int rows = shape.m - at.block;
  index_t matrix;
  const int first = split_group((rows + 31) / 32, &matrix) * 32, last = min(rows, first + 32);
  work += (matrix * shape.m + at.block) * at.ld + at.block;
  v += matrix * shape.m * at.v_ld;
  for (int row = first + get_local_id(0) / 32; row < last; row += LARGE_GROUP / 32) {
    for (int col = get_local_id(0) % 32; col < at.block_width; col += 32) {
      const REAL x = work[row * (index_t)at.ld + col];
      v[row * (index_t)at.v_ld + col] = row > col ? x : row == col ? (REAL)1 : (REAL)0;
    }
  }
}

// Sets the part of Q that no later block has touched to the identity with the signs of R: the rows
// and columns of this block, and for the last block all rows and columns from at.block on. One
// group per matrix and 32 rows.
__kernel IN_LARGE_GROUPS void begin_q(__global REAL* q, __global const int* codes,
                                      __global const REAL* signs, FactorShape shape,
                                      BlockShape at) {
  __local int code;
  const int rows = shape.m - at.block, end = at.block + at.block_width;
  index_t matrix;
  const int first = at.block + split_group((rows + 31) / 32, &matrix) * 32;
  const int last = min(shape.m, first + 32);
  const bool is_last = end == shape.k;
  q += matrix * shape.m * shape.q_cols;
  const bool is_finite =
      code_of_matrix(codes + matrix * shape.n, shape.n, &code, LARGE_GROUP) != MAGNITUDE_NON_FINITE;
  for (int row = first + get_local_id(0) / 64; row < last; row += LARGE_GROUP / 64) {
    const int stop = is_last || row < end ? shape.q_cols : end;
    for (int col = at.block + get_local_id(0) % 64; col < stop; col += 64) {
      REAL x = row == col ? 1 : 0;
      if (row == col && shape.positive && col < shape.k) x = signs[matrix * shape.k + col];
      q[row * (index_t)shape.q_cols + col] = is_finite ? x : (REAL)NAN;
    }
  }
}

// ---- results

// r := R D^-1 with signs, zeros below the diagonal. magnitudes[matrix] := the code of the matrix. r
// and work may be the same buffer. The + 0 turns -0 into +0. One group per matrix and 32 rows.
__kernel IN_LARGE_GROUPS void finish_r(__global const REAL* work, __global const int* codes,
                                       __global const REAL* signs, __global STORED* r,
                                       __global int* magnitudes, FactorShape shape, BlockShape at) {
  __local int code;
  const int blocks = (shape.r_rows + 31) / 32;
  index_t matrix;
  const int block = split_group(blocks, &matrix), last = min(shape.r_rows, 32 * block + 32);
  work += matrix * shape.m * at.ld;
  codes += matrix * shape.n;
  r += matrix * shape.r_rows * shape.n;

  const bool is_finite = code_of_matrix(codes, shape.n, &code, LARGE_GROUP) != MAGNITUDE_NON_FINITE;
  if (block == 0 && get_local_id(0) == 0) magnitudes[matrix] = code;
  for (int row = 32 * block + get_local_id(0) / 64; row < last; row += LARGE_GROUP / 64) {
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

// v := V\R in the form of LAPACK's geqrf. v and work may be the same buffer, so that a work-item
// reads FINISHED entries before it writes them. One group per matrix and 32 rows.
#define FINISHED 8
__kernel IN_LARGE_GROUPS void finish_v(__global const REAL* work, __global const int* codes,
                                       __global STORED* v, __global int* magnitudes,
                                       FactorShape shape, BlockShape at) {
  __local int code;
  const int blocks = (shape.m + 31) / 32;
  index_t matrix;
  const int block = split_group(blocks, &matrix), last = min(shape.m, 32 * block + 32);
  work += matrix * shape.m * at.ld;
  codes += matrix * shape.n;
  v += matrix * shape.m * shape.n;

  const bool is_finite = code_of_matrix(codes, shape.n, &code, LARGE_GROUP) != MAGNITUDE_NON_FINITE;
  if (block == 0 && get_local_id(0) == 0) magnitudes[matrix] = code;
  for (int row = 32 * block + get_local_id(0) / 64; row < last; row += LARGE_GROUP / 64) {
    for (int first = get_local_id(0) % 64; first < shape.n; first += 64 * FINISHED) {
      REAL y[FINISHED];
      int scale[FINISHED];
#pragma unroll
      for (int i = 0; i < FINISHED; ++i) {
        const int col = first + 64 * i;
        y[i] = col < shape.n ? work[row * (index_t)at.ld + col] : (REAL)0;
        scale[i] = row <= col && col < shape.n ? scale_of(codes[col]) : 0;
      }
#pragma unroll
      for (int i = 0; i < FINISHED; ++i) {
        const int col = first + 64 * i;
        if (col < shape.n) {
          const STORED x =
              row <= col ? (STORED)scale_by(y[i], scale[i]) + (STORED)0 : (STORED)y[i];
          v[row * (index_t)shape.n + col] = is_finite ? x : (STORED)NAN;
        }
      }
    }
  }
}

// tau := taus. If V was rounded to a narrower type, tau := 2 / v'v for the rounded v, so that
// I - tau v v' is orthogonal. One work-item per reflector.
__kernel IN_LARGE_GROUPS void store_tau(__global const REAL* taus, __global const STORED* v,
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

__kernel IN_LARGE_GROUPS void store_q(__global const REAL* wide_q, __global STORED* q,
                                      FactorShape shape) {
  const index_t i = get_global_id(0);
  if (i < (index_t)shape.count * shape.m * shape.q_cols) q[i] = (STORED)wide_q[i];
}
