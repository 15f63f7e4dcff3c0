// SPDX-License-Identifier: Apache-2.0
// simd.hpp: the compiler's vector types, and exact powers of two, for the kernels that are compiled
// once for every instruction set (QRTOOL_VECTOR_BYTES). Private to core.
//
// Everything is in an unnamed namespace, and no function of the standard library is called: the
// linker keeps one copy of an inline function, and a copy compiled for AVX-512 would fail on other
// processors.
#pragma once

#include <cstdint>

namespace qrtool {
namespace {

using index_t = std::int64_t;

constexpr int vector_bytes = QRTOOL_VECTOR_BYTES;

template <class E, int L>
struct VectorOf {
  typedef E type __attribute__((vector_size(L * sizeof(E))));
  /// A vector type for memory that is also read entry by entry.
  typedef E stored __attribute__((vector_size(L * sizeof(E)), may_alias));
  typedef E unaligned __attribute__((vector_size(L * sizeof(E)), may_alias, aligned(alignof(E))));
};

/// Squares below `small_squares` lose bits to underflow, so that such columns are first multiplied
/// by a power of two. A column whose entries below the diagonal are smaller than `zero`, where the
/// largest entry is 1, counts as zero (H = I): near denormal numbers the rounding errors of a
/// reflector are as large as the entries, and dozens of nearly parallel reflectors would follow.
template <class T>
struct Format;
template <>
struct Format<float> {
  using Int = std::int32_t;
  static constexpr int mantissa = 23, bias = 127, largest_exponent = 127;
  static constexpr float small_squares = 0x1p-100f, raise = 0x1p96f, lower = 0x1p-96f;
  static constexpr float zero = 0x1p-100f;
};
template <>
struct Format<double> {
  using Int = std::int64_t;
  static constexpr int mantissa = 52, bias = 1023, largest_exponent = 1023;
  static constexpr double small_squares = 0x1p-800, raise = 0x1p600, lower = 0x1p-600;
  static constexpr double zero = 0x1p-960;
};

inline float square_root(float x) { return __builtin_sqrtf(x); }
inline double square_root(double x) { return __builtin_sqrt(x); }

template <class V>
bool any(V mask) {
  std::uint64_t words[sizeof(V) / 8], all = 0;
  __builtin_memcpy(words, &mask, sizeof(V));
  for (const std::uint64_t word : words) all |= word;
  return all != 0;
}

/// The vectors of a kernel that stores T and computes in C: a vector of C fills a register, and a
/// vector of T has as many lanes.
template <class T, class C>
struct Lanes {
  static constexpr int lanes = vector_bytes / static_cast<int>(sizeof(C));
  using V = typename VectorOf<C, lanes>::type;                           // computed
  using Int = typename VectorOf<typename Format<C>::Int, lanes>::type;   // its bits
  using VT = typename VectorOf<T, lanes>::type;                          // stored
  using IntT = typename VectorOf<typename Format<T>::Int, lanes>::type;  // its bits

  static constexpr typename Format<T>::Int sign_bit =
      static_cast<typename Format<T>::Int>(std::uint64_t{1} << (8 * sizeof(T) - 1));
  static constexpr typename Format<T>::Int infinity_bits =
      typename Format<T>::Int{2 * Format<T>::bias + 1} << Format<T>::mantissa;

  /// Returns |x| as integers, which have the order of the numbers; Inf and NaN are the largest.
  static IntT magnitude_bits(VT x) { return reinterpret_cast<IntT>(x) & ~(IntT{} + sign_bit); }

  /// Compilers make one vector instruction of this loop over an array.
  static V square_roots(V x) {
    C entries[lanes];
    __builtin_memcpy(entries, &x, sizeof(x));
    for (C& entry : entries) entry = square_root(entry);
    __builtin_memcpy(&x, entries, sizeof(x));
    return x;
  }

  /// Returns 2^e, where 2^e is a normal number.
  static V power_of_two(Int e) {
    return reinterpret_cast<V>((e + Format<C>::bias) << Format<C>::mantissa);
  }

  /// 2^e as a product of two factors, so that x factors[0] factors[1] is rounded once for all e and
  /// x.
  static void split_power(Int e, V* factors) {
    constexpr typename Format<C>::Int most = Format<C>::largest_exponent, least = 1 - most;
    Int within = e > most ? Int{} + most : e;
    within = within < least ? Int{} + least : within;
    factors[0] = power_of_two(e - within);
    factors[1] = power_of_two(within);
  }

  /// Returns the exponent e with |x| in [2^(e-1), 2^e), or 0 for x = 0; `bits` are the bits of |x|.
  static IntT exponent_of(IntT bits) {
    using F = Format<T>;
    constexpr int raise = F::mantissa + 1;  // makes a denormal number normal
    const VT raised = reinterpret_cast<VT>(bits) * static_cast<T>(std::uint64_t{1} << raise);
    const IntT e = (bits >> F::mantissa) - (F::bias - 1);
    const IntT e_raised = (reinterpret_cast<IntT>(raised) >> F::mantissa) - (F::bias - 1 + raise);
    return bits == 0 ? IntT{} : (bits >> F::mantissa) == 0 ? e_raised : e;
  }
};

}  // namespace
}  // namespace qrtool

// The name of the kernels of a file for the instruction set QRTOOL_TARGET, and that name as text.
#define QRTOOL_JOIN(a, b) a##b
#define QRTOOL_KERNELS(target) QRTOOL_JOIN(target, _kernels)
#define QRTOOL_STRING(x) #x
#define QRTOOL_NAME(target) QRTOOL_STRING(target)
