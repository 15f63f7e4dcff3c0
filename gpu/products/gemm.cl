// SPDX-License-Identifier: Apache-2.0
// gemm.cl: the matrix products behind large.cl, row-major, any shape (BLAS gemm).
//
//   kernel                      what it does                                 group per
//   wide_, narrow_              with body 4 they end in _doubles, and wide_ with body 5 in _floats
//     subtract_product          C := C - A B                                 matrix x tile
//     transposed_product        Z_s := A_s'B_s, s = 0, 1, ..                 matrix x slab x tile
//   packed_subtract_product,    used instead of wide_ with bodies 1, 2: A, and B of the first, are
//   packed_transposed_product   halves that pack_halves_of has made
//   packed_transposed_packed    the same as the second, Z packed as B of the first
//   transpose_operand           A of wide_subtract_floats
//
//   peak                        the rate of the instruction behind them      any
//
//   A_s and B_s are rows s slab_depth .. of A and B. A product with few tiles and many terms is cut
//   into slabs, so that there are enough groups; the caller adds the Z_s. gemm_tile.clh shows the
//   tile.
//
// Defines, set in product.cpp        range            meaning
//   STORED, REAL, SUB_GROUP_BODY                      common.clh
//   PRODUCT_BODY                     0 .. 5           0: fma, on any device
//                                                     3: fma with stages of halves, for
//                                                        --precision mixed
//                                                     5: fma of float32, with A of wide_subtract_
//                                                        transposed (float_tile.clh)
//                                                     on NVIDIA's matrix units: 1: three products
//                                                     of halves, 2: one product, 4: float64
//   WIDE_M, WIDE_N                   64, 128          tile of wide_*; of packed_* 128
//   NARROW_M, NARROW_N               32, 64           tile of narrow_*
//   DEPTH                            4 .. 32          terms per stage; bodies 1, 2: 16, 32;
//                                                     body 4: 4
//   BUFFERS                          1, 2             stages in local memory
//   DOUBLE_STAGES                    3 .. 7           stages in local memory with body 4
//   DOUBLE_SETTLE                    256 ..           terms that body 4 adds up in registers
//   WIDE_DEPTH, WIDE_STAGES          8, 16; 2 .. 4    terms and stages of wide_ with body 5
//   MMA                              0, 1             nvidia.clh, body 5; 1 with bodies 1, 2 and 4
//   WIDE_WARP_M, WIDE_WARP_N,        16 .. 64         tile of 32 work-items: multiples of 16 x 32
//   NARROW_WARP_M, NARROW_WARP_N                      (4 x 4 squares per work-item) without matrix
//                                                     units, of 16 x 16 with them
//   A_ALIGNMENT, B_ALIGNMENT         1, 2, 4          divides the offsets of rows of A; of B, C, Z
// Group size: tile / warp's tile x 32.
// Local memory: BUFFERS DEPTH (TILE_M + TILE_N + 2 PAD) REAL; bodies 1, 2, 5 about as much.
//
// Body 1 has the accuracy of float32: x = hi + lo, where each part is a half; together they have 22
// of 24 bits. The product is hi hi + hi lo + lo hi (Ootomo, Yokota). a_scale and b_scale are powers
// of two that scale A and B to the range where halves are normal numbers. Entries below
// 2^-14 / scale lose bits; the loss is small compared with the norm of their column. Sums of the
// matrix units are added to float32 sums after every SETTLE terms, and in packed_ kernels after 16.
#ifndef PRODUCT_BODY
#define PRODUCT_BODY 0
#endif
#define HAS_UNITS (PRODUCT_BODY == 1 || PRODUCT_BODY == 2)
#if HAS_UNITS || PRODUCT_BODY == 4
#ifndef MMA  // only NVIDIA devices run these bodies
#define MMA 1
#endif
#endif
#include "gpu/common/common.clh"

#ifndef WIDE_M
#define WIDE_M 128
#endif
#ifndef WIDE_N
#define WIDE_N 128
#endif
#ifndef NARROW_M
#define NARROW_M 64
#endif
#ifndef NARROW_N
#define NARROW_N 64
#endif
#ifndef DEPTH
#define DEPTH 16
#endif
#ifndef BUFFERS
#define BUFFERS 2
#endif
#ifndef WIDE_WARP_M
#define WIDE_WARP_M (HAS_UNITS ? 64 : 32)
#endif
#ifndef WIDE_WARP_N
#define WIDE_WARP_N (HAS_UNITS ? 32 : 64)
#endif
#ifndef NARROW_WARP_M
#define NARROW_WARP_M (HAS_UNITS ? 32 : 16)
#endif
#ifndef NARROW_WARP_N
#define NARROW_WARP_N (HAS_UNITS ? 32 : 64)
#endif
#ifndef A_ALIGNMENT
#define A_ALIGNMENT 1
#endif
#ifndef B_ALIGNMENT
#define B_ALIGNMENT 1
#endif
#ifndef DOUBLE_STAGES
#define DOUBLE_STAGES 5
#endif
#ifndef DOUBLE_SETTLE
#define DOUBLE_SETTLE 256
#endif
#ifndef WIDE_DEPTH
#define WIDE_DEPTH 8
#endif
#ifndef WIDE_STAGES
#define WIDE_STAGES 4
#endif
// For bodies without matrix units each row of a stage in local memory has so many entries more.
#define PAD 4
#define SETTLE 64
// The same for sums of Z without matrix units. Where rows are alike, all terms of such a sum are
// equal and each addition rounds the same way, in all columns. The error of Q by `large` grows with
// the number of terms: 130x100 float32 had up to 2.7 bars with 64 terms, and has 0.83 with 16.
#define Z_SETTLE (HAS_UNITS ? SETTLE : 16)
#define HALF_PARTS (PRODUCT_BODY == 1 ? 2 : 1)

typedef struct {
  float a, b, result;
} Scales;

// Loads four entries, of which the first `left` exist.
INLINE real4 load_words(__global const REAL* x, int left, const int alignment) {
  if (left >= 4) {
    if (alignment == 4) return *(__global const real4*)x;
    if (alignment == 2) return (real4)(*(__global const real2*)x, *(__global const real2*)(x + 2));
    return (real4)(x[0], x[1], x[2], x[3]);
  }
  return (real4)(left > 0 ? x[0] : (REAL)0, left > 1 ? x[1] : (REAL)0, left > 2 ? x[2] : (REAL)0,
                 (REAL)0);
}

// Says what is done to entries of C.
#define TAKE_NEGATIVE 0
#define STORE 1
#define STORE_NEGATIVE 2
INLINE void move_pair(REAL* x, __global REAL* c, int left, const int action) {
#if B_ALIGNMENT >= 2
  if (left >= 2) {
    __global real2* words = (__global real2*)c;
    if (action == TAKE_NEGATIVE) {
      const real2 y = *words;
      x[0] = -y.x;
      x[1] = -y.y;
    } else {
      *words = action == STORE ? (real2)(x[0], x[1]) : (real2)(-x[0], -x[1]);
    }
    return;
  }
#endif
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (i < left) {
      if (action == TAKE_NEGATIVE) {
        x[i] = -c[i];
      } else {
        c[i] = action == STORE ? x[i] : -x[i];
      }
    }
  }
}
INLINE void move_words(REAL* x, __global REAL* c, int left, const int action) {
#if B_ALIGNMENT == 4
  if (left >= 4) {
    __global real4* words = (__global real4*)c;
    if (action == TAKE_NEGATIVE) {
      const real4 y = *words;
      x[0] = -y.x;
      x[1] = -y.y;
      x[2] = -y.z;
      x[3] = -y.w;
    } else {
      const real4 y = (real4)(x[0], x[1], x[2], x[3]);
      *words = action == STORE ? y : -y;
    }
    return;
  }
#endif
  move_pair(x, c, left, action);
  move_pair(x + 2, c + 2, left - 2, action);
}

#if PRODUCT_BODY == 0 || PRODUCT_BODY == 5
#define ELEMENT REAL
INLINE void put_entry(REAL x, __local ELEMENT* to) { *to = x; }
INLINE void put_words(real4 x, __local ELEMENT* to) { *(__local real4*)to = x; }
INLINE real4 get_words(__local const ELEMENT* from) { return *(__local const real4*)from; }
#elif PRODUCT_BODY == 3
#define ELEMENT ushort
INLINE void put_entry(float x, __local ELEMENT* to) { vstore_half_rte(x, 0, (__local half*)to); }
INLINE void put_words(float4 x, __local ELEMENT* to) { vstore_half4_rte(x, 0, (__local half*)to); }
INLINE float4 get_words(__local const ELEMENT* from) {
  return vload_half4(0, (__local const half*)from);
}
#elif HAS_UNITS
#define ELEMENT ushort
// Splits x: `hi` is x cut to 11 bits, and `lo` is the remainder.
INLINE void store_split(real4 x, __local ushort* to, const int lo_offset) {
#if HALF_PARTS == 2
  const float4 hi = as_float4(as_uint4(x) & 0xffffe000u), lo = x - hi;
  *(__local uint2*)to = (uint2)(pack_halves(hi.x, hi.y), pack_halves(hi.z, hi.w));
  *(__local uint2*)(to + lo_offset) = (uint2)(pack_halves(lo.x, lo.y), pack_halves(lo.z, lo.w));
#else
  *(__local uint2*)to = (uint2)(pack_halves(x.x, x.y), pack_halves(x.z, x.w));
#endif
}
#else
// Starts the copy of `width` entries (1 or 2): the first `left` of them exist, the others become
// zeros.
INLINE void copy_doubles(__local double* to, __global const double* from, int left,
                         const int width) {
  begin_copy(local_address(to), from, 8 * width, 8 * left);
}
#endif

// Of the tile that a file below is included for.
#define T_WARPS_N (TILE_N / WARP_N)
#define T_GROUP (TILE_M / WARP_M * T_WARPS_N * 32)

#if HAS_UNITS
#include "gpu/products/packed_tile.clh"
#elif PRODUCT_BODY == 5
#include "gpu/products/float_tile.clh"
#else
#define TILED(name) JOIN(wide_, name)
#define TILE_M WIDE_M
#define TILE_N WIDE_N
#define WARP_M WIDE_WARP_M
#define WARP_N WIDE_WARP_N
#if PRODUCT_BODY == 4
#include "gpu/products/double_tile.clh"
#else
#include "gpu/products/gemm_tile.clh"
#endif
#undef TILED
#undef TILE_M
#undef TILE_N
#undef WARP_M
#undef WARP_N
#endif

#define TILED(name) JOIN(narrow_, name)
#define TILE_M NARROW_M
#define TILE_N NARROW_N
#define WARP_M NARROW_WARP_M
#define WARP_N NARROW_WARP_N
#if PRODUCT_BODY == 4
#include "gpu/products/double_tile.clh"
#else
#include "gpu/products/gemm_tile.clh"
#endif
#undef TILED
#undef TILE_M
#undef TILE_N
#undef WARP_M
#undef WARP_N

// Measures the rate of the body's instruction, with 16 independent sums per work-item, or 8 on the
// matrix units. x: 0, but unknown to the compiler.
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void peak(__global REAL* out, int steps,
                                                                    float x) {
  float sink = 0;
#if PRODUCT_BODY == 0 || PRODUCT_BODY == 3 || PRODUCT_BODY == 5
  REAL sums[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) sums[i] = (REAL)(i + get_local_id(0));
#pragma unroll 8
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int i = 0; i < 16; ++i) sums[i] = fma((REAL)x, sums[i], (REAL)x);
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) sink += (float)sums[i];
#elif PRODUCT_BODY == 4
  double sums[8][4];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[i][e] = i + get_local_id(0);
  }
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      mma_quad(&sums[i][0], &sums[i][1], &sums[i][2], &sums[i][3], x, x, x);
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) sink += (float)sums[i][0];
#else
  float sums[8][4];
  const uint word = as_uint(x);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[i][e] = i + get_local_id(0);
  }
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int i = 0; i < 8; ++i) mma_halves(sums[i], (uint4)(word), (uint2)(word));
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) sink += sums[i][0];
#endif
  if (sink == -1) out[get_global_id(0)] = sink;
}
