// SPDX-License-Identifier: Apache-2.0
// rows.hpp: sums, differences and reflectors of rows or columns that are contiguous. S is float64
// or complex128. Private to core/solve. Eigen would take seconds to compile for each of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/batch.hpp"
#include "core/matrix/complex_arithmetic.hpp"

namespace qrtool {

/// The sum of x_i y_i, or of conj(x_i) y_i.
template <class S, bool conjugates = false>
S dot(const S* x, const S* y, index_t count) {
  if constexpr (is_complex_number<S>) {
    double re = 0, im = 0;
#pragma omp simd reduction(+ : re, im)
    for (index_t i = 0; i < count; ++i) {
      const double imaginary = conjugates ? -x[i].imag() : x[i].imag();
      re += x[i].real() * y[i].real() - imaginary * y[i].imag();
      im += x[i].real() * y[i].imag() + imaginary * y[i].real();
    }
    return {re, im};
  } else {
    S sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index_t i = 0; i < count; ++i) sum += x[i] * y[i];
    return sum;
  }
}

template <class S>
S conjugate_dot(const S* x, const S* y, index_t count) {
  return dot<S, true>(x, y, count);
}

/// y -= factor x
template <class S>
void subtract(S* y, S factor, const S* x, index_t count) {
#pragma omp simd
  for (index_t i = 0; i < count; ++i) y[i] -= product(factor, x[i]);
}
/// y -= factor conj(x)
template <class S>
void subtract_conjugate(S* y, S factor, const S* x, index_t count) {
#pragma omp simd
  for (index_t i = 0; i < count; ++i) y[i] -= product(factor, conjugate(x[i]));
}

/// H = I - c [1; w] [1; w]^H.
template <class S>
struct Reflector {
  S c = 0;
  double beta = 0;
};

/// Returns the reflector with H v = beta e_1, and w in place of the entries of v after the first
/// (LAPACK larfg, which has the conjugate of c).
template <class S>
Reflector<S> make_reflector(S* v, index_t count) {
  constexpr double least = std::numeric_limits<double>::min();
  S* const tail = v + 1;
  const double tail_squared = real_part(conjugate_dot(tail, tail, count - 1));
  const double imaginary = imaginary_part(v[0]);
  if (tail_squared <= least && imaginary * imaginary <= least) {
    std::fill_n(tail, count - 1, S(0));
    return {S(0), real_part(v[0])};
  }
  const double norm = std::sqrt(square_of(v[0]) + tail_squared);
  const double beta = real_part(v[0]) >= 0 ? -norm : norm;
  const S divisor = v[0] - beta;
  for (index_t i = 0; i < count - 1; ++i) tail[i] /= divisor;
  return {conjugate((beta - v[0]) / beta), beta};
}

/// [first; rest] := H [first; rest]; `rest` has `count` entries.
template <class S>
void apply_reflector(S& first, S* rest, S c, const S* w, index_t count) {
  const S sum = product(c, first + conjugate_dot(w, rest, count));
  first -= sum;
  subtract(rest, sum, w, count);
}

}  // namespace qrtool
