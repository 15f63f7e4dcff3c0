// SPDX-License-Identifier: Apache-2.0
// complex.hpp: complex numbers as pairs of real ones. A row-major m x n matrix of std::complex<T>
// is also the real m x 2n matrix of its rows re, im, re, im, ..
#pragma once

#include <complex>
#include <type_traits>

#include "core/batch.hpp"

namespace qrtool {

template <class T>
inline constexpr bool is_complex_number = false;
template <class T>
inline constexpr bool is_complex_number<std::complex<T>> = true;

namespace detail {
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
struct RealOf<const std::complex<T>> {
  using type = const T;
};
}  // namespace detail

/// The type of the real and the imaginary part of T; T itself if T is real.
template <class T>
using Real = typename detail::RealOf<T>::type;

/// The real numbers in an element of type T.
template <class T>
inline constexpr index_t parts_of = is_complex_number<std::remove_const_t<T>> ? 2 : 1;

/// Returns a complex m x n matrix as a real m x 2n one, in which the real and imaginary part of
/// each entry are neighbours. Returns a real matrix unchanged.
template <class T>
MatrixView<Real<T>> interleaved(const MatrixView<T>& a) {
  constexpr index_t parts = parts_of<T>;
  return {reinterpret_cast<Real<T>*>(a.data), a.rows, parts * a.cols, parts * a.ld};
}
template <class T>
BatchView<Real<T>> interleaved(const BatchView<T>& a) {
  constexpr index_t parts = parts_of<T>;
  return {reinterpret_cast<Real<T>*>(a.data),
          a.count,
          a.rows,
          parts * a.cols,
          parts * a.ld,
          parts * a.stride};
}

/// to := every entry of `from` as [re im; -im re]. Rows of parts, re, im, re, im, .., times `to`
/// are then the parts of complex rows times `from`.
template <class C, class R>
void embed(MatrixView<const C> from, const MatrixView<R>& to) {
  for (index_t i = 0; i < from.rows; ++i) {
    for (index_t j = 0; j < from.cols; ++j) {
      const auto re = static_cast<R>(from(i, j).real()), im = static_cast<R>(from(i, j).imag());
      to(2 * i, 2 * j) = to(2 * i + 1, 2 * j + 1) = re;
      to(2 * i, 2 * j + 1) = im;
      to(2 * i + 1, 2 * j) = -im;
    }
  }
}

/// The complex type whose parts have the real type T.
template <class T>
using Complex = std::conditional_t<std::is_const_v<T>, const std::complex<std::remove_const_t<T>>,
                                   std::complex<T>>;

/// Returns the complex matrix whose real and imaginary parts alternate in a real one.
template <class T>
MatrixView<Complex<T>> as_complex(const MatrixView<T>& a) {
  return {reinterpret_cast<Complex<T>*>(a.data), a.rows, a.cols / 2, a.ld / 2};
}
template <class T>
BatchView<Complex<T>> as_complex(const BatchView<T>& a) {
  return {
      reinterpret_cast<Complex<T>*>(a.data), a.count, a.rows, a.cols / 2, a.ld / 2, a.stride / 2};
}

}  // namespace qrtool
