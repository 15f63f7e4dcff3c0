// SPDX-License-Identifier: Apache-2.0
// arithmetic.hpp: what the kernels of this folder compute with vectors of float64 and with the
// exponents of their scales. Private to core/cpu, compiled once for every instruction set
// (simd.hpp).
#pragma once

#include "core/simd/simd.hpp"

namespace qrtool {
namespace {

/// T is the type of the data.
template <class T>
struct SolveArithmetic : Lanes<T, double> {
  using typename Lanes<T, double>::V, typename Lanes<T, double>::Int;

  /// Exponents beyond these could overflow in products of two or three numbers.
  static constexpr int most_exponent = 400, most_shift = 1000;
  /// The smallest size of x whose rounding to denormal numbers can be ignored.
  static constexpr double least_solution = sizeof(T) == 4 ? 0x1p-100 : 0x1p-900;

  static V broadcast(double x) { return V{} + x; }
  static V infinity() { return broadcast(__builtin_inf()); }
  static V larger(V x, V y) { return x > y ? x : y; }
  static V smaller(V x, V y) { return x < y ? x : y; }
  static V size_of(V x) { return x < 0 ? -x : x; }

  /// Returns 2^e for |e| <= most_shift; other exponents are in no lane that is used.
  static V power(Int e) {
    e = e > most_shift ? Int{} + most_shift : e;
    return SolveArithmetic::power_of_two(e < -most_shift ? Int{} - most_shift : e);
  }
  /// Returns 1 / x for a power of two.
  static V power_inverse(V x) {
    constexpr long bits = long{2 * Format<double>::bias} << Format<double>::mantissa;
    return reinterpret_cast<V>(Int{} + bits - reinterpret_cast<Int>(x));
  }
  static Int is_beyond(Int e, int most) { return (e > most) | (e < -most); }
};

}  // namespace
}  // namespace qrtool
