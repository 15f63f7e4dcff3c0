// SPDX-License-Identifier: Apache-2.0
// panel.hpp: factors a panel, which is four columns of as many matrices as a SIMD vector has lanes,
// into V, R and T (LAPACK geqrt2, larfg, larft), and applies I - V T V' to other columns. Private
// to core/cpu, compiled once for every instruction set (simd.hpp).
#pragma once

#include "core/simd/simd.hpp"

namespace qrtool::batched {
namespace {

/// Columns per panel.
constexpr int width = 4;
/// The columns to which V is applied at a time: 4 x 4 sums take 16 of the 32 registers of AVX-512
/// and ARM, and 4 x 2 sums take 8 of the 16 registers of other processors. Panels of 8 columns were
/// slower for matrices of up to 128 columns.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int block = 4;
#else
constexpr int block = 2;
#endif
/// The number of rows in a plain sum. Such sums are then added to each other, which gives a much
/// smaller error than one long sum. Equal terms give a sum a bias: with 32 rows two of 3000
/// constant 40x40 matrices of float64 missed their bar, and with 16 rows the largest error is 0.67
/// of it.
constexpr index_t sum_rows = 16;

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

/// A panel has `width` adjacent columns: each of its rows is `width` vectors of C.
template <class C>
class Panel : Lanes<C, C> {
  using Base = Lanes<C, C>;
  using Base::square_roots;
  using typename Base::Int, typename Base::V;

 public:
  Panel(V* a, index_t rows) : a_(a), rows_(rows) {}

  /// Overwrites the panel with V, including its ones and zeros, and gives the panel's part of R in
  /// `top` and T in `t`. The first `columns` columns get reflectors; the others are zero in V and
  /// T.
  [[gnu::noinline]] void factor(index_t columns, V* top, V* t) {
    for (int e = 0; e < width * width; ++e) t[e] = V{};
    V tail = sum_of_squares<0>();
    tail = factor_column<0>(tail, t);
    if (columns > 1) tail = factor_column<1>(tail, t);
    if (columns > 2) tail = factor_column<2>(tail, t);
    if (columns > 3) factor_column<3>(tail, t);
    for (index_t i = 0; i < (rows_ < width ? rows_ : width); ++i) {
      for (index_t q = 0; q < width; ++q) {
        V& x = a_[i * width + q];
        top[i * width + q] = x;
        if (i <= q || q >= columns) x = V{} + C(i == q && q < columns ? 1 : 0);
      }
    }
  }

  /// C := (I - V T V') C, or with T', for `block` columns of C. C is zero above row `from`.
  template <bool is_transposed>
  [[gnu::noinline]] void apply(const V* t, index_t from, V* c) const {
    // W := V'C
    V w[width][block] = {};
    for_sums(from, rows_, [&](index_t first, index_t end) {
      V part[width][block] = {};
#pragma GCC unroll 4
      for (index_t i = first; i < end; ++i) {
        const V* v = a_ + i * width;
#pragma GCC unroll 4
        for (int q = 0; q < block; ++q) {
          const V x = c[i * width + q];
#pragma GCC unroll 4
          for (int p = 0; p < width; ++p) part[p][q] += v[p] * x;
        }
      }
#pragma GCC unroll 4
      for (int p = 0; p < width; ++p)
#pragma GCC unroll 4
        for (int q = 0; q < block; ++q) w[p][q] += part[p][q];
    });
    multiply_by_t<is_transposed>(t, w);
    // C := C - V W, from the last row to the first: the last rows are still in the first-level
    // cache.
#pragma GCC unroll 4
    for (index_t i = rows_ - 1; i >= 0; --i) {
      // With a copy the compiler knows that the stores below do not change V.
      const V v[width] = {a_[i * width], a_[i * width + 1], a_[i * width + 2], a_[i * width + 3]};
#pragma GCC unroll 4
      for (int q = 0; q < block; ++q) {
        V x = c[i * width + q];
#pragma GCC unroll 4
        for (int p = 0; p < width; ++p) x -= v[p] * w[p][q];
        c[i * width + q] = x;
      }
    }
  }

  /// Overwrites V with (I - V T V') E, where E is the first columns of I.
  [[gnu::noinline]] void start_q(const V* t) {
    V w[width][width] = {};  // V'E, the transposed first rows of V
    for (index_t q = 0; q < (rows_ < width ? rows_ : width); ++q)
      for (int p = 0; p < width; ++p) w[p][q] = a_[q * width + p];
    multiply_by_t<false>(t, w);
    for (index_t i = 0; i < rows_; ++i) {
      V* row = a_ + i * width;
      const V x[width] = {row[0], row[1], row[2], row[3]};
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q) {
        V sum = broadcast(i == q ? 1 : 0);
#pragma GCC unroll 4
        for (int p = 0; p < width; ++p) sum -= x[p] * w[p][q];
        row[q] = sum;
      }
    }
  }

 private:
  /// Calls body(first, end) for the blocks of rows that form a plain sum.
  template <class Body>
  static void for_sums(index_t first, index_t rows, Body body) {
    for (; first < rows; first += sum_rows)
      body(first, first + sum_rows < rows ? first + sum_rows : rows);
  }

  /// Calls step(i, terms) for the rows from `first` on, which adds N terms, and adds all of them to
  /// `sums`. From these sums within a panel reflectors are made, and Q is only as orthogonal as
  /// they are: even and odd rows are summed apart, which halves a bias. In one sum the largest
  /// error of 6000 constant 17x17 matrices of float64 was 0.98 of its bar.
  template <int N, class Step>
  [[gnu::always_inline]] void add_by_parity(index_t first, V (&sums)[N], Step step) const {
    for_sums(first, rows_, [&](index_t i, index_t end) {
      V even[N] = {}, odd[N] = {};
      for (; i + 1 < end; i += 2) {
        step(i, even);
        step(i + 1, odd);
      }
      if (i < end) step(i, even);
#pragma GCC unroll 4
      for (int p = 0; p < N; ++p) sums[p] += even[p] + odd[p];
    });
  }

  static V broadcast(C x) { return V{} + x; }

  /// The sum of squares of column P below its diagonal, with each entry multiplied by `factor`.
  template <int P>
  V sum_of_squares(C factor = 1) const {
    V sum[1] = {};
    add_by_parity(P + 1, sum, [&](index_t i, V* terms) {
      const V x = a_[i * width + P] * factor;
      terms[0] += x * x;
    });
    return sum[0];
  }

  struct Reflector {
    V beta, tau, raise, inverse;  // v = x raise inverse
  };

  /// H (alpha, x) = (beta, 0), tail = x'x (LAPACK larfg). Where squares of a column's entries would
  /// underflow, the column is first multiplied by a power of two.
  template <int P>
  Reflector make_reflector(V tail) const {
    using F = Format<C>;
    const V alpha = a_[P * width + P], one = broadcast(1);
    V raised_tail = one;  // computed only where it is needed
    if (any(tail < F::small_squares)) raised_tail = sum_of_squares<P>(F::raise);
    const Int is_small = alpha * alpha + tail < F::small_squares;
    Reflector h;
    h.raise = is_small ? broadcast(F::raise) : one;
    const V a = alpha * h.raise, t = is_small ? raised_tail : tail;
    V norm = a * a + t;
    norm = square_roots(norm);
    const V b = a >= 0 ? -norm : norm;
    // H = I where x is negligible compared with the largest entry of the column.
    const Int is_zero =
        (tail < F::small_squares) & (raised_tail < F::zero * F::raise * F::raise * F::zero);
    h.inverse = is_zero ? V{} : one / (a - b);
    h.beta = is_zero ? alpha : b * (is_small ? broadcast(F::lower) : one);
    // tau = 2 / v'v with the rounded `inverse` that v is computed from. LAPACK's (beta - alpha) /
    // beta is the same number, but is rounded independently, and H is then farther from orthogonal.
    // With s = v'v - 1 it is 1 + (1 - s) / (1 + s), where fewer roundings count: with 2 / (1 + s)
    // the largest error of two million 16x16 matrices of float64 was 0.95 of its bar.
    const V s = h.inverse * t * h.inverse;
    h.tau = is_zero ? V{} : one + (one - s) / (one + s);
    return h;
  }

  /// Makes the reflector of column P and column P of T, and updates the columns right of it.
  /// Returns x'x of the next column below its diagonal.
  template <int P>
  V factor_column(V tail, V* t) {
    const Reflector h = make_reflector<P>(tail);
    // v'a_p for the columns right of P, and v'v_p for the columns left of it.
    V dots[width];
    for (int p = 0; p < width; ++p) dots[p] = a_[P * width + p];
    a_[P * width + P] = h.beta;
    add_by_parity(P + 1, dots, [&](index_t i, V* terms) {
      V* row = a_ + i * width;
      const V v = row[P] * h.raise * h.inverse;
      row[P] = v;
#pragma GCC unroll 4
      for (int p = 0; p < width; ++p)
        if (p != P) terms[p] += v * row[p];
    });
    // T(0:P, P) = -tau T(0:P, 0:P) V'v, T(P, P) = tau.
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      V sum{};
#pragma GCC unroll 4
      for (int q = p; q < P; ++q) sum += t[p * width + q] * dots[q];
      t[p * width + P] = -h.tau * sum;
    }
    t[P * width + P] = h.tau;
    if constexpr (P + 1 < width) {
      return update_columns<P>(h.tau, dots);
    } else {
      return V{};
    }
  }

  /// a_p -= tau (v'a_p) v for the columns right of P.
  template <int P>
  V update_columns(V tau, const V* dots) {
    V w[width];
#pragma GCC unroll 4
    for (int p = P + 1; p < width; ++p) {
      w[p] = tau * dots[p];
      a_[P * width + p] -= w[p];
    }
    V tail[1] = {};
    add_by_parity(P + 1, tail, [&](index_t i, V* terms) {
      V* row = a_ + i * width;
      const V v = row[P];
#pragma GCC unroll 4
      for (int p = P + 1; p < width; ++p) row[p] -= w[p] * v;
      if (i > P + 1) terms[0] += row[P + 1] * row[P + 1];
    });
    return tail[0];
  }

  /// W := T W or T'W; T is upper triangular.
  template <bool is_transposed, int columns>
  static void multiply_by_t(const V* t, V (&w)[width][columns]) {
#pragma GCC unroll 4
    for (int s = 0; s < width; ++s) {
      const int p = is_transposed ? width - 1 - s : s;
      V sum[columns] = {};
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o) {
        if (is_transposed ? o > p : o < p) continue;
        const V y = t[is_transposed ? o * width + p : p * width + o];
#pragma GCC unroll 4
        for (int q = 0; q < columns; ++q) sum[q] += y * w[o][q];
      }
#pragma GCC unroll 4
      for (int q = 0; q < columns; ++q) w[p][q] = sum[q];
    }
  }

  V* a_;
  index_t rows_;
};

}  // namespace
}  // namespace qrtool::batched
