// SPDX-License-Identifier: Apache-2.0
// complex_panel.hpp: factors a panel, which is four complex columns of as many matrices as a SIMD
// vector has lanes, into V, R and T (LAPACK geqrt2, larfg, larft), and applies I - V T V^H to other
// columns. Private to core/cpu, compiled once for every instruction set (simd.hpp).
#pragma once

#include "core/cpu/complex/complex_number.hpp"

namespace qrtool::complex_qr {
namespace {

/// Columns per panel.
constexpr int width = 4;
/// The vectors of a row of a panel: re, im, re, im, ..
constexpr int row_vectors = 2 * width;
/// The columns to which V is applied at a time. With one column there are 4 complex sums, which
/// take 8 of 16 registers; AVX-512 and ARM have 32.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int block = 2;
#else
constexpr int block = 1;
#endif
/// The number of rows in a plain sum. Such sums are then added to each other, which gives a much
/// smaller error than one long sum.
constexpr index_t sum_rows = 8;

template <class C>
class Panel : Lanes<C, C> {
  using Base = Lanes<C, C>;
  using Base::square_roots;
  using typename Base::Int, typename Base::V;

 public:
  using Z = Number<V>;

  Panel(V* a, index_t rows) : a_(a), rows_(rows) {}

  /// Overwrites the panel with V, including its ones and zeros, and gives the panel's part of R in
  /// `top` and T in `t`. The first `columns` columns get reflectors; the others are zero in V and
  /// T. The diagonal of R is real.
  [[gnu::noinline]] void factor(index_t columns, V* top, Z* t) {
    for (int e = 0; e < width * width; ++e) t[e] = Z{};
    V tail = sum_of_squares<0>();
    tail = factor_column<0>(tail, t);
    if (columns > 1) tail = factor_column<1>(tail, t);
    if (columns > 2) tail = factor_column<2>(tail, t);
    if (columns > 3) factor_column<3>(tail, t);
    for (index_t i = 0; i < (rows_ < width ? rows_ : width); ++i) {
      for (index_t q = 0; q < width; ++q) {
        Z x = at(i, q);
        put(top, i, q, x);
        if (i <= q || q >= columns) x = {V{} + C(i == q && q < columns ? 1 : 0), V{}};
        put(a_, i, q, x);
      }
    }
  }

  /// C := (I - V T V^H) C, or with T^H, for `block` columns of C. C is zero above row `from`.
  template <bool is_adjoint>
  [[gnu::noinline]] void apply(const Z* t, index_t from, V* c) const {
    // W := V^H C
    Z w[width][block] = {};
    for_sums(from, rows_, [&](index_t first, index_t end) {
      Z part[width][block] = {};
#pragma GCC unroll 2
      for (index_t i = first; i < end; ++i) {
#pragma GCC unroll 2
        for (int q = 0; q < block; ++q) {
          const Z x = get(c, i, q);
#pragma GCC unroll 4
          for (int p = 0; p < width; ++p) add_inner(part[p][q], at(i, p), x);
        }
      }
#pragma GCC unroll 4
      for (int p = 0; p < width; ++p)
#pragma GCC unroll 2
        for (int q = 0; q < block; ++q) w[p][q] += part[p][q];
    });
    multiply_by_t<is_adjoint>(t, w);
    // C := C - V W, from the last row to the first: the last rows are still in the first-level
    // cache.
#pragma GCC unroll 2
    for (index_t i = rows_ - 1; i >= 0; --i) {
      // With a copy the compiler knows that the stores below do not change V.
      const Z v[width] = {at(i, 0), at(i, 1), at(i, 2), at(i, 3)};
#pragma GCC unroll 2
      for (int q = 0; q < block; ++q) {
        Z x = get(c, i, q);
#pragma GCC unroll 4
        for (int p = 0; p < width; ++p) subtract_product(x, v[p], w[p][q]);
        put(c, i, q, x);
      }
    }
  }

  /// Overwrites V with (I - V T V^H) E, where E is the first columns of I.
  [[gnu::noinline]] void start_q(const Z* t) {
    Z w[width][width] = {};  // V^H E, from the first rows of V
    for (index_t q = 0; q < (rows_ < width ? rows_ : width); ++q)
      for (int p = 0; p < width; ++p) w[p][q] = conj(at(q, p));
    multiply_by_t<false>(t, w);
    for (index_t i = 0; i < rows_; ++i) {
      const Z v[width] = {at(i, 0), at(i, 1), at(i, 2), at(i, 3)};
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q) {
        Z sum = {V{} + C(i == q ? 1 : 0), V{}};
#pragma GCC unroll 4
        for (int p = 0; p < width; ++p) subtract_product(sum, v[p], w[p][q]);
        put(a_, i, q, sum);
      }
    }
  }

 private:
  [[gnu::always_inline]] static Z get(const V* x, index_t i, index_t q) {
    return {x[i * row_vectors + 2 * q], x[i * row_vectors + 2 * q + 1]};
  }
  [[gnu::always_inline]] static void put(V* x, index_t i, index_t q, const Z& value) {
    x[i * row_vectors + 2 * q] = value.re;
    x[i * row_vectors + 2 * q + 1] = value.im;
  }
  [[gnu::always_inline]] Z at(index_t i, index_t q) const { return get(a_, i, q); }

  /// Calls body(first, end) for the blocks of rows that form a plain sum.
  template <class Body>
  [[gnu::always_inline]] static void for_sums(index_t first, index_t rows, Body body) {
    for (; first < rows; first += sum_rows)
      body(first, first + sum_rows < rows ? first + sum_rows : rows);
  }

  /// Calls step(i, terms) for the rows from `first` on, which adds to N terms, and adds all of them
  /// to `sums`. Even and odd rows are summed apart, which halves a bias (batched/panel.hpp).
  template <int N, class Step>
  [[gnu::always_inline]] void add_by_parity(index_t first, Z (&sums)[N], Step step) const {
    for_sums(first, rows_, [&](index_t i, index_t end) {
      Z even[N] = {}, odd[N] = {};
      for (; i + 1 < end; i += 2) {
        step(i, even);
        step(i + 1, odd);
      }
      if (i < end) step(i, even);
#pragma GCC unroll 4
      for (int p = 0; p < N; ++p) {
        even[p] += odd[p];
        sums[p] += even[p];
      }
    });
  }

  static V broadcast(C x) { return V{} + x; }

  [[gnu::always_inline]] static void add_square(Z& sum, const Z& x) {
    sum.re += x.re * x.re;
    sum.im += x.im * x.im;
  }

  /// The sum of squares of column P below its diagonal, with each entry multiplied by `factor`.
  template <int P>
  V sum_of_squares(C factor = 1) const {
    Z sum[1] = {};
    add_by_parity(P + 1, sum,
                  [&](index_t i, Z(&terms)[1]) { add_square(terms[0], scaled(at(i, P), factor)); });
    return sum[0].re + sum[0].im;
  }

  struct Reflector {
    V beta, raise;
    Z inverse, t;  // v = x raise inverse; t is tau up to rounding
    Int is_zero;   // H = I
  };

  /// H^H (alpha, x) = (beta, 0) with real beta, tail = x^H x (LAPACK larfg). Where squares of a
  /// column's entries would underflow, the column is first multiplied by a power of two.
  template <int P>
  Reflector make_reflector(V tail) const {
    using F = Format<C>;
    const V one = broadcast(1);
    const Z alpha = at(P, P);
    V raised_tail = one;  // computed only where it is needed
    if (any(tail < F::small_squares)) raised_tail = sum_of_squares<P>(F::raise);
    const Int is_small = alpha.re * alpha.re + alpha.im * alpha.im + tail < F::small_squares;
    Reflector h;
    h.raise = is_small ? broadcast(F::raise) : one;
    const Z a = scaled(alpha, h.raise);
    // x = 0 where it is negligible compared with the largest entry of the column. Then H makes
    // alpha real, or H = I where it is that already.
    const Int no_tail =
        (tail < F::small_squares) & (raised_tail < F::zero * F::raise * F::raise * F::zero);
    const Int is_real = (alpha.im < F::zero) & (alpha.im > -F::zero);
    const Int is_zero = no_tail & is_real;
    const V t = no_tail ? V{} : is_small ? raised_tail : tail;
    V norm = a.re * a.re + a.im * a.im + t;
    norm = square_roots(norm);
    norm = is_zero ? one : norm;
    const V b = a.re >= 0 ? -norm : norm;
    const V difference = a.re - b;
    const V inverse = one / (difference * difference + a.im * a.im);
    h.inverse = {no_tail ? V{} : difference * inverse, no_tail ? V{} : -a.im * inverse};
    h.beta = is_zero ? alpha.re : b * (is_small ? broadcast(F::lower) : one);
    const V over = -one / b;
    h.t = {one + a.re * over, a.im * over};
    h.is_zero = is_zero;
    return h;
  }

  /// Makes the reflector of column P and column P of T, and updates the columns right of it.
  /// Returns x^H x of the next column below its diagonal.
  template <int P>
  V factor_column(V tail, Z* t) {
    const Reflector h = make_reflector<P>(tail);
    // v^H a_p for the columns right of P, v^H v_p for the columns left of it, and v^H v - 1.
    Z dots[width];
    for (int p = 0; p < width; ++p) dots[p] = p == P ? Z{} : at(P, p);
    put(a_, P, P, {h.beta, V{}});
    add_by_parity(P + 1, dots, [&](index_t i, Z(&terms)[width]) {
      const Z v = scaled(at(i, P), h.raise) * h.inverse;
      put(a_, i, P, v);
#pragma GCC unroll 4
      for (int p = 0; p < width; ++p)
        if (p != P) add_inner(terms[p], v, at(i, p));
      add_square(terms[P], v);
    });
    Z tau = unitary_tau(h.t, dots[P].re + dots[P].im);
    tau = {h.is_zero ? V{} : tau.re, h.is_zero ? V{} : tau.im};
    // Column P of U, and tau on the diagonal.
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) t[p * width + P] = conj(dots[p]);
    t[P * width + P] = tau;
    if constexpr (P + 1 < width) {
      return update_columns<P>(conj(tau), dots);
    } else {
      return V{};
    }
  }

  /// a_p -= conj(tau) (v^H a_p) v for the columns right of P.
  template <int P>
  V update_columns(const Z& tau, const Z* dots) {
    Z w[width];
#pragma GCC unroll 4
    for (int p = P + 1; p < width; ++p) {
      w[p] = tau * dots[p];
      const Z x = at(P, p);
      put(a_, P, p, {x.re - w[p].re, x.im - w[p].im});
    }
    Z tail[1] = {};
    add_by_parity(P + 1, tail, [&](index_t i, Z(&terms)[1]) {
      const Z v = at(i, P);
#pragma GCC unroll 4
      for (int p = P + 1; p < width; ++p) {
        Z x = at(i, p);
        subtract_product(x, v, w[p]);
        put(a_, i, p, x);
        if (p == P + 1 && i > P + 1) add_square(terms[0], x);
      }
    });
    return tail[0].re + tail[0].im;
  }

  /// W := T W or T^H W with T^-1 = D^-1 + U, by substitution: D has tau, and U is the part of V^H V
  /// above its diagonal.
  template <bool is_adjoint, int columns>
  static void multiply_by_t(const Z* t, Z (&w)[width][columns]) {
#pragma GCC unroll 4
    for (int s = 0; s < width; ++s) {
      const int p = is_adjoint ? s : width - 1 - s;
      const Z tau = is_adjoint ? conj(t[p * width + p]) : t[p * width + p];
#pragma GCC unroll 4
      for (int q = 0; q < columns; ++q) {
        Z sum = w[p][q];
#pragma GCC unroll 4
        for (int o = 0; o < width; ++o) {
          if (is_adjoint ? o >= p : o <= p) continue;
          subtract_product(sum, is_adjoint ? conj(t[o * width + p]) : t[p * width + o], w[o][q]);
        }
        w[p][q] = tau * sum;
      }
    }
  }

  V* a_;
  index_t rows_;
};

}  // namespace
}  // namespace qrtool::complex_qr
