// SPDX-License-Identifier: Apache-2.0
// numbers.hpp: entries of real and complex matrices, whose parts are vectors or scalars, and the
// operations in which they differ. A real number is a V, and a complex one a Complex<V>. Private to
// core, compiled once for every instruction set (simd.hpp).
#pragma once

#include <type_traits>

#include "core/simd/simd.hpp"

namespace qrtool {
namespace {

template <class V>
struct Complex {
  V re, im;

  Complex() = default;
  Complex(const V& real, const V& imaginary) : re(real), im(imaginary) {}
  /// Compilers would copy both parts as one block of bytes, in narrower registers.
  Complex(const Complex& x) : re(x.re), im(x.im) {}
  Complex& operator=(const Complex& x) {
    re = x.re;
    im = x.im;
    return *this;
  }
  Complex operator-() const { return {-re, -im}; }
  Complex& operator+=(const Complex& x) {
    re += x.re;
    im += x.im;
    return *this;
  }
  Complex& operator-=(const Complex& x) {
    re -= x.re;
    im -= x.im;
    return *this;
  }
};
template <class V>
[[gnu::always_inline]] inline Complex<V> operator+(const Complex<V>& x, const Complex<V>& y) {
  return {x.re + y.re, x.im + y.im};
}
template <class V, class W>
[[gnu::always_inline]] inline Complex<V> operator*(const Complex<V>& x, const Complex<W>& y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

/// An entry of a matrix: a real number has one part, and a complex number two.
template <class V, int parts>
using Entry = std::conditional_t<parts == 2, Complex<V>, V>;

template <class V>
V& part_of(V& x, int) {
  return x;
}
template <class V>
V& part_of(Complex<V>& x, int part) {
  return part == 0 ? x.re : x.im;
}

/// The conjugate of x.
template <class V>
[[gnu::always_inline]] inline V conj(const V& x) {
  return x;
}
template <class V>
[[gnu::always_inline]] inline Complex<V> conj(const Complex<V>& x) {
  return {x.re, -x.im};
}

/// x times a real number.
template <class V, class S>
[[gnu::always_inline]] inline V scaled(const V& x, S s) {
  return x * s;
}
template <class V, class S>
[[gnu::always_inline]] inline Complex<V> scaled(const Complex<V>& x, S s) {
  return {x.re * s, x.im * s};
}

/// The sum of the parts.
template <class V>
[[gnu::always_inline]] inline V sum_of_parts(const V& x) {
  return x;
}
template <class V>
[[gnu::always_inline]] inline V sum_of_parts(const Complex<V>& x) {
  return x.re + x.im;
}

/// |x|^2
template <class V>
[[gnu::always_inline]] inline V square_of(const V& x) {
  return x * x;
}
template <class V>
[[gnu::always_inline]] inline V square_of(const Complex<V>& x) {
  return x.re * x.re + x.im * x.im;
}

/// sum += the squares of the parts of x, each in its own part.
template <class V>
[[gnu::always_inline]] inline void add_square(V& sum, const V& x) {
  sum += x * x;
}
template <class V>
[[gnu::always_inline]] inline void add_square(Complex<V>& sum, const Complex<V>& x) {
  sum.re += x.re * x.re;
  sum.im += x.im * x.im;
}

/// sum += conj(x) y
template <class V>
[[gnu::always_inline]] inline void add_inner(V& sum, const V& x, const V& y) {
  sum += x * y;
}
template <class V>
[[gnu::always_inline]] inline void add_inner(Complex<V>& sum, const Complex<V>& x,
                                             const Complex<V>& y) {
  sum.re += x.re * y.re;
  sum.im += x.re * y.im;
  sum.re += x.im * y.im;
  sum.im -= x.im * y.re;
}

/// sum -= x y
template <class V, class X, class Y>
[[gnu::always_inline]] inline void subtract_product(V& sum, const X& x, const Y& y) {
  sum -= x * y;
}
template <class V, class W>
[[gnu::always_inline]] inline void subtract_product(Complex<V>& sum, const Complex<V>& x,
                                                    const Complex<W>& y) {
  sum.re -= x.re * y.re;
  sum.im -= x.re * y.im;
  sum.re += x.im * y.im;
  sum.im -= x.im * y.re;
}

/// Returns tau near t so that I - tau v v^H is unitary: 2 Re tau = |tau|^2 v^H v, where v^H v = 1 +
/// s. t has the right angle, 1 <= Re t <= 2, and is right up to rounding, so that one step of
/// Newton's method for the factor of t is enough: tau = t + t rho / (2 Re t), where
///
///     rho = 2 Re t - |t|^2 (1 + s) = 1 - g^2 - (Im t)^2 - s |t|^2,     g = Re t - 1 (exact)
///
/// Fewer roundings count than in 2 Re(t) t / (|t|^2 (1 + s)), since rho is a difference of numbers
/// of at most 1, and rho is so small that 1 / (2 Re t) may be wrong by 6 %: it is 0.7286 - Re t
/// / 4.
template <class V>
[[gnu::always_inline]] inline Complex<V> unitary_tau(const Complex<V>& t, V s) {
  const V g = t.re - 1;
  V rho = 1 - g * g;
  rho -= t.im * t.im;
  rho -= s * (t.re * t.re + t.im * t.im);
  const V factor = rho * (V{} + 0.7286f - t.re / 4);
  return {t.re + t.re * factor, t.im + t.im * factor};
}

/// Returns the factor with the angle of tau for which I - tau v v^H is unitary, given v^H v of a v
/// that has been rounded; 0 where tau is 0.
template <class V>
V tau_for(const V& tau, const V& squares) {
  return tau != 0 ? 2 / squares : V{};
}
template <class V>
Complex<V> tau_for(const Complex<V>& tau, const V& squares) {
  const V factor = 2 * tau.re / (square_of(tau) * squares);
  return {tau.re != 0 ? tau.re * factor : V{}, tau.re != 0 ? tau.im * factor : V{}};
}

}  // namespace
}  // namespace qrtool
