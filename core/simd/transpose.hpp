// SPDX-License-Identifier: Apache-2.0
// transpose.hpp: transposes as many vectors as a vector has lanes, and sums their lanes. Private to
// core/cpu, compiled once for every instruction set (simd.hpp).
#pragma once

#include <utility>

#include "core/simd/simd.hpp"

namespace qrtool {
namespace {

/// Swaps the off-diagonal H x H blocks of every 2H x 2H block, in two of its rows that are H apart.
template <int H, class V, int... I>
[[gnu::always_inline]] inline void swap_blocks(V& x, V& y, std::integer_sequence<int, I...>) {
  constexpr int lanes = sizeof...(I);
  const V first = __builtin_shufflevector(x, y, (I & H ? lanes + I - H : I)...);
  y = __builtin_shufflevector(x, y, (I & H ? lanes + I : I + H)...);
  x = first;
}

/// x[i][j] := x[j][i].
template <int L, int H = 1, class V>
[[gnu::always_inline]] inline void transpose(V (&x)[L]) {
  if constexpr (H < L) {
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) {
      if ((i & H) == 0) swap_blocks<H>(x[i], x[i + H], std::make_integer_sequence<int, L>());
    }
    transpose<L, 2 * H>(x);
  }
}

/// x[0][i] := the sum of the lanes of x[i]; the other vectors are undefined afterwards.
template <int L, int H = 1, class V>
[[gnu::always_inline]] inline void sum_lanes(V* x) {
  if constexpr (H < L) {
#pragma GCC unroll 16
    for (int i = 0; i < L; i += 2 * H) {
      swap_blocks<H>(x[i], x[i + H], std::make_integer_sequence<int, L>());
      x[i] += x[i + H];
    }
    sum_lanes<L, 2 * H>(x);
  }
}

}  // namespace
}  // namespace qrtool
