// SPDX-License-Identifier: Apache-2.0
// complex_pack.hpp: Householder QR of as many complex matrices as a SIMD vector has lanes (LAPACK
// geqrf, ungqr). Private to core/cpu, compiled once for every instruction set (simd.hpp).
//
// The method is that of core/cpu/batched/pack_kernel.cpp: a vector holds the real or the imaginary
// part of entry (i, j) of `lanes` matrices, four complex columns form a panel whose rows are re,
// im, re, im, .., and all panels to the left are applied to a panel before it is factored. Loading
// and storing are those of real m x 2n matrices, whose order this is. Both parts of a column are
// scaled by the same power of two. H_j^H zeroes a column below its diagonal and makes the diagonal
// real.
#pragma once

#include "core/cpu/batched/tiles.hpp"
#include "core/cpu/complex/complex_kernel.hpp"
#include "core/cpu/complex/complex_panel.hpp"

namespace qrtool::complex_qr {
namespace {

/// Matrices are stored in T, and computed in C.
template <class T, class C>
class PackQr : Lanes<T, C> {
  using Base = Lanes<T, C>;
  using Base::exponent_of, Base::infinity_bits, Base::magnitude_bits, Base::split_power;
  using typename Base::Int, typename Base::IntT, typename Base::V, typename Base::VT;
  using InMemory = batched::Tiles<T, Base::lanes>;
  using Z = Number<V>;

 public:
  using Base::lanes;

  static std::size_t workspace_bytes(const Shape& shape) { return PackQr(shape, nullptr).bytes_; }

  static void factor(const Shape& shape, const Pack<T>& pack, std::byte* workspace) {
    PackQr f(shape, workspace);
    f.load(pack);
    f.factor_columns();
    if (shape.is_raw) {
      f.store_reflectors(pack);
    } else {
      f.choose_signs();
      f.store_r(pack);
      if (shape.q_cols > 0) {
        f.form_q();
        f.store_q(pack);
      }
    }
    f.store_outcomes(pack);
  }

 private:
  PackQr(const Shape& shape, std::byte* workspace) : s_(shape) {
    const auto take = [&](index_t vectors) {
      V* part = workspace == nullptr ? nullptr : reinterpret_cast<V*>(workspace + bytes_);
      bytes_ += static_cast<std::size_t>(vectors) * sizeof(V);
      return part;
    };
    const index_t columns = s_.n > s_.q_cols ? s_.n : s_.q_cols, panels = panels_of(s_.k);
    a_ = take(panels_of(columns) * panel_vectors());
    top_ = take(panels * width * row_vectors);
    t_ = reinterpret_cast<Z*>(take(panels * width * row_vectors));
    up_ = take(2 * s_.n);
    sign_ = take(s_.k > s_.q_cols ? s_.k : s_.q_cols);
    largest_ = reinterpret_cast<IntT*>(take(s_.n));
  }

  static V broadcast(C x) { return V{} + x; }
  static IntT greater(IntT x, IntT y) { return x > y ? x : y; }
  static index_t panels_of(index_t columns) { return (columns + width - 1) / width; }

  /// A row more than a panel has: panels a power of two apart would share few places of the
  /// first-level cache.
  index_t panel_vectors() const { return (s_.m + 1) * row_vectors; }
  /// Row i of panel p.
  V* row_of(index_t p, index_t i) const { return a_ + p * panel_vectors() + i * row_vectors; }
  /// Column j of the real m x 2n matrix.
  V& at(index_t i, index_t j) const { return row_of(j / row_vectors, i)[j % row_vectors]; }
  /// R in column j of the real matrix. R of a panel's own rows is stored apart: V has its ones and
  /// zeros there.
  V& r_at(index_t i, index_t j) const {
    return i / width == j / row_vectors ? top_[i * row_vectors + j % row_vectors] : at(i, j);
  }

  // ---- between memory and the pack

  /// Loads all matrices, and finds the largest part of each column. Lanes without a matrix get the
  /// first one.
  [[gnu::noinline]] void load(const Pack<T>& pack) {
    for (index_t j = 0; j < s_.n; ++j) largest_[j] = IntT{};
    for (index_t j = 2 * s_.n; j % row_vectors != 0; ++j)
      for (index_t i = 0; i < s_.m; ++i) at(i, j) = V{};
    const index_t panel = panel_vectors();
    InMemory::template read<false>(
        pack.a, pack.count, s_.m, 2 * s_.n, [&]<int N>(const VT* x, index_t i, index_t j) {
          V* to = &at(i, j);
          IntT* largest = largest_ + j / 2;
          constexpr int parts = N > 1 ? 2 : 1;
#pragma GCC unroll 16
          for (int e = 0; e < N; e += parts) {
            IntT bits = magnitude_bits(x[e]);
            if (parts > 1) bits = greater(bits, magnitude_bits(x[e + parts - 1]));
            largest[e / 2] = greater(bits, largest[e / 2]);
          }
#pragma GCC unroll 16
          for (int e = 0; e < N; ++e)
            to[e / row_vectors * panel + e % row_vectors] = __builtin_convertvector(x[e], V);
        });
    IntT most{};
    for (index_t j = 0; j < s_.n; ++j) most = largest_[j] > most ? largest_[j] : most;
    is_finite_ = most < infinity_bits;
    scale_ = exponent_of(most);
  }

  /// Panel p := panel p D with D = diag(2^-e_j). A matrix with NaN or Inf becomes zero.
  [[gnu::noinline]] void scale_panel(index_t p) {
    const Int keep = __builtin_convertvector(is_finite_, Int);
    V down[width][2];
    for (index_t q = 0; q < width; ++q) {
      const index_t j = p * width + q;
      Int e{};
      if (j < s_.n) e = __builtin_convertvector(exponent_of(largest_[j]), Int) & keep;
      split_power(-e, down[q]);
      if (j < s_.n) split_power(e, up_ + 2 * j);
    }
    V* rows = row_of(p, 0);
    for (index_t i = 0; i < s_.m; ++i) {
#pragma GCC unroll 8
      for (int q = 0; q < row_vectors; ++q) {
        V& x = rows[i * row_vectors + q];
        x = x * down[q / 2][0] * down[q / 2][1];
      }
    }
    if (!any(~is_finite_)) return;
    for (index_t e = 0; e < s_.m * row_vectors; ++e)
      rows[e] = reinterpret_cast<V>(reinterpret_cast<Int>(rows[e]) & keep);
  }

  void choose_signs() {
    const V one = broadcast(1);
    for (index_t i = 0; i < s_.k; ++i)
      sign_[i] = s_.is_positive ? (r_at(i, 2 * i) < 0 ? -one : one) : one;
    for (index_t i = s_.k; i < s_.q_cols; ++i) sign_[i] = one;
  }

  /// Entries (i, j), .., (i, j + N - 1) of the real matrix R D^-1, rounded once, where adding 0
  /// turns -0 into +0, and lower(...) left of the diagonal.
  template <int N, class Lower>
  [[gnu::always_inline]] void upper_row(index_t i, index_t j, V sign, VT* x, Lower lower) {
    constexpr int step = N < row_vectors ? N : row_vectors;
    IntT largest{};
#pragma GCC unroll 4
    for (int e = 0; e < N; e += step) {
      if (i <= (j + e + step - 1) / 2) {
        const V *from = &r_at(i, j + e), *up = up_ + (j + e) / 2 * 2;
#pragma GCC unroll 8
        for (int l = 0; l < step; ++l) {
          x[e + l] =
              __builtin_convertvector(from[l] * sign * up[l / 2 * 2] * up[l / 2 * 2 + 1], VT) +
              VT{};
          largest = greater(magnitude_bits(x[e + l]), largest);
        }
      }
#pragma GCC unroll 8
      for (int l = 0; l < step; ++l)
        if (i > (j + e + l) / 2) x[e + l] = lower(j + e + l);
    }
    largest_r_ = greater(largest, largest_r_);
  }

  [[gnu::noinline]] void store_r(const Pack<T>& pack) {
    InMemory::write(
        pack.r, pack.count, s_.r_rows, 2 * s_.n, [&]<int N>(index_t i, index_t j, VT* x) {
          upper_row<N>(i, j, i < s_.k ? sign_[i] : V{}, x, [](index_t) { return VT{}; });
        });
  }

  [[gnu::noinline]] void store_q(const Pack<T>& pack) {
    const index_t panel = panel_vectors();
    InMemory::write(
        pack.q, pack.count, s_.m, 2 * s_.q_cols, [&]<int N>(index_t i, index_t j, VT* x) {
          const V* from = &at(i, j);
#pragma GCC unroll 16
          for (int e = 0; e < N; ++e)
            x[e] = __builtin_convertvector(
                from[e / row_vectors * panel + e % row_vectors] * sign_[(j + e) / 2], VT);
        });
  }

  const Z& tau(index_t j) const { return t_[(j / width * width + j % width) * width + j % width]; }

  /// Stores V\R and tau.
  [[gnu::noinline]] void store_reflectors(const Pack<T>& pack) {
    const V one = broadcast(1);
    InMemory::write(pack.v, pack.count, s_.m, 2 * s_.n, [&]<int N>(index_t i, index_t j, VT* x) {
      upper_row<N>(i, j, one, x,
                   [&](index_t column) { return __builtin_convertvector(at(i, column), VT); });
    });
    InMemory::write(pack.tau, pack.count, 1, 2 * s_.k, [&]<int N>(index_t, index_t j, VT* x) {
      for (int e = 0; e < N; ++e) {
        const Z z = stored_tau((j + e) / 2);
        x[e] = __builtin_convertvector((j + e) % 2 == 0 ? z.re : z.im, VT);
      }
    });
  }

  /// Where V was rounded, tau is computed from the rounded V, so that I - tau v v^H is unitary to
  /// the last bit of T.
  Z stored_tau(index_t j) const {
    if constexpr (sizeof(T) == sizeof(C)) {
      return tau(j);
    } else {
      const auto rounded = [&](index_t i, index_t column) {
        return __builtin_convertvector(__builtin_convertvector(at(i, column), VT), V);
      };
      V vv = broadcast(1);
      for (index_t i = j + 1; i < s_.m; ++i) {
        const Z v{rounded(i, 2 * j), rounded(i, 2 * j + 1)};
        vv += v.re * v.re + v.im * v.im;
      }
      const Z t = tau(j);
      const V factor = 2 * t.re / ((t.re * t.re + t.im * t.im) * vv);
      return {t.re != 0 ? t.re * factor : V{}, t.re != 0 ? t.im * factor : V{}};
    }
  }

  void store_outcomes(const Pack<T>& pack) const {
    for (index_t l = 0; l < pack.count; ++l) {
      const bool finite = is_finite_[l] != 0;
      pack.outcomes[l] = {finite, largest_r_[l] < infinity_bits,
                          finite ? static_cast<int>(scale_[l]) : 0};
    }
  }

  // ---- arithmetic

  void factor_columns() {
    const index_t panels = panels_of(s_.k);
    for (index_t b = 0; b < panels_of(s_.n); ++b) {
      scale_panel(b);
      for (index_t p = 0; p < (b < panels ? b : panels); ++p) apply_panel<true>(p, b, p * width);
      if (b < panels)
        panel(b).factor(s_.k - b * width, top_ + b * width * row_vectors, t_ + b * width * width);
    }
  }

  /// Overwrites V with Q = H_0 .. H_k-1 I, backward: panel b of Q needs only the panels of V to its
  /// left and its own.
  void form_q() {
    const index_t panels = panels_of(s_.k);
    for (index_t b = panels_of(s_.q_cols) - 1; b >= 0; --b) {
      const index_t j = b * width, above = b < panels ? j : s_.m;
      for (index_t e = 0; e < above * row_vectors; ++e) row_of(b, 0)[e] = V{};
      if (b < panels) {
        panel(b).start_q(t_ + j * width);
      } else {
        for (index_t q = 0; q < width && j + q < s_.m; ++q) at(j + q, 2 * (j + q)) = broadcast(1);
      }
      for (index_t p = (b < panels ? b : panels) - 1; p >= 0; --p)
        apply_panel<false>(p, b, (p + 1) * width);
    }
  }

  /// Returns panel p from the row of its diagonal on.
  Panel<C> panel(index_t p) const { return {row_of(p, p * width), s_.m - p * width}; }

  /// C := (I - V T V^H) C, or with T^H, where V is panel p and C is panel b from row 4 p on. C is
  /// zero above row `first`.
  template <bool is_adjoint>
  void apply_panel(index_t p, index_t b, index_t first) {
    const index_t j = p * width;
    for (index_t q = 0; q < width; q += block)
      panel(p).template apply<is_adjoint>(t_ + j * width, first - j, row_of(b, j) + 2 * q);
  }

  const Shape s_;
  std::size_t bytes_ = 0;
  V* a_;           // A, then V\R, in panels of m rows of `row_vectors` vectors
  V* top_;         // the part of R in the first rows of every panel
  Z* t_;           // width x width for every panel
  V* up_;          // 2^e_j as two factors
  V* sign_;        // the sign of R_ii; 1 for the columns of Q beyond k
  IntT* largest_;  // the largest part of each column, as bits
  IntT is_finite_, scale_, largest_r_{};
};

}  // namespace
}  // namespace qrtool::complex_qr
