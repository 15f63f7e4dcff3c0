// SPDX-License-Identifier: Apache-2.0
// blocked.cl: Householder QR of a batch in blocks of 32 columns with the compact WY form. A strip
// is 32 columns; one work-group holds it in its registers (LAPACK geqrf, orgqr).
//
//   launches, in this order   what they do                                   one group for each
//   factor_first              factors strip 0 of A D: V\R and T              matrix
//                             (geqr2, larft)
//   factor_step L > 0         strips t >= L: C := (I - V T' V') C with       matrix x strip
//                             panel L-1 (larfb); then it factors strip L
//   finish_strips             R := R D^-1 with signs;                        matrix x 32 rows
//   or finish_raw             V and tau
//   form_q_step i             strips t > i: Q := (I - V T V') Q with         matrix x strip
//                             panel i, i = panels - 1, .., 0, -1 (orgqr)
//
//        32 L - 32   32 L                      A strip in step L uses only the rows of panel L-1
//      R | R       |  R   |                    and the rows below. D = diag(2^-e_j) brings the
//        +---------+------+------+             largest entry of a column to 1/2..1. Each strip is
//        | V\R     | C    | C    |             scaled when it is first read from A. One group
//        | panel   | next |      |             updates and factors the next panel while the
//        | L-1     | panel|      |             other groups update their strips.
//
// V\R is R with the reflectors V below its diagonal. Q may overwrite V\R in the same buffer. Step t
// is the last in which other strips read the reflectors of panel t. In step t - 1 the group of
// strip t starts with columns of the identity, applies the reflectors of panel t, and overwrites
// them with Q. The rows above panel t are zeros of the identity until then, so the kernel does not
// read them.
//
// Reflectors are I - g v v' with v = [top; x]. They are not scaled to a leading 1 (tile.clh).
// `work` holds x below the diagonal and beta on it, `tops` holds top, and T(i, i) = g_i.
//
// Defines, set in blocked.cpp            range            meaning
//   STORED = REAL, SUB_GROUP_BODY                         common.clh
//   LANE_ROWS                            4..32, 4 i       rows per lane; 32 lanes share a column
//   LANE_COLUMNS                         2, 4, 8          columns per lane, which are adjacent
//   LANES_ACROSS                         4, 8, 16         lanes side by side; 32 / LANE_COLUMNS
//   STAGE                                4, 8, 16, 32     reflectors in local memory at a time
//   LEAN                                 0, 1             1: less local memory and fewer registers:
//                                                         T stays in global memory and is formed
//                                                         after the panel is stored; T V'C replaces
//                                                         V'C
//   LIVE_ROWS                            0, 1             1: rows past the end are skipped,
//                                                         four of a lane at a time
//   ALIGNMENT                            1, 2, 4          strip.clh; rows of A, Q and work
//   FLAGGED                              0, 1             common.clh
// Group size: 32 / LANE_COLUMNS x 32.
// Local memory: STAGE (32 LANE_ROWS + pad) + 3 x 32^2 + 98 REAL and 32 int, with pad = 32 / STAGE,
// or 0 if STAGE is 4, and 32^2 instead of 3 x 32^2 if LEAN. Without shuffles among 32 lanes, each
// work-item needs 4 LANE_COLUMNS REAL more. Buffers per matrix: work m x ld REAL (it may share the
// buffer of Q, V or R), codes n int, tops k REAL, T 32 x 32 REAL for each panel. Matrices share no
// data, so a NaN or Inf spoils only its own.
#define PANEL_WIDTH 32
#ifndef ROW_SPLITS
#define ROW_SPLITS 32
#endif
#ifndef COLUMN_STEP
#define COLUMN_STEP 32
#endif
#ifndef MATRICES
#define MATRICES 1
#endif
#ifndef KEEP_GRAM
#define KEEP_GRAM 1
#endif
#ifndef CONTIGUOUS
#define CONTIGUOUS 1
#endif
#ifndef LIVE_ROWS
#define LIVE_ROWS 1
#endif
#ifndef LEAN
#define LEAN 0
#endif
// T is formed after the panel is stored, when fewer registers are in use. With FLAGGED, PoCL 3.1
// makes wrong code of a kernel that may return early and has barriers after its last store.
#define LATE_T (LEAN && !FLAGGED)
#ifndef LANE_ROWS
#define LANE_ROWS 8
#endif
#ifndef LANE_COLUMNS
#define LANE_COLUMNS 8
#endif
#ifndef LANES_ACROSS
#define LANES_ACROSS 4
#endif
#ifndef STAGE
#define STAGE 16
#endif
#include "gpu/reflectors/blocked/strip.clh"

#define IN_STRIP_GROUPS GROUP_OF(LANES_GROUP)
#define PLANES (STAGE / 4)
// Local memory holds the reflectors in planes of four: word i of a plane is row i of its four
// reflectors. The padding puts the planes of one row into different banks.
#define PLANE_STRIDE (MATRIX_ROWS + (STAGE < 8 ? 0 : 32 / STAGE))
#define PANEL_STAGES (PANEL_WIDTH / STAGE)
// A lane forms one sum for each of four reflectors and each of its columns. The 32 lanes of a
// column then add theirs up. Each lane receives one total; LANES_OF_SUM adjacent lanes receive the
// same one.
#define LANE_SUMS (4 * LANE_COLUMNS)
#define LANES_OF_SUM (32 / LANE_SUMS)

// Points to the local memory of a group. Arrays that share memory are never in use at the same
// time.
typedef struct {
  __local real4* v;       // STAGE reflectors, planes of four
  __local REAL* w;        // PANEL_WIDTH x PANEL_WIDTH: V'C
  __local REAL* tw;       // PANEL_WIDTH x PANEL_WIDTH: T V'C; the same as w if LEAN
  __local REAL* t;        // PANEL_WIDTH x PANEL_WIDTH; not used if LEAN
  __local REAL* scratch;  // without shuffles: LANE_SUMS x LANES_GROUP, which is at least SCRATCH
} GroupRoom;

// Describes the reflectors of a panel in global memory. v points to the panel's first row and
// column.
typedef struct {
  __global const REAL* v;
  __global const REAL* tops;
  __global const REAL* t;
  index_t ld;
  int rows, width;
} Panel;

// block->v := reflectors stage STAGE .. stage STAGE + STAGE - 1 of the panel, zeros above `top`.
INLINE void load_stage(const Lane* at, const GroupRoom* block, const Panel* panel, int stage) {
  for (int i = get_local_id(0); i < LIVE_END(at) * PLANES; i += LANES_GROUP) {
    const int row = i / PLANES, plane = i % PLANES, p = stage * STAGE + 4 * plane;
    real4 x = (real4)(0);
    if (row < panel->rows) x = load_four(panel->v + row * panel->ld + p, panel->width - p);
    if (row < p + 4) {
      const mask4_t columns = (mask4_t)(p, p + 1, p + 2, p + 3);
      real4 tops = load_four(panel->tops + p, panel->width - p);
      x = select(x, tops, columns == (mask4_t)(row));
      x = select(x, (real4)(0), columns > (mask4_t)(row));
    }
    block->v[plane * PLANE_STRIDE + row] = x;
  }
}

#if SHUFFLES
// One step of the sums over 32 lanes. Lanes `offset` apart exchange halves of their sums, and each
// keeps `kept` of them. If only one sum is left (kept = 0), both lanes receive its total.
INLINE void halve_sums(const Lane* at, REAL sums[LANE_SUMS], const int offset, const int kept) {
  const bool upper = (at->s & offset) != 0;
  if (kept == 0) sums[0] += shuffle_xor(sums[0], offset);
#pragma unroll
  for (int k = 0; k < kept; ++k) {
    const REAL lower_sum = sums[k], upper_sum = sums[k + kept];
    const REAL other = shuffle_xor(upper ? lower_sum : upper_sum, offset);
    sums[k] = (upper ? upper_sum : lower_sum) + other;
  }
}
#endif

// w(p, :) := the sums over the 32 lanes of a column, for p = first .. first + 3.
// sums[q LANE_COLUMNS + c] belongs to reflector first + q and column c.
INLINE void reduce_sums(const Lane* at, const GroupRoom* block, REAL sums[LANE_SUMS], int first) {
  const int kept = at->s / LANES_OF_SUM;  // the index of the sum that this lane receives
#if SHUFFLES
  halve_sums(at, sums, 16, LANE_SUMS / 2);
  halve_sums(at, sums, 8, LANE_SUMS / 4);
  halve_sums(at, sums, 4, LANE_SUMS / 8);
  halve_sums(at, sums, 2, LANE_SUMS / 16);
  halve_sums(at, sums, 1, LANE_SUMS / 32);
  const REAL sum = sums[0];
#else
  const int item = get_local_id(0);
#pragma unroll
  for (int k = 0; k < LANE_SUMS; ++k) block->scratch[k * LANES_GROUP + item] = sums[k];
  barrier(CLK_LOCAL_MEM_FENCE);
  const REAL sum = sum_of_splits(block->scratch + kept * LANES_GROUP + item - at->s);
  barrier(CLK_LOCAL_MEM_FENCE);
#endif
  if (at->s % LANES_OF_SUM == 0) {
    block->w[(first + kept / LANE_COLUMNS) * PANEL_WIDTH + COLUMN_OF(at->p, kept % LANE_COLUMNS)] =
        sum;
  }
}

// tw := -T w, or -T' w if `transposed`.
#if LEAN
#define T_ROWS (PANEL_WIDTH * PANEL_WIDTH / LANES_GROUP)  // rows of T w per work-item
INLINE void multiply_by_t(const GroupRoom* block, const Panel* panel, const bool transposed) {
  const int row = (int)get_local_id(0) / PANEL_WIDTH, col = get_local_id(0) % PANEL_WIDTH;
  REAL sums[T_ROWS];
#pragma unroll
  for (int i = 0; i < T_ROWS; ++i) sums[i] = 0;
#pragma unroll 4
  for (int l = 0; l < PANEL_WIDTH; ++l) {
    const REAL x = block->w[l * PANEL_WIDTH + col];
#pragma unroll
    for (int i = 0; i < T_ROWS; ++i) {
      const int p = row + i * (LANES_GROUP / PANEL_WIDTH);
      sums[i] = fma(panel->t[transposed ? l * PANEL_WIDTH + p : p * PANEL_WIDTH + l], x, sums[i]);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int i = 0; i < T_ROWS; ++i) {
    block->tw[(row + i * (LANES_GROUP / PANEL_WIDTH)) * PANEL_WIDTH + col] = -sums[i];
  }
}
#else
INLINE void multiply_by_t(const GroupRoom* block, const Panel* panel, const bool transposed) {
  const int item = get_local_id(0), col = item % PANEL_WIDTH;
  (void)panel;
#pragma unroll 1
  for (int p = item / PANEL_WIDTH; p < PANEL_WIDTH; p += LANES_GROUP / PANEL_WIDTH) {
    REAL sum = 0;
#pragma unroll 8
    for (int l = 0; l < PANEL_WIDTH; ++l) {
      sum = fma(block->t[transposed ? l * PANEL_WIDTH + p : p * PANEL_WIDTH + l],
                block->w[l * PANEL_WIDTH + col], sum);
    }
    block->tw[p * PANEL_WIDTH + col] = -sum;
  }
}
#endif

// tile := (I - V T V') tile, or (I - V T' V') tile if `transposed`. The panel and the tile begin in
// the same row.
INLINE void apply_panel(const Lane* at, LaneTile tile, const GroupRoom* block, const Panel* panel,
                        const bool transposed) {
#if !LEAN
  for (int i = get_local_id(0); i < PANEL_WIDTH * PANEL_WIDTH; i += LANES_GROUP)
    block->t[i] = panel->t[i];
#endif
    // w := V' tile
#pragma unroll 1
  for (int stage = 0; stage < PANEL_STAGES; ++stage) {
    barrier(CLK_LOCAL_MEM_FENCE);
    load_stage(at, block, panel, stage);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int plane = 0; plane < PLANES; ++plane) {
      __local const real4* v = block->v + plane * PLANE_STRIDE + at->s;
      REAL sums[LANE_SUMS];
#pragma unroll
      for (int k = 0; k < LANE_SUMS; ++k) sums[k] = 0;
#pragma unroll
      for (int word = 0; word < LANE_ROWS / 4; ++word) {
        if (HAS_WORD(at, word, 0)) {
#pragma unroll
          for (int i = 4 * word; i < 4 * word + 4; ++i) {
            const real4 x = v[i * ROW_SPLITS];
#pragma unroll
            for (int c = 0; c < LANE_COLUMNS; ++c) {
              sums[c] = fma(x.x, tile[c][i], sums[c]);
              sums[LANE_COLUMNS + c] = fma(x.y, tile[c][i], sums[LANE_COLUMNS + c]);
              sums[2 * LANE_COLUMNS + c] = fma(x.z, tile[c][i], sums[2 * LANE_COLUMNS + c]);
              sums[3 * LANE_COLUMNS + c] = fma(x.w, tile[c][i], sums[3 * LANE_COLUMNS + c]);
            }
          }
        }
      }
      reduce_sums(at, block, sums, stage * STAGE + 4 * plane);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  multiply_by_t(block, panel, transposed);
  barrier(CLK_LOCAL_MEM_FENCE);
  // tile += V tw, last stage first, because that stage is still in local memory
#pragma unroll 1
  for (int stage = PANEL_STAGES - 1; stage >= 0; --stage) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (stage < PANEL_STAGES - 1) load_stage(at, block, panel, stage);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int plane = 0; plane < PLANES; ++plane) {
      __local const real4* v = block->v + plane * PLANE_STRIDE + at->s;
      __local const REAL* tw = block->tw + (stage * STAGE + 4 * plane) * PANEL_WIDTH;
      REAL factors[4][LANE_COLUMNS];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
#pragma unroll
        for (int c = 0; c < LANE_COLUMNS; ++c) {
          factors[q][c] = tw[q * PANEL_WIDTH + COLUMN_OF(at->p, c)];
        }
      }
#pragma unroll
      for (int word = 0; word < LANE_ROWS / 4; ++word) {
        if (HAS_WORD(at, word, 0)) {
#pragma unroll
          for (int i = 4 * word; i < 4 * word + 4; ++i) {
            const real4 x = v[i * ROW_SPLITS];
#pragma unroll
            for (int c = 0; c < LANE_COLUMNS; ++c) {
              REAL y = fma(x.x, factors[0][c], tile[c][i]);
              y = fma(x.y, factors[1][c], y);
              y = fma(x.z, factors[2][c], y);
              tile[c][i] = fma(x.w, factors[3][c], y);
            }
          }
        }
      }
    }
  }
}

// Forms T column by column: T(i, i) = g_i, T(i, c) = -g_c sum_l T(i, l) gram(l, c), l = i..c-1.
// Work-item i computes row i, and keeps it in the memory where lanes had shown vectors.
INLINE void form_strip_t(const Lane* at, __global REAL* t) {
  const int i = get_local_id(0);
  if (i < PANEL_WIDTH) {
    __local REAL* row = at->shown + i;  // entry l is row[l PANEL_WIDTH]
#pragma unroll 1
    for (int c = 0; c < PANEL_WIDTH; ++c) {
      REAL even = 0, odd = 0;
#pragma unroll 4
      for (int l = 0; l < (c & ~1); l += 2) {
        even = fma(row[l * PANEL_WIDTH], at->gram[l * PANEL_WIDTH + c], even);
        odd = fma(row[(l + 1) * PANEL_WIDTH], at->gram[(l + 1) * PANEL_WIDTH + c], odd);
      }
      if (c & 1) even = fma(row[(c - 1) * PANEL_WIDTH], at->gram[(c - 1) * PANEL_WIDTH + c], even);
      const REAL weight = at->weights[c];
      const REAL x = c == i ? weight : c < i ? (REAL)0 : -weight * (even + odd);
      row[c * PANEL_WIDTH] = t[i * PANEL_WIDTH + c] = x;
    }
  }
}

// ---- steps

INLINE Panel panel_of(__global const REAL* work, __global const REAL* tops, __global const REAL* t,
                      index_t matrix, FactorShape shape, int ld, int index) {
  const int panels = (shape.k + PANEL_WIDTH - 1) / PANEL_WIDTH, first = index * PANEL_WIDTH;
  const Panel panel = {work + (matrix * shape.m + first) * (index_t)ld + first,
                       tops + matrix * shape.k + first,
                       t + (matrix * panels + index) * PANEL_WIDTH * PANEL_WIDTH,
                       ld,
                       shape.m - first,
                       min(PANEL_WIDTH, shape.k - first)};
  return panel;
}

#define WORDS_OF(rows) \
  (LIVE_ROWS ? ((rows) + 4 * ROW_SPLITS - 1) / (4 * ROW_SPLITS) : LANE_ROWS / 4)

// Declares the arrays that Lane and GroupRoom point to. The vectors that lanes show, and then T,
// share memory with the reflectors (v_space), and gram shares memory with w (w_space).
#define LOCAL_MEMORY                                                                         \
  __local real4 v_space[LARGER(PLANES * PLANE_STRIDE,                                        \
                               LARGER(SHOWN_STRIDE / 4, PANEL_WIDTH * PANEL_WIDTH / 4))];    \
  __local REAL w_space[PANEL_WIDTH * PANEL_WIDTH];                                           \
  __local REAL weights[PANEL_WIDTH], tops_space[PANEL_WIDTH], signs[PANEL_WIDTH], alphas[2]; \
  __local REAL scratch[SHUFFLES ? 1 : LANE_SUMS * LANES_GROUP];                              \
  const int item = get_local_id(0);                                                          \
  Lane at = {item,                                                                           \
             item / ROW_SPLITS,                                                              \
             item % ROW_SPLITS,                                                              \
             (__local REAL*)v_space,                                                         \
             weights,                                                                        \
             tops_space,                                                                     \
             signs,                                                                          \
             alphas,                                                                         \
             scratch,                                                                        \
             w_space,                                                                        \
             0}
#if LEAN
#define BLOCK_MEMORY const GroupRoom block = {v_space, w_space, w_space, 0, scratch}
#else
#define BLOCK_MEMORY                                            \
  __local REAL tw_space[PANEL_WIDTH * PANEL_WIDTH], t_space[PANEL_WIDTH * PANEL_WIDTH]; \
  const GroupRoom block = {v_space, w_space, tw_space, t_space, scratch}
#endif

// Factors the panel that the tile holds: tile := V\R, tops := the first entries of the v, and T
// unless LATE_T.
INLINE void factor_strip(Lane* at, LaneTile tile, int width, __global REAL* tops,
                         __global REAL* t) {
  const int item = get_local_id(0);
  for (int i = item; i < PANEL_WIDTH * PANEL_WIDTH; i += LANES_GROUP) at->gram[i] = 0;
  if (item < PANEL_WIDTH) at->weights[item] = at->tops[item] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
  for (int j = 0; j < PANEL_WIDTH; ++j) factor_column(at, tile, j % LANE_COLUMNS, j, 0);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!LATE_T) form_strip_t(at, t);
  if (item < width) tops[item] = at->tops[item];
}

// Scales and factors strip 0. One group per matrix.
__kernel IN_STRIP_GROUPS void factor_first(__global const STORED* a, __global REAL* work,
                                           __global int* codes, __global REAL* tops,
                                           __global REAL* t, FactorShape shape,
                                           StripShape step FLAGS_ARGUMENT) {
  LOCAL_MEMORY;
  __local int column_codes[PANEL_WIDTH];
  const index_t matrix = get_group_id(0);
  if (!IS_TO_DO(matrix)) return;
  const int columns = min(PANEL_WIDTH, shape.n), panels = (shape.k + PANEL_WIDTH - 1) / PANEL_WIDTH;
  LaneTile tile;
  at.words = WORDS_OF(shape.m);
  if (item < PANEL_WIDTH) column_codes[item] = MAGNITUDE_ZERO;
  load_strip(&at, tile, a + matrix * shape.m * shape.n, shape.n, shape.m, columns);
  barrier(CLK_LOCAL_MEM_FENCE);
  scale_strip(&at, tile, codes + matrix * shape.n, columns, column_codes);
  __global REAL* const strip_t = t + matrix * panels * PANEL_WIDTH * PANEL_WIDTH;
  factor_strip(&at, tile, min(PANEL_WIDTH, shape.k), tops + matrix * shape.k, strip_t);
  store_strip(&at, tile, work + matrix * shape.m * step.ld, step.ld, shape.m, columns);
  if (LATE_T) form_strip_t(&at, strip_t);
}

// Step L = step.index: updates strips t >= L with panel L-1, then factors strip L. One group per
// strip and matrix. The groups of strip L have the lowest numbers and start first, because they
// take longest.
__kernel IN_STRIP_GROUPS void factor_step(__global const STORED* a, __global REAL* work,
                                          __global int* codes, __global REAL* tops,
                                          __global REAL* t, FactorShape shape,
                                          StripShape step FLAGS_ARGUMENT) {
  LOCAL_MEMORY;
  BLOCK_MEMORY;
  __local int column_codes[PANEL_WIDTH];
  index_t strip;
  const index_t matrix = split_group(shape.count, &strip);
  if (!IS_TO_DO(matrix)) return;
  strip += step.index;
  const int ld = step.ld, first_col = (int)strip * PANEL_WIDTH,
            columns = min(PANEL_WIDTH, shape.n - first_col);
  const int first_row = (step.index - 1) * PANEL_WIDTH;
  __global REAL* to = work + matrix * shape.m * ld + first_col;

  LaneTile tile;
  at.words = WORDS_OF(shape.m - first_row);
  const bool is_first = step.index == 1;
  if (item < PANEL_WIDTH) column_codes[item] = MAGNITUDE_ZERO;
  load_strip(&at, tile,
             is_first ? a + matrix * shape.m * shape.n + first_col : to + first_row * (index_t)ld,
             is_first ? shape.n : ld, shape.m - first_row, columns);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (is_first) scale_strip(&at, tile, codes + matrix * shape.n + first_col, columns, column_codes);
  const Panel done = panel_of(work, tops, t, matrix, shape, ld, step.index - 1);
  apply_panel(&at, tile, &block, &done, true);
  if (strip > step.index || first_col >= shape.k) {
    store_strip(&at, tile, to + first_row * (index_t)ld, ld, shape.m - first_row, columns);
    return;
  }
  // The first 32 rows of the strip are rows of R and are stored. The others move up by one register
  // (32 rows), because the panel begins below R.
  const int row = first_row + at.s;
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; ++c) {
    const int col = COLUMN_OF(at.p, c);
    if (col < columns) to[row * (index_t)ld + col] = tile[c][0];
#pragma unroll
    for (int i = 0; i < LANE_ROWS; ++i) {
      tile[c][i] = i + 1 < LANE_ROWS ? tile[c][i + 1 < LANE_ROWS ? i + 1 : 0] : (REAL)0;
    }
  }
  at.words = WORDS_OF(shape.m - first_col);
  barrier(CLK_LOCAL_MEM_FENCE);
  const int panels = (shape.k + PANEL_WIDTH - 1) / PANEL_WIDTH;
  __global REAL* const strip_t = t + (matrix * panels + strip) * PANEL_WIDTH * PANEL_WIDTH;
  factor_strip(&at, tile, min(PANEL_WIDTH, shape.k - first_col),
               tops + matrix * shape.k + first_col, strip_t);
  store_strip(&at, tile, to + first_col * (index_t)ld, ld, shape.m - first_col, columns);
  if (LATE_T) form_strip_t(&at, strip_t);
}

#include "gpu/reflectors/blocked/blocked_q.clh"
