// SPDX-License-Identifier: Apache-2.0
// panel.hpp: factors a strip of 32 columns into V, R and T, in two leaves of 16 columns (LAPACK
// geqrt2, larfg, larft). Private to core/cpu, compiled once for every instruction set (simd.hpp).
//
// Within a leaf one pass over the rows applies reflector c, turns column c into v, and sums the
// products of column c + 1 with all columns: the products with columns to its right give v'A, that
// with itself gives the norm, and those with columns to its left give V'v for T (Puglisi 1992). The
// first 16 rows stay in the strip, and those below are stored by columns (leaf_columns.hpp).
//
// T is formed again, from the rounded V and with exact sums, in a panel with few rows, since the
// error of Q grows with the number of reflectors and its bar with the number of rows, and where
// reflectors are far from orthogonal to each other. Rows that are alike make them so, and such rows
// are also rounded alike, so that the errors of all reflectors add up.
#pragma once

#include "core/cpu/blocked/leaf_columns.hpp"
#include "core/cpu/blocked/strip_rows.hpp"

namespace qrtool::blocked {
namespace {

template <class C>
class PanelQr : Lanes<C, C> {
  using Base = Lanes<C, C>;
  using Base::lanes;
  using typename Base::Int, typename Base::V;
  using Panel = typename Products<C>::Panel;
  typedef C StoredC __attribute__((may_alias));

 public:
  /// The parts of one panel: `a` is its strip from the panel's first row on, `top` the first rows
  /// of V, `t` is T transposed, and `columns` has room for the columns of a leaf.
  struct PanelParts {
    C *a, *top, *t, *columns;
  };

  /// Overwrites `rows` rows of a strip with `columns` columns by V\R; the first k columns get
  /// reflectors. Gives the first rows of V in `top`, and T. The reflectors of the left leaf are
  /// applied to the right leaf first, C := H' C. Then T(left, right) = -T(left) V_left' V_right
  /// T(right).
  [[gnu::noinline]] static void factor(const PanelParts& parts, index_t rows, index_t columns,
                                       index_t k) {
    const auto [a, top, t, columns_of_leaf] = parts;
    for (index_t i = 0; i < width * width; i += lanes) store(t + i, V{});

    bool is_exact = rows <= low_rows;
    is_exact |= factor_leaf({a, rows, columns_of_leaf}, lesser(leaf, k), t) > most_products;
    if (is_exact) form_t_exactly(a, rows, {0, lesser(leaf, k)}, t);
    copy_unit_lower(a, 0, lesser(rows, leaf), lesser(leaf, k), top);
    const index_t left_top = lesser(rows, leaf);
    const Panel left{top, a + left_top * width, left_top, rows - left_top, leaf, t};
    if (columns > leaf)
      Products<C>::template apply<true>(left, {true, true}, a + leaf, leaf_vectors);
    for (index_t i = leaf; i < lesser(rows, width); ++i)
      for (int q = 0; q < leaf_vectors; ++q)
        store(top + i * width + q * lanes, load(a + i * width + q * lanes));
    if (k <= leaf) return;

    C* right_t = t + leaf * (width + 1);
    is_exact |= factor_leaf({a + leaf * (width + 1), rows - leaf, columns_of_leaf}, k - leaf,
                            right_t) > most_products;
    copy_unit_lower(a, leaf, lesser(rows, width), k, top);
    if (is_exact) return form_t_exactly(a, rows, {leaf, k}, t);
    // The products are formed transposed, so that each is a sum of scaled rows.
    alignas(64) C w[leaf * width] = {}, x[leaf * width];
    const index_t top_rows = lesser(rows, width);
    Products<C>::add_products(top_rows - leaf, leaf, top + leaf * (width + 1), top + leaf * width,
                              leaf_vectors, w);
    Products<C>::add_products(rows - top_rows, leaf, a + top_rows * width + leaf,
                              a + top_rows * width, leaf_vectors, w);
    if (largest_sum(w) > most_products) return form_t_exactly(a, rows, {leaf, k}, t);
    Products<C>::template multiply_by_t<true>(right_t, leaf, w, leaf_vectors, x);
    for (index_t c = 0; c < leaf; ++c) {
      for (int q = 0; q < leaf_vectors; ++q) {
        V sum{};
        for (index_t l = 0; l < leaf; ++l)
          sum -= x[c * width + l] * load(t + l * width + q * lanes);
        store(t + (leaf + c) * width + q * lanes, sum);
      }
    }
  }

 private:
  static constexpr int leaf_vectors = leaf / lanes, row_vectors = width / lanes;
  /// The rows up to which T is formed exactly. With T from the sums of the sweeps one in 100000
  /// uniform 16x17 matrices was above its bar, by up to a tenth, and the largest error of 20000 of
  /// 32x32 was 0.84 of it; at 64x64 it is 0.55.
  static constexpr index_t low_rows = 48;
  /// The largest sum of |v_l'v_c| over 16 columns l for which T is not formed again. Gaussian
  /// matrices have 1 to 2, and matrices with constant rows 10 and more.
  static constexpr C most_products = 4;

  static V load(const C* x) { return Products<C>::load(x); }
  static void store(C* x, V value) { Products<C>::store(x, value); }

  /// Writes the columns [first, first + 16) of the first rows of V: ones on the diagonal, zeros
  /// above it, and zeros in columns beyond the leaf's last reflector.
  static void copy_unit_lower(const C* a, index_t first, index_t rows, index_t k, C* top) {
    for (int q = 0; q < leaf_vectors; ++q) {
      const index_t at = first + q * lanes;
      const Int within = ~lanes_from<Int>(k - at, 0);
      for (index_t i = 0; i < rows; ++i) {
        const Int right = lanes_from<Int>(i + 1 - at, 0), below = ~lanes_from<Int>(i - at, 0);
        const V ones = select(~right & ~below, V{} + 1);
        store(top + i * width + at, select(within, select(below, load(a + i * width + at)) + ones));
      }
    }
  }

  struct Reflector {
    C beta, tau, inverse;  // v = x inverse
  };

  /// A leaf has 16 columns of a strip: `a` is their first 16 rows, and the rows below are stored by
  /// columns.
  struct Leaf {
    C* a;
    index_t rows;
    LeafColumns<C> below;
    Leaf(C* strip, index_t all_rows, C* room)
        : a(strip), rows(lesser(all_rows, leaf)), below(room, all_rows - rows) {}
  };

  /// Overwrites the first `columns` of 16 columns by V\R, applies the reflectors to the others, and
  /// gives T transposed. Returns the largest sum of the |v_l'v_c| with l < c.
  static C factor_leaf(Leaf part, index_t columns, C* t) {
    C* const a = part.a;
    C most = 0;
    part.below.read(a + leaf * width);
    V dots[leaf_vectors];
    sum_column(part, 0, dots);
    for (index_t c = 0; c < columns; ++c) {
      const Reflector h = make_reflector(part, c, dots);
      C* pivot = a + c * width;
      alignas(64) C z[leaf];  // v'a_l right of column c, and v'v_l left of it
      alignas(64) C by_column[leaf];
      V coefficients[leaf_vectors];
      Int keep[leaf_vectors];
      for (int q = 0; q < leaf_vectors; ++q) {
        const V y = load(pivot + q * lanes), dot = y + h.inverse * dots[q];
        store(z + q * lanes, dot);
        const Int right = lanes_from<Int>(c + 1, q);
        const V w = select(right, h.tau * dot);
        keep[q] = right | ~lanes_from<Int>(c, q);
        coefficients[q] = select(keep[q], -h.inverse * w) + select(~keep[q], V{} + h.inverse);
        store(by_column + q * lanes, coefficients[q]);
        store(pivot + q * lanes, select(keep[q], y - w) + select(~keep[q], V{} + h.beta));
      }
      if (c + 1 < columns) {
        sweep<true>(part, c, coefficients, keep, dots);
      } else {
        sweep<false>(part, c, coefficients, keep, dots);
      }
      part.below.sweep(c, c + 1 < columns, h.inverse, by_column, dots);
      form_t_column(c, h.tau, z, t);
      C sum = 0;
      for (index_t l = 0; l < c; ++l) sum += z[l] < 0 ? -z[l] : z[l];
      most = sum > most ? sum : most;
    }
    part.below.write(a + leaf * width);
    return most;
  }

  /// Returns the largest sum of |w_lc| over the 16 rows l of W, for its 16 columns.
  static C largest_sum(const C* w) {
    C most = 0;
    for (index_t c = 0; c < leaf; ++c) {
      C sum = 0;
      for (index_t l = 0; l < leaf; ++l)
        sum += w[l * width + c] < 0 ? -w[l * width + c] : w[l * width + c];
      most = sum > most ? sum : most;
    }
    return most;
  }

  /// T(:, c) := -tau T z, T(c, c) := tau. The later columns of T are still zero.
  static void form_t_column(index_t c, C tau, const C* z, C* t) {
    for (int q = 0; q < leaf_vectors; ++q) {
      V sum[2] = {};
#pragma GCC unroll 16
      for (index_t l = 0; l < leaf; ++l) sum[l & 1] += z[l] * load(t + l * width + q * lanes);
      store(t + c * width + q * lanes, -tau * (sum[0] + sum[1]));
    }
    t[c * width + c] = tau;
  }

  struct Columns {
    index_t first, end;
  };

  /// T(:, c) := -tau T z with z = V'v_c, and T(c, c) := tau, for some columns of a panel. V is in
  /// `a`. Columns with H = I keep their zeros.
  [[gnu::noinline]] static void form_t_exactly(const C* a, index_t rows, Columns columns, C* t) {
    for (index_t c = columns.first; c < columns.end; ++c) {
      if (t[c * width + c] == 0) continue;
      alignas(64) C z[width];
      sum_exactly(a, rows, c, z);
      const C tau = tau_of(z[c]);
      V sum[row_vectors] = {}, lost[row_vectors] = {};
      for (index_t l = 0; l < c; ++l) {
        for (int q = 0; q < row_vectors; ++q) {
          // The rounding error of an addition is a number, too (Knuth's TwoSum).
          const V term = z[l] * load(t + l * width + q * lanes), next = sum[q] + term;
          const V added = next - sum[q];
          lost[q] += (sum[q] - (next - added)) + (term - added);
          sum[q] = next;
        }
      }
      for (int q = 0; q < row_vectors; ++q)
        store(t + c * width + q * lanes, -tau * (sum[q] + lost[q]));
      t[c * width + c] = tau;
    }
  }

  /// z_l := v_l'v_c for the columns l left of c, and z_c := v_c'v_c - 1. Entries of V are at most 1
  /// in size, so that adding 3 rounds a product to a multiple of one small number: sums of such
  /// multiples are exact, and the rounded parts are summed separately.
  static void sum_exactly(const C* a, index_t rows, index_t c, C* z) {
    V sum[row_vectors], lost[row_vectors];
    const auto add = [&](int q, V product) {
      const V multiple = (product + 3) - 3;
      sum[q] += multiple;
      lost[q] += product - multiple;
    };
    for (index_t l = 0; l < width; ++l) z[l] = l < c ? a[c * width + l] : 0;
    for (int q = 0; q < row_vectors; ++q) {
      sum[q] = lost[q] = V{};
      add(q, load(z + q * lanes));
    }
    for (index_t i = c + 1; i < rows; ++i)
      for (int q = 0; q < row_vectors; ++q)
        add(q, a[i * width + c] * load(a + i * width + q * lanes));
    for (int q = 0; q < row_vectors; ++q) store(z + q * lanes, sum[q] + lost[q]);
  }

  /// tau = 2 / (1 + s), which is 1 + (1 - s) / (1 + s) with less rounding. s = v'v - 1.
  static C tau_of(C s) { return 1 + (1 - s) / (1 + s); }

  /// Sums x'a_l for all columns a_l, where x is column c below row c.
  static void sum_column(const Leaf& part, index_t c, V* dots) {
    for (int q = 0; q < leaf_vectors; ++q) {
      dots[q] = V{};
      for (index_t i = c + 1; i < part.rows; ++i)
        dots[q] += part.a[i * width + c] * load(part.a + i * width + q * lanes);
    }
    part.below.add_products(c, dots);
  }

  /// Finds H with H (alpha, x) = (beta, 0), x'x = dots[c] (LAPACK larfg). If squares of a column's
  /// entries would underflow, the column is first multiplied by a power of two, and its products
  /// with the other columns, from which T is formed, are summed again.
  static Reflector make_reflector(Leaf& part, index_t c, V* dots) {
    using F = Format<C>;
    C* const a = part.a;
    C lower = 1;
    if (entry(dots, c) < F::small_squares) {
      C largest = part.below.largest(c);
      for (index_t i = c + 1; i < part.rows; ++i) {
        const C x = a[i * width + c] < 0 ? -a[i * width + c] : a[i * width + c];
        largest = x > largest ? x : largest;
      }
      const C alpha = a[c * width + c];
      if (largest < F::zero) return {alpha, 0, 0};  // H = I
      if (alpha * alpha + entry(dots, c) < F::small_squares) {
        lower = F::lower;
        for (index_t i = c; i < part.rows; ++i) a[i * width + c] *= F::raise;
        part.below.multiply(c, F::raise);
        sum_column(part, c, dots);
      }
    }
    const C alpha = a[c * width + c], tail = entry(dots, c);
    const C norm = square_root(alpha * alpha + tail), beta = alpha >= 0 ? -norm : norm;
    const C inverse = 1 / (alpha - beta);
    // tau = 2 / v'v with the rounded `inverse` that v is computed from. LAPACK's (beta - alpha) /
    // beta is the same number, but is rounded independently, and H is then farther from orthogonal.
    return {beta * lower, tau_of(inverse * tail * inverse), inverse};
  }

  static C entry(const V* x, index_t c) { return reinterpret_cast<const StoredC*>(x)[c]; }

  /// Makes one pass over the first rows below row c: a_l -= v w_l right of column c, and column c
  /// := v. If there is a next reflector, dots := x'a_l, where x is column c + 1 below row c + 1.
  template <bool has_next>
  [[gnu::noinline]] static void sweep(const Leaf& part, index_t c, const V* coefficients,
                                      const Int* keep, V* dots) {
    V sum[leaf_vectors] = {};
    for (index_t i = c + 1; i < part.rows; ++i) {
      C* row = part.a + i * width;
      const C x = row[c];
      V y[leaf_vectors];
#pragma GCC unroll 16
      for (int q = 0; q < leaf_vectors; ++q) {
        y[q] = select(keep[q], load(row + q * lanes)) + x * coefficients[q];
        store(row + q * lanes, y[q]);
      }
      if (!has_next || i == c + 1) continue;
      const C next = row[c + 1];
#pragma GCC unroll 16
      for (int q = 0; q < leaf_vectors; ++q) sum[q] += next * y[q];
    }
    for (int q = 0; q < leaf_vectors; ++q) dots[q] = sum[q];
  }
};

}  // namespace
}  // namespace qrtool::blocked
