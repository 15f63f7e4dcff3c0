// SPDX-License-Identifier: Apache-2.0
// widened.hpp: turns vectors into float64, and keeps them in registers. Private to core, compiled
// once for every instruction set (simd.hpp).
#pragma once

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "core/simd/simd.hpp"

namespace qrtool {
namespace {

/// g++ 12 makes five instructions of __builtin_convertvector for a vector of float32.
template <class V, class X>
[[gnu::always_inline]] inline V widened(X x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(X) == 32 && sizeof(V) == 64) return _mm512_maskz_cvtps_pd(0xff, x);
#endif
#if defined(__AVX__)
  if constexpr (sizeof(X) == 16 && sizeof(V) == 32) return _mm256_cvtps_pd(x);
#endif
  return __builtin_convertvector(x, V);
}

/// Keeps x in a register. g++ 12 would load it from memory again for each of two products.
template <class V>
[[gnu::always_inline]] inline void keep_in_register([[maybe_unused]] V& x) {
#if defined(__x86_64__)
  __asm__("" : "+v"(x));
#endif
}

}  // namespace
}  // namespace qrtool
