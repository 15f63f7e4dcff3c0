// SPDX-License-Identifier: Apache-2.0
// scan_kernel.cpp: looks through numbers, compiled once for every instruction set.
#include "core/measure/scan_kernel.hpp"

#include <limits>

#include "core/simd/simd.hpp"

namespace qrtool::scan {
namespace {

/// IEEE numbers without their sign bit have the same order as integers, and Inf and NaN are the
/// largest. So one integer maximum gives the largest number and tells whether all are finite.
template <class T, class Bits>
Bits largest_bits(const T* from, index_t count, Bits largest) {
  constexpr Bits sign = std::numeric_limits<Bits>::min();
  for (index_t i = 0; i < count; ++i) {
    const Bits bits = __builtin_bit_cast(Bits, from[i]) & ~sign;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

/// The compiler makes vectors of this loop: a product of two 32-bit numbers is one instruction.
std::uint64_t sum_words(const void* from, index_t count, index_t first) {
  typedef std::uint32_t Word __attribute__((may_alias));
  const Word* words = static_cast<const Word*>(from);
  const auto weight = static_cast<std::uint32_t>(2 * first + 1);
  std::uint64_t sum = 0;
  for (index_t i = 0; i < count; ++i) {
    sum += std::uint64_t{words[i]} *
           static_cast<std::uint32_t>(weight + 2 * static_cast<std::uint32_t>(i));
  }
  return sum;
}

}  // namespace

#define QRTOOL_SCAN(target) QRTOOL_JOIN(target, _scan)

extern const Kernels QRTOOL_SCAN(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET),
                                                largest_bits<float, std::int32_t>,
                                                largest_bits<double, std::int64_t>, sum_words};

}  // namespace qrtool::scan
