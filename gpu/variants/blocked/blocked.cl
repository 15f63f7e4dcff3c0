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
//   TILE_ROWS                            4..32, 4 i       rows per lane; 32 lanes share a column
//   LANE_COLUMNS                         2, 4, 8          adjacent columns per lane
//   STAGE                                4, 8, 16, 32     reflectors in local memory at a time
//   LEAN                                 0, 1             1: less local memory and fewer registers:
//                                                         T stays in global memory and is formed
//                                                         after the panel is stored; T V'C replaces
//                                                         V'C
//   LIVE_ROWS                            0, 1             1: rows past the end of a strip are
//                                                         skipped, four of a lane at a time
//   ALIGNMENT                            1, 2, 4          rows of A, Q and work begin at multiples
//                                                         of so many REAL
//   FLAGGED                              0, 1             common.clh
// Group size: 32 / LANE_COLUMNS x 32.
// Local memory: STAGE (32 TILE_ROWS + pad) + 3 x 32^2 + 98 REAL and 32 int, with pad = 32 / STAGE,
// or 0 if STAGE is 4, and 32^2 instead of 3 x 32^2 if LEAN. Without shuffles among 32 lanes, each
// work-item needs 4 LANE_COLUMNS REAL more. Buffers per matrix: work m x ld REAL (it may share the
// buffer of Q, V or R), codes n int, tops k REAL, T 32 x 32 REAL for each panel. Matrices share no
// data, so a NaN or Inf spoils only its own.
#define PANEL 32
#define ROW_SPLITS 32
#define COLUMN_STEP 32
#define MATRICES 1
#define KEEP_GRAM 1
#define CONTIGUOUS 1
#ifndef LIVE_ROWS
#define LIVE_ROWS 1
#endif
#ifndef LEAN
#define LEAN 0
#endif
// T is formed after the panel is stored, when fewer registers are in use. With FLAGGED, PoCL 3.1
// makes wrong code of a kernel that may return early and has barriers after its last store.
#define LATE_T (LEAN && !FLAGGED)
#ifndef TILE_ROWS
#define TILE_ROWS 8
#endif
#ifndef LANE_COLUMNS
#define LANE_COLUMNS 8
#endif
#define LANES_ACROSS (PANEL / LANE_COLUMNS)
#ifndef STAGE
#define STAGE 16
#endif
#include "gpu/variants/blocked/strip.clh"

#define GROUP __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1)))
#define PLANES (STAGE / 4)
// Local memory holds the reflectors in planes of four: word i of a plane is row i of its four
// reflectors. The padding puts the planes of one row into different banks.
#define PLANE_STRIDE (ROWS + (STAGE < 8 ? 0 : 32 / STAGE))
#define STAGES (PANEL / STAGE)
// A lane forms one sum for each of four reflectors and each of its columns. The 32 lanes of a
// column then add theirs up. Each lane receives one total; PARTS adjacent lanes receive the same
// one.
#define SUMS (4 * LANE_COLUMNS)
#define PARTS (32 / SUMS)

// Points to the local memory of a group. Arrays that share memory are never in use at the same
// time.
typedef struct {
  __local real4* v;       // STAGE reflectors, planes of four
  __local REAL* w;        // PANEL x PANEL: V'C
  __local REAL* tw;       // PANEL x PANEL: T V'C; the same as w if LEAN
  __local REAL* t;        // PANEL x PANEL; not used if LEAN
  __local REAL* scratch;  // without shuffles: SUMS x GROUP_SIZE, which is at least SCRATCH
} Block;

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
INLINE void load_stage(const Lane* at, const Block* block, const Panel* panel, int stage) {
  for (int i = get_local_id(0); i < LIVE_END(at) * PLANES; i += GROUP_SIZE) {
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
INLINE void halve_sums(const Lane* at, REAL sums[SUMS], const int offset, const int kept) {
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
INLINE void reduce_sums(const Lane* at, const Block* block, REAL sums[SUMS], int first) {
  const int kept = at->s / PARTS;  // the index of the sum that this lane receives
#if SHUFFLES
  halve_sums(at, sums, 16, SUMS / 2);
  halve_sums(at, sums, 8, SUMS / 4);
  halve_sums(at, sums, 4, SUMS / 8);
  halve_sums(at, sums, 2, SUMS / 16);
  halve_sums(at, sums, 1, SUMS / 32);
  const REAL sum = sums[0];
#else
  const int item = get_local_id(0);
#pragma unroll
  for (int k = 0; k < SUMS; ++k) block->scratch[k * GROUP_SIZE + item] = sums[k];
  barrier(CLK_LOCAL_MEM_FENCE);
  const REAL sum = sum_of_splits(block->scratch + kept * GROUP_SIZE + item - at->s);
  barrier(CLK_LOCAL_MEM_FENCE);
#endif
  if (at->s % PARTS == 0) {
    block->w[(first + kept / LANE_COLUMNS) * PANEL + COLUMN_OF(at->p, kept % LANE_COLUMNS)] = sum;
  }
}

// tw := -T w, or -T' w if `transposed`.
#if LEAN
#define T_ROWS (PANEL * PANEL / GROUP_SIZE)  // rows of T w per work-item
INLINE void multiply_by_t(const Block* block, const Panel* panel, const bool transposed) {
  const int row = (int)get_local_id(0) / PANEL, col = get_local_id(0) % PANEL;
  REAL sums[T_ROWS];
#pragma unroll
  for (int i = 0; i < T_ROWS; ++i) sums[i] = 0;
#pragma unroll 4
  for (int l = 0; l < PANEL; ++l) {
    const REAL x = block->w[l * PANEL + col];
#pragma unroll
    for (int i = 0; i < T_ROWS; ++i) {
      const int p = row + i * (GROUP_SIZE / PANEL);
      sums[i] = fma(panel->t[transposed ? l * PANEL + p : p * PANEL + l], x, sums[i]);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
  for (int i = 0; i < T_ROWS; ++i) {
    block->tw[(row + i * (GROUP_SIZE / PANEL)) * PANEL + col] = -sums[i];
  }
}
#else
INLINE void multiply_by_t(const Block* block, const Panel* panel, const bool transposed) {
  const int item = get_local_id(0), col = item % PANEL;
  (void)panel;
#pragma unroll 1
  for (int p = item / PANEL; p < PANEL; p += GROUP_SIZE / PANEL) {
    REAL sum = 0;
#pragma unroll 8
    for (int l = 0; l < PANEL; ++l) {
      sum =
          fma(block->t[transposed ? l * PANEL + p : p * PANEL + l], block->w[l * PANEL + col], sum);
    }
    block->tw[p * PANEL + col] = -sum;
  }
}
#endif

// tile := (I - V T V') tile, or (I - V T' V') tile if `transposed`. The panel and the tile begin in
// the same row.
INLINE void apply_panel(const Lane* at, Tile tile, const Block* block, const Panel* panel,
                        const bool transposed) {
#if !LEAN
  for (int i = get_local_id(0); i < PANEL * PANEL; i += GROUP_SIZE) block->t[i] = panel->t[i];
#endif
    // w := V' tile
#pragma unroll 1
  for (int stage = 0; stage < STAGES; ++stage) {
    barrier(CLK_LOCAL_MEM_FENCE);
    load_stage(at, block, panel, stage);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int plane = 0; plane < PLANES; ++plane) {
      __local const real4* v = block->v + plane * PLANE_STRIDE + at->s;
      REAL sums[SUMS];
#pragma unroll
      for (int k = 0; k < SUMS; ++k) sums[k] = 0;
#pragma unroll
      for (int word = 0; word < TILE_ROWS / 4; ++word) {
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
  for (int stage = STAGES - 1; stage >= 0; --stage) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (stage < STAGES - 1) load_stage(at, block, panel, stage);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int plane = 0; plane < PLANES; ++plane) {
      __local const real4* v = block->v + plane * PLANE_STRIDE + at->s;
      __local const REAL* tw = block->tw + (stage * STAGE + 4 * plane) * PANEL;
      REAL factors[4][LANE_COLUMNS];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
#pragma unroll
        for (int c = 0; c < LANE_COLUMNS; ++c) {
          factors[q][c] = tw[q * PANEL + COLUMN_OF(at->p, c)];
        }
      }
#pragma unroll
      for (int word = 0; word < TILE_ROWS / 4; ++word) {
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
  if (i < PANEL) {
    __local REAL* row = at->shown + i;  // entry l is row[l PANEL]
#pragma unroll 1
    for (int c = 0; c < PANEL; ++c) {
      REAL even = 0, odd = 0;
#pragma unroll 4
      for (int l = 0; l < (c & ~1); l += 2) {
        even = fma(row[l * PANEL], at->gram[l * PANEL + c], even);
        odd = fma(row[(l + 1) * PANEL], at->gram[(l + 1) * PANEL + c], odd);
      }
      if (c & 1) even = fma(row[(c - 1) * PANEL], at->gram[(c - 1) * PANEL + c], even);
      const REAL weight = at->weights[c];
      const REAL x = c == i ? weight : c < i ? (REAL)0 : -weight * (even + odd);
      row[c * PANEL] = t[i * PANEL + c] = x;
    }
  }
}

// ---- steps

INLINE Panel panel_of(__global const REAL* work, __global const REAL* tops, __global const REAL* t,
                      index_t matrix, FactorShape shape, int ld, int index) {
  const int panels = (shape.k + PANEL - 1) / PANEL, first = index * PANEL;
  const Panel panel = {work + (matrix * shape.m + first) * (index_t)ld + first,
                       tops + matrix * shape.k + first,
                       t + (matrix * panels + index) * PANEL * PANEL,
                       ld,
                       shape.m - first,
                       min(PANEL, shape.k - first)};
  return panel;
}

#define WORDS_OF(rows) \
  (LIVE_ROWS ? ((rows) + 4 * ROW_SPLITS - 1) / (4 * ROW_SPLITS) : TILE_ROWS / 4)

// Declares the arrays that Lane and Block point to. The vectors that lanes show, and then T, share
// memory with the reflectors (v_space), and gram shares memory with w (w_space).
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define LOCAL_MEMORY                                                                     \
  __local real4 v_space[LARGER(PLANES * PLANE_STRIDE,                                    \
                               LARGER(SHOWN_STRIDE / 4, PANEL * PANEL / 4))];            \
  __local REAL w_space[PANEL * PANEL];                                                   \
  __local REAL weights[PANEL], tops_space[PANEL], signs[PANEL], alphas[2];               \
  __local REAL scratch[SHUFFLES ? 1 : SUMS * GROUP_SIZE];                                \
  const int item = get_local_id(0);                                                      \
  Lane at = {item,                                                                       \
             item / ROW_SPLITS,                                                          \
             item % ROW_SPLITS,                                                          \
             (__local REAL*)v_space,                                                     \
             weights,                                                                    \
             tops_space,                                                                 \
             signs,                                                                      \
             alphas,                                                                     \
             scratch,                                                                    \
             w_space,                                                                    \
             0}
#if LEAN
#define BLOCK_MEMORY const Block block = {v_space, w_space, w_space, 0, scratch}
#else
#define BLOCK_MEMORY                                            \
  __local REAL tw_space[PANEL * PANEL], t_space[PANEL * PANEL]; \
  const Block block = {v_space, w_space, tw_space, t_space, scratch}
#endif

// Factors the panel that the tile holds: tile := V\R, tops := the first entries of the v, and T
// unless LATE_T.
INLINE void factor_strip(Lane* at, Tile tile, int width, __global REAL* tops, __global REAL* t) {
  const int item = get_local_id(0);
  for (int i = item; i < PANEL * PANEL; i += GROUP_SIZE) at->gram[i] = 0;
  if (item < PANEL) at->weights[item] = at->tops[item] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
  for (int j = 0; j < PANEL; ++j) factor_column(at, tile, j % LANE_COLUMNS, j, 0);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!LATE_T) form_strip_t(at, t);
  if (item < width) tops[item] = at->tops[item];
}

// Scales and factors strip 0. One group per matrix.
__kernel GROUP void factor_first(__global const STORED* a, __global REAL* work, __global int* codes,
                                 __global REAL* tops, __global REAL* t, FactorShape shape,
                                 StripShape step FLAGS_ARGUMENT) {
  LOCAL_MEMORY;
  __local int column_codes[PANEL];
  const index_t matrix = get_group_id(0);
  if (!IS_TO_DO(matrix)) return;
  const int columns = min(PANEL, shape.n), panels = (shape.k + PANEL - 1) / PANEL;
  Tile tile;
  at.words = WORDS_OF(shape.m);
  if (item < PANEL) column_codes[item] = MAGNITUDE_ZERO;
  load_strip(&at, tile, a + matrix * shape.m * shape.n, shape.n, shape.m, columns);
  barrier(CLK_LOCAL_MEM_FENCE);
  scale_strip(&at, tile, codes + matrix * shape.n, columns, column_codes);
  __global REAL* const strip_t = t + matrix * panels * PANEL * PANEL;
  factor_strip(&at, tile, min(PANEL, shape.k), tops + matrix * shape.k, strip_t);
  store_strip(&at, tile, work + matrix * shape.m * step.ld, step.ld, shape.m, columns);
  if (LATE_T) form_strip_t(&at, strip_t);
}

// Step L = step.index: updates strips t >= L with panel L-1, then factors strip L. One group per
// strip and matrix. The groups of strip L have the lowest numbers and start first, because they
// take longest.
__kernel GROUP void factor_step(__global const STORED* a, __global REAL* work, __global int* codes,
                                __global REAL* tops, __global REAL* t, FactorShape shape,
                                StripShape step FLAGS_ARGUMENT) {
  LOCAL_MEMORY;
  BLOCK_MEMORY;
  __local int column_codes[PANEL];
  index_t strip;
  const index_t matrix = split_group(shape.count, &strip);
  if (!IS_TO_DO(matrix)) return;
  strip += step.index;
  const int ld = step.ld, first_col = (int)strip * PANEL, columns = min(PANEL, shape.n - first_col);
  const int first_row = (step.index - 1) * PANEL;
  __global REAL* to = work + matrix * shape.m * ld + first_col;

  Tile tile;
  at.words = WORDS_OF(shape.m - first_row);
  const bool is_first = step.index == 1;
  if (item < PANEL) column_codes[item] = MAGNITUDE_ZERO;
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
    for (int i = 0; i < TILE_ROWS; ++i) {
      tile[c][i] = i + 1 < TILE_ROWS ? tile[c][i + 1 < TILE_ROWS ? i + 1 : 0] : (REAL)0;
    }
  }
  at.words = WORDS_OF(shape.m - first_col);
  barrier(CLK_LOCAL_MEM_FENCE);
  const int panels = (shape.k + PANEL - 1) / PANEL;
  __global REAL* const strip_t = t + (matrix * panels + strip) * PANEL * PANEL;
  factor_strip(&at, tile, min(PANEL, shape.k - first_col), tops + matrix * shape.k + first_col,
               strip_t);
  store_strip(&at, tile, to + first_col * (index_t)ld, ld, shape.m - first_col, columns);
  if (LATE_T) form_strip_t(&at, strip_t);
}

#include "gpu/variants/blocked/blocked_q.clh"
