// SPDX-License-Identifier: Apache-2.0
// complex_leaf.hpp: factors a strip of 16 complex columns of one matrix, stored by columns (LAPACK
// geqrt, larfg, larft). Private to core/cpu, compiled once for every instruction set (simd.hpp).
//
// A vector holds neighbouring rows of one part of one column, and a block of rows has 32 of them:
// re and im of column 0, re and im of column 1, .. Before a column is reflected, what it has above
// its diagonal is moved to R, so that V has its zeros and ones, and no row is an exception. Four
// columns form a group, which is applied to the rest of the strip at once:
//
//     for columns c of the group   make the reflector, apply it to the columns right of c
//     C := (I - V T^H V^H) C       for the columns right of the group
//
// T^-1 = D^-1 + U, where D has tau, and U is the part of V^H V above its diagonal (LAPACK larft
// forms T itself). W := T W by substitution has fewer roundings than a product with a rounded T.
#pragma once

#include "core/simd/numbers.hpp"
#include "core/simd/transpose.hpp"

namespace qrtool::blocked {
namespace {

template <class C>
class ComplexLeaf : Lanes<C, C> {
  using Base = Lanes<C, C>;
  using Base::lanes;
  using typename Base::V;
  using StoredV = typename VectorOf<C, lanes>::stored;
  using Z = Complex<V>;
  using Scalar = Complex<C>;

 public:
  /// The columns of a strip, and the reals of a row of it.
  static constexpr index_t strip = 16, strip_reals = 2 * strip;

  /// Returns the number of reals that `rows` rows need.
  static constexpr index_t entries(index_t rows) {
    return (rows + lanes - 1) / lanes * lanes * strip_reals;
  }

  /// R of the strip's own rows, or tau on the diagonal and U above it; row-major.
  struct Square {
    Scalar entry[strip][strip];
  };

  ComplexLeaf(C* x, index_t rows) : x_(x), end_(x + entries(rows)), rows_(rows) {}

  /// Copies rows that have the real parts of 16 columns before the imaginary ones. Rows beyond the
  /// last are zero.
  [[gnu::noinline]] void read(const C* from) {
    for (index_t i = 0; i < rows_; i += lanes)
      for (index_t q = 0; q < strip_reals; q += lanes) {
        V x[lanes];
#pragma GCC unroll 16
        for (int r = 0; r < lanes; ++r)
          x[r] = i + r < rows_ ? load(from + (i + r) * strip_reals + q) : V{};
        transpose(x);
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) store(x_ + i * strip_reals + place(q + l) * lanes, x[l]);
      }
  }

  [[gnu::noinline]] void write(C* to) const {
    for (index_t i = 0; i < rows_; i += lanes)
      for (index_t q = 0; q < strip_reals; q += lanes) {
        V x[lanes];
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) x[l] = load(x_ + i * strip_reals + place(q + l) * lanes);
        transpose(x);
#pragma GCC unroll 16
        for (int r = 0; r < lanes; ++r)
          if (i + r < rows_) store(to + (i + r) * strip_reals + q, x[r]);
      }
  }

  /// Overwrites the first `columns` columns with V, of which at most `rows` get reflectors, and
  /// gives R, tau and U. All others become zero.
  [[gnu::noinline]] void factor(index_t columns, index_t reflectors, Square& r, Square& t) {
    for (index_t p = 0; p < strip; ++p)
      for (index_t q = 0; q < strip; ++q) r.entry[p][q] = t.entry[p][q] = {0, 0};
    for (index_t g = 0; g < reflectors; g += group) {
      for (index_t c = g; c < g + group; ++c) {
        if (c < reflectors) factor_column(c, r, t);
      }
      for (index_t l = g + group; l < columns; ++l) apply_group(g, l, t);
    }
    for (index_t c = reflectors; c < strip; ++c)
      for (index_t i = 0; i < rows_; ++i) {
        if (i < strip) r.entry[i][c] = get(i, c);
        put(i, c, {0, 0});
      }
    for (index_t g = group; g < reflectors; g += group) join_u(g, t);
  }

 private:
  static constexpr index_t group = 4;
  /// The number of blocks of rows in a plain sum.
  static constexpr index_t sum_blocks = 8;
  static constexpr index_t block_reals = lanes * strip_reals;

  static V load(const C* x) { return *reinterpret_cast<const StoredV*>(x); }
  static void store(C* x, V value) { *reinterpret_cast<StoredV*>(x) = value; }
  /// The vector of a block of rows that has real q of a row.
  static constexpr index_t place(index_t q) { return q < strip ? 2 * q : 2 * (q - strip) + 1; }

  [[gnu::always_inline]] static Z vectors(const C* rows, index_t c) {
    return {load(rows + 2 * c * lanes), load(rows + (2 * c + 1) * lanes)};
  }
  [[gnu::always_inline]] static void set_vectors(C* rows, index_t c, const Z& z) {
    store(rows + 2 * c * lanes, z.re);
    store(rows + (2 * c + 1) * lanes, z.im);
  }
  C* at(index_t i, index_t c) const {
    return x_ + i / lanes * block_reals + 2 * c * lanes + i % lanes;
  }
  Scalar get(index_t i, index_t c) const { return {at(i, c)[0], at(i, c)[lanes]}; }
  void put(index_t i, index_t c, const Scalar& z) const {
    at(i, c)[0] = z.re;
    at(i, c)[lanes] = z.im;
  }
  static C sum_of(V x) {
    C entries[lanes];
    __builtin_memcpy(entries, &x, sizeof(x));
#pragma GCC unroll 16
    for (int h = lanes / 2; h > 0; h /= 2)
      for (int l = 0; l < h; ++l) entries[l] += entries[l + h];
    return entries[0];
  }
  static Scalar sum_of(const Z& z) { return {sum_of(z.re), sum_of(z.im)}; }

  /// Calls step(a block of rows, sums) for all of them, and returns the sums of all lanes.
  template <int N, class Step>
  [[gnu::always_inline]] void sum_blocks_of(Scalar (&result)[N], Step step) const {
    Z total[N] = {};
    for (C* rows = x_; rows < end_;) {
      C* const left = rows + sum_blocks * block_reals;
      C* const last = left < end_ ? left : end_;
      Z part[N] = {};
      for (; rows < last; rows += block_reals) step(rows, part);
#pragma GCC unroll 4
      for (int p = 0; p < N; ++p) total[p] += part[p];
    }
#pragma GCC unroll 4
    for (int p = 0; p < N; ++p) result[p] = sum_of(total[p]);
  }

  /// Returns x^H x of column c, whose entries are first multiplied by `factor`.
  C sum_of_squares(index_t c, C factor) const {
    Scalar sum[1];
    sum_blocks_of(sum, [&](const C* rows, Z(&part)[1]) {
      add_square(part[0], scaled(vectors(rows, c), factor));
    });
    return sum_of_parts(sum[0]);
  }

  struct Reflector {
    C beta, raise;
    Scalar inverse, t;  // v = x raise inverse; t is tau up to rounding, or 0
  };

  /// H^H (alpha, x) = (beta, 0) with real beta (LAPACK larfg; see batched/panel.hpp). Column c has
  /// x, and zeros above it.
  Reflector make_reflector(index_t c, Scalar alpha) const {
    using F = Format<C>;
    C tail = sum_of_squares(c, 1), raise = 1;
    const auto size = [](C x) { return x < 0 ? -x : x; };
    if (tail < F::small_squares) {
      const C raised = sum_of_squares(c, F::raise);
      const bool no_tail = raised < F::zero * F::raise * F::raise * F::zero;
      if (no_tail && size(alpha.im) < F::zero) return {alpha.re, 1, {0, 0}, {0, 0}};
      if (square_of(alpha) + tail < F::small_squares) {
        raise = F::raise;
        tail = raised;
        alpha = scaled(alpha, raise);
      }
      if (no_tail) tail = 0;
    }
    const C norm = square_root(square_of(alpha) + tail);
    const C beta = alpha.re >= 0 ? -norm : norm, difference = alpha.re - beta;
    const C inverse = 1 / (difference * difference + alpha.im * alpha.im);
    const C keep = tail > 0 ? inverse : 0;
    const Scalar h{difference * keep, -alpha.im * keep};
    const C over = -1 / beta;
    return {raise == 1 ? beta : beta * F::lower, raise, h, {1 + alpha.re * over, alpha.im * over}};
  }

  /// Makes reflector c and column c of the group's U, and updates the columns right of it in the
  /// group.
  void factor_column(index_t c, Square& r, Square& t) {
    const index_t g = c / group * group;
    for (index_t i = 0; i < c; ++i) {
      r.entry[i][c] = get(i, c);
      put(i, c, {0, 0});
    }
    const Scalar alpha = get(c, c);
    put(c, c, {0, 0});
    const Reflector h = make_reflector(c, alpha);
    r.entry[c][c] = {h.beta, 0};
    // v^H a_l for the columns right of c, v^H v_l for the columns left of it, and v^H v - 1.
    Scalar dots[group];
    switch (c - g) {
      case 0:
        form_v<0>(g, h, dots);
        break;
      case 1:
        form_v<1>(g, h, dots);
        break;
      case 2:
        form_v<2>(g, h, dots);
        break;
      default:
        form_v<3>(g, h, dots);
    }
    const Scalar tau = h.t.re > 0 ? unitary_tau(h.t, sum_of_parts(dots[c - g])) : h.t;
    put(c, c, {1, 0});
    for (index_t l = 0; l < group; ++l) dots[l] += get(c, g + l);  // times the one of v
    for (index_t p = g; p < c; ++p) t.entry[p][c] = conj(dots[p - g]);
    t.entry[c][c] = tau;
    Scalar w[group];
    for (index_t l = 0; l < group; ++l) w[l] = conj(tau) * dots[l];
    switch (c - g) {
      case 0:
        update<0>(g, w);
        break;
      case 1:
        update<1>(g, w);
        break;
      case 2:
        update<2>(g, w);
        break;
      default:
        break;
    }
  }

  template <int P>
  [[gnu::noinline]] void form_v(index_t g, const Reflector& h, Scalar (&dots)[group]) const {
    sum_blocks_of(dots, [&](C* rows, Z(&part)[group]) {
      const Z v = scaled(vectors(rows, g + P), h.raise) * h.inverse;
      set_vectors(rows, g + P, v);
#pragma GCC unroll 4
      for (int l = 0; l < group; ++l)
        if (l != P) add_inner(part[l], v, vectors(rows, g + l));
      add_square(part[P], v);
    });
  }

  /// a_l -= v w_l for the columns right of column P of the group.
  template <int P>
  [[gnu::noinline]] void update(index_t g, const Scalar (&w)[group]) const {
    for (C* rows = x_; rows < end_; rows += block_reals) {
      const Z v = vectors(rows, g + P);
#pragma GCC unroll 4
      for (int l = P + 1; l < group; ++l) {
        Z x = vectors(rows, g + l);
        subtract_product(x, v, w[l]);
        set_vectors(rows, g + l, x);
      }
    }
  }

  /// products := V_g^H a_l
  [[gnu::noinline]] void multiply_group(index_t g, index_t l, Scalar (&products)[group]) const {
    sum_blocks_of(products, [&](const C* rows, Z(&part)[group]) {
      const Z x = vectors(rows, l);
#pragma GCC unroll 4
      for (int p = 0; p < group; ++p) add_inner(part[p], vectors(rows, g + p), x);
    });
  }

  /// a_l := (I - V_g T_g^H V_g^H) a_l
  [[gnu::noinline]] void apply_group(index_t g, index_t l, const Square& t) const {
    Scalar products[group], w[group];
    multiply_group(g, l, products);
    for (index_t p = 0; p < group; ++p) {
      Scalar sum = products[p];
      for (index_t q = 0; q < p; ++q) subtract_product(sum, conj(t.entry[g + q][g + p]), w[q]);
      w[p] = conj(t.entry[g + p][g + p]) * sum;
    }
    for (C* rows = x_; rows < end_; rows += block_reals) {
      Z x = vectors(rows, l);
#pragma GCC unroll 4
      for (int p = 0; p < group; ++p) subtract_product(x, vectors(rows, g + p), w[p]);
      set_vectors(rows, l, x);
    }
  }

  /// Forms U above the diagonal block of group h.
  void join_u(index_t h, Square& t) const {
    for (index_t g = 0; g < h; g += group)
      for (index_t l = 0; l < group; ++l) {
        Scalar products[group];
        multiply_group(g, h + l, products);
        for (index_t p = 0; p < group; ++p) t.entry[g + p][h + l] = products[p];
      }
  }

  C *x_, *end_;
  index_t rows_;
};

}  // namespace
}  // namespace qrtool::blocked
