// SPDX-License-Identifier: Apache-2.0
// panel.hpp: factors a panel, which is four columns of as many real or complex matrices as a SIMD
// vector has lanes, into V, R and T (LAPACK geqrt2, larfg, larft), and applies I - V T V^H to other
// columns. Private to core/cpu, compiled once for every instruction set (simd.hpp).
#pragma once

#include "core/simd/numbers.hpp"

namespace qrtool::batched {
namespace {

/// The number of columns of a panel.
constexpr int width = 4;
/// The number of real columns to which V is applied at a time: 4 x 4 sums take 16 of the 32
/// registers of AVX-512 and ARM, and 4 x 2 sums take 8 of the 16 registers of other processors.
/// Panels of 8 columns were slower for matrices of up to 128 columns.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int block = 4;
#else
constexpr int block = 2;
#endif
/// The number of products in a plain sum. Such sums are then added to each other, which gives a
/// much smaller error than one long sum. Equal terms give a sum a bias: with 32 products two of
/// 3000 constant 40x40 matrices of float64 missed their bar, and with 16 the largest error is 0.67
/// of it. A complex row adds two products to each part.
constexpr index_t sum_products = 16;

template <class C>
struct PanelProducts : Lanes<C, C> {
  using typename Lanes<C, C>::V;

  /// sums := sums + sign X'Y for the rows of a panel X and N columns of a panel Y.
  template <int sign, int N>
  [[gnu::always_inline]] static void add(const V* x, const V* y, index_t rows,
                                         V (&sums)[width][N]) {
#pragma GCC unroll 4
    for (index_t i = 0; i < rows; ++i)
#pragma GCC unroll 4
      for (int e = 0; e < N; ++e) {
        const V right = y[i * width + e];
#pragma GCC unroll 4
        for (int o = 0; o < width; ++o) {
          const V left = sign > 0 ? x[i * width + o] : -x[i * width + o];
          sums[o][e] += left * right;
        }
      }
  }
};

/// A panel has `width` adjacent columns: each of its rows is `width` entries of one or two
/// parts.
template <class C, int parts>
class Panel : Lanes<C, C> {
  using Base = Lanes<C, C>;
  using Base::square_roots;
  using typename Base::Int, typename Base::V;
  static constexpr bool is_complex = parts == 2;
  static constexpr index_t sum_rows = sum_products / parts;

 public:
  using E = Entry<V, parts>;
  /// The columns to which V is applied at a time.
  static constexpr int block = batched::block / parts;

  Panel(E* a, index_t rows) : a_(a), rows_(rows) {}

  /// Overwrites the panel with V, including its ones and zeros, and gives the panel's part of R in
  /// `top` and T in `t`. The first `columns` columns get reflectors; the others are zero in V and
  /// T. The diagonal of R is real.
  [[gnu::noinline]] void factor(index_t columns, E* top, E* t) {
    for (int e = 0; e < width * width; ++e) t[e] = E{};
    V tail = sum_of_squares<0>();
    tail = factor_column<0>(tail, t);
    if (columns > 1) tail = factor_column<1>(tail, t);
    if (columns > 2) tail = factor_column<2>(tail, t);
    if (columns > 3) factor_column<3>(tail, t);
    for (index_t i = 0; i < (rows_ < width ? rows_ : width); ++i) {
      for (index_t q = 0; q < width; ++q) {
        E& x = a_[i * width + q];
        top[i * width + q] = x;
        if (i <= q || q >= columns) x = real(i == q && q < columns ? 1 : 0);
      }
    }
  }

  /// C := (I - V T V^H) C, or with T^H, for `block` columns of C. C is zero above row `from`.
  template <bool is_adjoint>
  [[gnu::noinline]] void apply(const E* t, index_t from, E* c) const {
    // W := V^H C
    E w[width][block] = {};
    for_sums(from, rows_, [&](index_t first, index_t end) {
      E part[width][block] = {};
#pragma GCC unroll 4
      for (index_t i = first; i < end; ++i) {
        const E* v = a_ + i * width;
#pragma GCC unroll 4
        for (int q = 0; q < block; ++q) {
          const E x = c[i * width + q];
#pragma GCC unroll 4
          for (int p = 0; p < width; ++p) add_inner(part[p][q], v[p], x);
        }
      }
#pragma GCC unroll 4
      for (int p = 0; p < width; ++p)
#pragma GCC unroll 4
        for (int q = 0; q < block; ++q) w[p][q] += part[p][q];
    });
    multiply_by_t<is_adjoint>(t, w);
    // C := C - V W, from the last row to the first: the last rows are still in the first-level
    // cache.
#pragma GCC unroll 4
    for (index_t i = rows_ - 1; i >= 0; --i) {
      // With a copy the compiler knows that the stores below do not change V.
      const E v[width] = {a_[i * width], a_[i * width + 1], a_[i * width + 2], a_[i * width + 3]};
#pragma GCC unroll 4
      for (int q = 0; q < block; ++q) {
        E x = c[i * width + q];
#pragma GCC unroll 4
        for (int p = 0; p < width; ++p) subtract_product(x, v[p], w[p][q]);
        c[i * width + q] = x;
      }
    }
  }

  /// Overwrites V with (I - V T V^H) E, where E is the first columns of I.
  [[gnu::noinline]] void start_q(const E* t) {
    E w[width][width] = {};  // V^H E, from the first rows of V
    for (index_t q = 0; q < (rows_ < width ? rows_ : width); ++q)
      for (int p = 0; p < width; ++p) w[p][q] = conj(a_[q * width + p]);
    multiply_by_t<false>(t, w);
    for (index_t i = 0; i < rows_; ++i) {
      E* row = a_ + i * width;
      const E v[width] = {row[0], row[1], row[2], row[3]};
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q) {
        E sum = real(i == q ? 1 : 0);
#pragma GCC unroll 4
        for (int p = 0; p < width; ++p) subtract_product(sum, v[p], w[p][q]);
        row[q] = sum;
      }
    }
  }

 private:
  static V broadcast(C x) { return V{} + x; }
  static E real(C x) { return real(broadcast(x)); }
  static E real(V x) {
    if constexpr (is_complex) {
      return {x, V{}};
    } else {
      return x;
    }
  }

  /// Calls body(first, end) for the blocks of rows that form a plain sum.
  template <class Body>
  [[gnu::always_inline]] static void for_sums(index_t first, index_t rows, Body body) {
    for (; first < rows; first += sum_rows)
      body(first, first + sum_rows < rows ? first + sum_rows : rows);
  }

  /// Calls step(i, terms) for the rows from `first` on, which adds to N terms, and adds all of them
  /// to `sums`. From these sums within a panel reflectors are made, and Q is only as orthogonal as
  /// they are: even and odd rows are summed apart, which halves a bias. In one sum the largest
  /// error of 6000 constant 17x17 matrices of float64 was 0.98 of its bar.
  template <int N, class Step>
  [[gnu::always_inline]] void add_by_parity(index_t first, E (&sums)[N], Step step) const {
    for_sums(first, rows_, [&](index_t i, index_t end) {
      E even[N] = {}, odd[N] = {};
      for (; i + 1 < end; i += 2) {
        step(i, even);
        step(i + 1, odd);
      }
      if (i < end) step(i, even);
#pragma GCC unroll 4
      for (int p = 0; p < N; ++p) sums[p] += even[p] + odd[p];
    });
  }

  /// The sum of squares of column P below its diagonal, with each entry multiplied by `factor`.
  template <int P>
  V sum_of_squares(C factor = 1) const {
    E sum[1] = {};
    add_by_parity(P + 1, sum, [&](index_t i, E* terms) {
      add_square(terms[0], scaled(a_[i * width + P], factor));
    });
    return sum_of_parts(sum[0]);
  }

  struct Reflector {
    V beta, raise;
    E inverse, tau;  // v = x raise inverse; a complex tau is right up to rounding
    Int is_identity;
  };

  /// Finds H with H^H (alpha, x) = (beta, 0) and real beta; tail = x^H x (LAPACK larfg). If squares
  /// of a column's entries would underflow, the column is first multiplied by a power of two.
  template <int P>
  Reflector make_reflector(V tail) const {
    using F = Format<C>;
    const V one = broadcast(1);
    const E alpha = a_[P * width + P];
    V raised_tail = one;  // computed only where it is needed
    if (any(tail < F::small_squares)) raised_tail = sum_of_squares<P>(F::raise);
    const Int is_small = square_of(alpha) + tail < F::small_squares;
    // x = 0 if it is negligible compared with the largest entry of the column.
    const Int no_tail =
        (tail < F::small_squares) & (raised_tail < F::zero * F::raise * F::raise * F::zero);
    Reflector h;
    h.raise = is_small ? broadcast(F::raise) : one;
    finish_reflector(alpha, is_small ? raised_tail : tail, no_tail, h);
    h.beta = h.is_identity ? real_part(alpha) : h.beta * (is_small ? broadcast(F::lower) : one);
    return h;
  }
  static V real_part(V x) { return x; }
  static V real_part(const Complex<V>& x) { return x.re; }

  /// Finds the other members of the reflector of (alpha, x) raise. `tail` is the sum of squares of
  /// x raise. H = I if x counts as 0.
  static void finish_reflector(V alpha, V tail, Int no_tail, Reflector& h) {
    const V one = broadcast(1), a = alpha * h.raise, norm = square_roots(square_of(a) + tail);
    h.beta = a >= 0 ? -norm : norm;
    h.inverse = no_tail ? V{} : one / (a - h.beta);
    // tau = 2 / v'v with the rounded `inverse` that v is computed from. LAPACK's (beta - alpha) /
    // beta is the same number, but is rounded independently, and H is then farther from orthogonal.
    // With s = v'v - 1 it is 1 + (1 - s) / (1 + s), where fewer roundings count: with 2 / (1 + s)
    // the largest error of two million 16x16 matrices of float64 was 0.95 of its bar.
    const V s = h.inverse * tail * h.inverse;
    h.tau = no_tail ? V{} : one + (one - s) / (one + s);
    h.is_identity = no_tail;
  }
  /// If x counts as 0, H makes alpha real, or H = I for a real alpha.
  static void finish_reflector(const Complex<V>& alpha, V tail, Int no_tail, Reflector& h) {
    using F = Format<C>;
    const V one = broadcast(1);
    const E a = scaled(alpha, h.raise);
    h.is_identity = no_tail & (alpha.im < F::zero) & (alpha.im > -F::zero);
    V norm = square_roots(square_of(a) + (no_tail ? V{} : tail));
    norm = h.is_identity ? one : norm;
    h.beta = a.re >= 0 ? -norm : norm;
    const V difference = a.re - h.beta;
    const V inverse = one / (difference * difference + a.im * a.im);
    h.inverse = {no_tail ? V{} : difference * inverse, no_tail ? V{} : -a.im * inverse};
    const V over = -one / h.beta;
    h.tau = {one + a.re * over, a.im * over};
  }

  /// Makes the reflector of column P and column P of T, and updates the columns right of it.
  /// Returns x^H x of the next column below its diagonal.
  template <int P>
  V factor_column(V tail, E* t) {
    const Reflector h = make_reflector<P>(tail);
    // v^H a_p for the columns right of P, v^H v_p for the columns left of it, and, where they are
    // complex, v^H v - 1.
    E dots[width];
    for (int p = 0; p < width; ++p) dots[p] = p == P ? E{} : a_[P * width + p];
    a_[P * width + P] = real(h.beta);
    add_by_parity(P + 1, dots, [&](index_t i, E* terms) {
      E* row = a_ + i * width;
      const E v = scaled(row[P], h.raise) * h.inverse;
      row[P] = v;
#pragma GCC unroll 4
      for (int p = 0; p < width; ++p)
        if (p != P) add_inner(terms[p], v, row[p]);
      if (is_complex) add_square(terms[P], v);
    });
    const E tau = t_column<P>(h, dots, t);
    if constexpr (P + 1 < width) {
      return update_columns<P>(conj(tau), dots);
    } else {
      return V{};
    }
  }

  /// Forms column P of T, or of its stand-in. Real: T itself, T(0:P, P) = -tau T(0:P, 0:P) V'v,
  /// T(P, P) = tau. Complex: T^-1 = D^-1 + U, where D has tau, and U is the part of V^H V above its
  /// diagonal; W := T W by substitution has fewer roundings than a product with a rounded T.
  template <int P>
  E t_column(const Reflector& h, const E* dots, E* t) const {
    E tau = h.tau;
    if constexpr (is_complex) {
      tau = unitary_tau(h.tau, sum_of_parts(dots[P]));
      tau = {h.is_identity ? V{} : tau.re, h.is_identity ? V{} : tau.im};
    }
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      if constexpr (is_complex) {
        t[p * width + P] = conj(dots[p]);
      } else {
        V sum{};
#pragma GCC unroll 4
        for (int q = p; q < P; ++q) sum += t[p * width + q] * dots[q];
        t[p * width + P] = -tau * sum;
      }
    }
    return t[P * width + P] = tau;
  }

  /// a_p -= tau (v^H a_p) v for the columns right of P.
  template <int P>
  V update_columns(const E& tau, const E* dots) {
    E w[width];
#pragma GCC unroll 4
    for (int p = P + 1; p < width; ++p) {
      w[p] = tau * dots[p];
      a_[P * width + p] -= w[p];
    }
    E tail[1] = {};
    add_by_parity(P + 1, tail, [&](index_t i, E* terms) {
      E* row = a_ + i * width;
      const E v = row[P];
#pragma GCC unroll 4
      for (int p = P + 1; p < width; ++p) subtract_product(row[p], v, w[p]);
      if (i > P + 1) add_square(terms[0], row[P + 1]);
    });
    return sum_of_parts(tail[0]);
  }

  /// W := T W or T^H W; T is upper triangular.
  template <bool is_adjoint, int columns>
  static void multiply_by_t(const V* t, V (&w)[width][columns]) {
#pragma GCC unroll 4
    for (int s = 0; s < width; ++s) {
      const int p = is_adjoint ? width - 1 - s : s;
      V sum[columns] = {};
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o) {
        if (is_adjoint ? o > p : o < p) continue;
        const V y = t[is_adjoint ? o * width + p : p * width + o];
#pragma GCC unroll 4
        for (int q = 0; q < columns; ++q) sum[q] += y * w[o][q];
      }
#pragma GCC unroll 4
      for (int q = 0; q < columns; ++q) w[p][q] = sum[q];
    }
  }
  template <bool is_adjoint, int columns>
  static void multiply_by_t(const Complex<V>* t, Complex<V> (&w)[width][columns]) {
#pragma GCC unroll 4
    for (int s = 0; s < width; ++s) {
      const int p = is_adjoint ? s : width - 1 - s;
      const E tau = is_adjoint ? conj(t[p * width + p]) : t[p * width + p];
#pragma GCC unroll 4
      for (int q = 0; q < columns; ++q) {
        E sum = w[p][q];
#pragma GCC unroll 4
        for (int o = 0; o < width; ++o) {
          if (is_adjoint ? o >= p : o <= p) continue;
          subtract_product(sum, is_adjoint ? conj(t[o * width + p]) : t[p * width + o], w[o][q]);
        }
        w[p][q] = tau * sum;
      }
    }
  }

  E* a_;
  index_t rows_;
};

}  // namespace
}  // namespace qrtool::batched
