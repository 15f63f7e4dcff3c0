// SPDX-License-Identifier: Apache-2.0
// complex_arithmetic.hpp: what code for real and complex numbers says in the same words for both.
// A real number is its own conjugate, and its only part.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "core/matrix/complex.hpp"

namespace qrtool {

/// The type in which numbers of type T are summed: float64 or complex128.
template <class T>
using Wide = std::conditional_t<is_complex_number<T>, std::complex<double>, double>;

template <class T>
Real<T> real_part(T x) {
  if constexpr (is_complex_number<T>)
    return x.real();
  else
    return x;
}
template <class T>
Real<T> imaginary_part(T x) {
  if constexpr (is_complex_number<T>)
    return x.imag();
  else
    return 0;
}
template <class T>
T conjugate(T x) {
  if constexpr (is_complex_number<T>)
    return {x.real(), -x.imag()};
  else
    return x;
}

/// Returns x y. The operator of std::complex looks for infinities in each product, which needs
/// several times as long.
template <class T>
T product(T x, T y) {
  if constexpr (is_complex_number<T>)
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  else
    return x * y;
}

/// Returns |x|^2.
template <class T>
Real<T> square_of(T x) {
  if constexpr (is_complex_number<T>)
    return x.real() * x.real() + x.imag() * x.imag();
  else
    return x * x;
}

/// Returns x 2^exponent.
template <class T>
T scaled_by(T x, int exponent) {
  if constexpr (is_complex_number<T>)
    return {std::ldexp(x.real(), exponent), std::ldexp(x.imag(), exponent)};
  else
    return std::ldexp(x, exponent);
}

/// Whether a part is NaN.
template <class T>
bool is_nan(T x) {
  if constexpr (is_complex_number<T>)
    return std::isnan(x.real()) || std::isnan(x.imag());
  else
    return std::isnan(x);
}

/// Whether all parts are finite.
template <class T>
bool is_finite(T x) {
  if constexpr (is_complex_number<T>)
    return std::isfinite(x.real()) && std::isfinite(x.imag());
  else
    return std::isfinite(x);
}

/// Returns NaN in every part.
template <class T>
T not_a_number() {
  constexpr Real<T> nan = std::numeric_limits<Real<T>>::quiet_NaN();
  if constexpr (is_complex_number<T>)
    return {nan, nan};
  else
    return nan;
}

}  // namespace qrtool
