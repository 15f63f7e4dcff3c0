// SPDX-License-Identifier: Apache-2.0
// probe.cl: small kernels that show, before any other is built, which bodies of the functions in
// common.clh and nvidia.clh a device builds and runs rightly. The host compares the results with
// those that it knows (probe.cpp).
//
//   probe_lanes   shuffles among 8 lanes; every one of them, and sums over 2, 4 and 8
//   probe_warp    one product of blocks of float64 by warps of 32 work-items, a copy and a sum
//   probe_rate    a chain of fma, to be timed
//
// Defines:
//   STORED, REAL, SUB_GROUP_BODY, HAS_FLOAT64   common.clh
//   MMA, FLOAT64_BODY                           nvidia.clh; 1: probe_warp is there
//   STEPS                                       of the chain
#include "gpu/common/common.clh"
#if MMA
#include "gpu/common/copy.clh"
#include "gpu/common/mma.clh"
#endif
#ifndef STEPS
#define STEPS 4096
#endif

// For every work-item: x of the lanes 0 .. 7 of its eight, and the sums over 2, 4 and 8 lanes.
#if SUB_GROUP_BODY != 0
__kernel void probe_lanes(__global REAL* results) {
  const int item = get_global_id(0);
  const REAL x = (REAL)(item * 3 + 1);
  __global REAL* own = results + 11 * (index_t)item;
  for (int from = 0; from < 8; ++from) own[from] = take_from_lane(x, from, 8);
  own[8] = sum_over_lanes(x, 2);
  own[9] = sum_over_lanes(x, 4);
  own[10] = sum_over_lanes(x, 8);
}
#endif

// For every warp: C = S S' of the 16 x 16 numbers S(i, j) = (7 i + 3 j + warp) % 11, by rows, and
// then the sum of the lanes' numbers.
#if MMA
__kernel void probe_warp(__global const double* s, __global double* results) {
  __local double copied[8 * 256];
  const int lane = get_local_id(0) % 32, warp_of_group = get_local_id(0) / 32;
  const int g = lane / 4, t = lane % 4;
  const index_t warp = get_global_id(0) / 32;
  __local double* own = copied + 256 * warp_of_group;
  for (int i = 2 * lane; i < 256; i += 64) copy_double2(own + i, s + 256 * warp + i);
  commit_copies();
  wait_for_copies();
  sync_warp();
  Block x, c;
  clear_block(c);
  for (int w = 0; w < BLOCK_WORDS; ++w) x[w] = own[16 * BLOCK_ROW(w, g) + BLOCK_COL(w, t)];
  multiply_add(c, x, x);
  __global double* to = results + 257 * warp;
  for (int w = 0; w < BLOCK_WORDS; ++w) to[16 * BLOCK_ROW(w, g) + BLOCK_COL(w, t)] = c[w];
  const double sum = sum_of_warp((double)lane);
  if (lane == 31) to[256] = sum;
}
#endif

__kernel void probe_rate(__global REAL* results, REAL factor) {
  REAL a = get_global_id(0), b = 1, c = 2, d = 3;
  for (int step = 0; step < STEPS; ++step) {
    a = fma(a, factor, b);
    b = fma(b, factor, c);
    c = fma(c, factor, d);
    d = fma(d, factor, a);
  }
  results[get_global_id(0)] = a + b + c + d;
}
