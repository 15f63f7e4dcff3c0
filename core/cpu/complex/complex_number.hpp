// SPDX-License-Identifier: Apache-2.0
// complex_number.hpp: complex numbers whose parts are vectors or scalars, and the reflector of a
// column. Private to core/cpu, compiled once for every instruction set (simd.hpp).
#pragma once

#include "core/simd/simd.hpp"

namespace qrtool::complex_qr {
namespace {

template <class V>
struct Number {
  V re, im;

  Number operator-() const { return {-re, -im}; }
  Number& operator+=(const Number& x) {
    re += x.re;
    im += x.im;
    return *this;
  }
};
template <class V>
[[gnu::always_inline]] inline Number<V> conj(const Number<V>& x) {
  return {x.re, -x.im};
}
template <class V, class W>
[[gnu::always_inline]] inline Number<V> operator*(const Number<V>& x, const Number<W>& y) {
  return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
template <class V, class S>
[[gnu::always_inline]] inline Number<V> scaled(const Number<V>& x, S s) {
  return {x.re * s, x.im * s};
}

/// sum += x y
template <class V, class W>
[[gnu::always_inline]] inline void add_product(Number<V>& sum, const Number<V>& x,
                                               const Number<W>& y) {
  sum.re += x.re * y.re;
  sum.im += x.re * y.im;
  sum.re -= x.im * y.im;
  sum.im += x.im * y.re;
}
/// sum += conj(x) y
template <class V, class W>
[[gnu::always_inline]] inline void add_inner(Number<V>& sum, const Number<V>& x,
                                             const Number<W>& y) {
  sum.re += x.re * y.re;
  sum.im += x.re * y.im;
  sum.re += x.im * y.im;
  sum.im -= x.im * y.re;
}
/// sum -= x y
template <class V, class W>
[[gnu::always_inline]] inline void subtract_product(Number<V>& sum, const Number<V>& x,
                                                    const Number<W>& y) {
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
[[gnu::always_inline]] inline Number<V> unitary_tau(const Number<V>& t, V s) {
  const V g = t.re - 1;
  V rho = 1 - g * g;
  rho -= t.im * t.im;
  rho -= s * (t.re * t.re + t.im * t.im);
  const V factor = rho * (V{} + 0.7286f - t.re / 4);
  return {t.re + t.re * factor, t.im + t.im * factor};
}

}  // namespace
}  // namespace qrtool::complex_qr
