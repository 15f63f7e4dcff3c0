// SPDX-License-Identifier: Apache-2.0
// kernel.cpp: Householder QR of as many matrices as a SIMD vector has lanes (LAPACK geqrf,
// orgqr), compiled once for every instruction set.
//
// A vector holds entry (i, j) of `lanes` matrices. Every step of the textbook algorithm is then a
// vector instruction without a shuffle, for matrices of any size:
//
//     matrices in memory              pack: vectors, four columns side by side
//     a a a   b b b   c c c   ...     [a b c ..] [a b c ..] [a b c ..]
//     a a a   b b b   c c c           [a b c ..] [a b c ..] [a b c ..]
//
// Four columns form a panel, with H_j H_j+1 H_j+2 H_j+3 = I - V T V' (LAPACK larft, compact WY), so
// that each entry to their right is loaded twice and stored once per four reflectors. All panels to
// the left are applied to a panel while it stays in the first-level cache (left-looking): only V is
// read from farther away, and only the panel is written.
//
//     R R|R R|R R|
//     v R|R R|R R|      c: scale_panel, then apply_panel of all v: C := (I - V T' V') C,
//     v v|v R|c c|      then factor_panel
//     v v|v v|c c|
//
// Q is formed backward, panel by panel, and overwrites V: the panel at row j changes only Q[j:, :].
//
// Where lanes need different answers (zero columns, tiny columns, NaN) the kernel computes both and
// selects one per lane, so that no matrix depends on another.
#include "core/cpu/batched/kernel.hpp"

#include "core/cpu/batched/panel.hpp"
#include "core/cpu/batched/tiles.hpp"

namespace qrtool::batched {
namespace {

/// Matrices are stored in T, and computed in C.
template <class T, class C>
class Factorization : Lanes<T, C> {
  using Base = Lanes<T, C>;
  using typename Base::Int, typename Base::IntT, typename Base::V, typename Base::VT;
  using InMemory = Tiles<T, Base::lanes>;
  using Base::exponent_of, Base::infinity_bits, Base::magnitude_bits, Base::split_power;

 public:
  using Base::lanes;

  static std::size_t workspace_bytes(const Shape& shape) {
    return Factorization(shape, nullptr).vectors_ * sizeof(V);
  }

  static void factor(const Shape& shape, const Pack<T>& pack, std::byte* workspace) {
    Factorization f(shape, reinterpret_cast<V*>(workspace));
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
  Factorization(const Shape& shape, V* workspace) : s_(shape) {
    const index_t columns = s_.n > s_.q_cols ? s_.n : s_.q_cols;
    const index_t panels = panels_of(s_.k);
    const auto take = [&](index_t vectors) {
      V* first = workspace == nullptr ? nullptr : workspace + vectors_;
      vectors_ += static_cast<std::size_t>(vectors);
      return first;
    };
    a_ = take(panels_of(columns) * s_.m * width);
    top_ = take(panels * width * width);
    t_ = take(panels * width * width);
    sign_ = take(s_.k > s_.q_cols ? s_.k : s_.q_cols);
    up_ = take(2 * s_.n);
    largest_ = reinterpret_cast<IntT*>(take(s_.n));
  }

  static V broadcast(C x) { return V{} + x; }

  static index_t panels_of(index_t columns) { return (columns + width - 1) / width; }

  /// Row i of panel p, which has four vectors.
  V* row_of(index_t p, index_t i) const { return a_ + (p * s_.m + i) * width; }
  V& at(index_t i, index_t j) const { return row_of(j / width, i)[j % width]; }

  /// R(i, j); in a panel's own rows R is stored apart, because V has its ones and zeros there.
  const V& r_at(index_t i, index_t j) const {
    return i / width == j / width ? top_[i * width + j % width] : at(i, j);
  }

  // ---- between memory and the pack

  /// Loads A into the pack and finds the largest entry of every column. Lanes without a matrix get
  /// the first one. Columns beyond n in the last panel are zero.
  [[gnu::noinline]] void load(const Pack<T>& pack) {
    for (index_t j = 0; j < s_.n; ++j) largest_[j] = IntT{};
    for (index_t j = s_.n; j % width != 0; ++j)
      for (index_t i = 0; i < s_.m; ++i) at(i, j) = V{};
    const index_t panel = s_.m * width;
    InMemory::read(pack.a, pack.count, s_.m, s_.n, [&]<int N>(const VT* x, index_t i, index_t j) {
      V* to = &at(i, j);
      IntT* largest = largest_ + j;
#pragma GCC unroll 16
      for (int e = 0; e < N; ++e) {
        const IntT bits = magnitude_bits(x[e]);
        largest[e] = bits > largest[e] ? bits : largest[e];
        to[e / width * panel + e % width] = __builtin_convertvector(x[e], V);
      }
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
      for (int q = 0; q < width; ++q)
        rows[i * width + q] = rows[i * width + q] * down[q][0] * down[q][1];
    }
    if (!any(~is_finite_)) return;
    for (index_t e = 0; e < s_.m * width; ++e)
      rows[e] = reinterpret_cast<V>(reinterpret_cast<Int>(rows[e]) & keep);
  }

  void choose_signs() {
    const V one = broadcast(1);
    for (index_t i = 0; i < s_.k; ++i)
      sign_[i] = s_.is_positive ? (r_at(i, i) < 0 ? -one : one) : one;
    for (index_t i = s_.k; i < s_.q_cols; ++i) sign_[i] = one;
  }

  /// x := entries (i, j), .., (i, j + N - 1) of R D^-1, rounded once, where adding 0 turns -0 into
  /// +0. Returns the largest of them as bits. N is at most the width of a panel.
  template <int N>
  [[gnu::always_inline]] IntT upper_entries(index_t i, index_t j, V sign, VT* x) const {
    const V *from = &r_at(i, j), *up = up_ + 2 * j;
    IntT largest{};
#pragma GCC unroll 8
    for (int e = 0; e < N; ++e) {
      x[e] = __builtin_convertvector(from[e] * sign * up[2 * e] * up[2 * e + 1], VT) + VT{};
      const IntT bits = magnitude_bits(x[e]);
      largest = bits > largest ? bits : largest;
    }
    return largest;
  }

  /// The same, but with lower(...) left of the diagonal.
  template <int N, class Lower>
  [[gnu::always_inline]] void upper_row(index_t i, index_t j, V sign, VT* x, Lower lower) {
    constexpr int step = N < width ? N : width;
    IntT largest{};
#pragma GCC unroll 8
    for (int e = 0; e < N; e += step) {
      if (i <= j + e + step - 1) {
        const IntT bits = upper_entries<step>(i, j + e, sign, x + e);
        largest = bits > largest ? bits : largest;
      }
#pragma GCC unroll 8
      for (int l = 0; l < step; ++l)
        if (i > j + e + l) x[e + l] = lower(j + e + l);
    }
    largest_r_ = largest > largest_r_ ? largest : largest_r_;
  }

  [[gnu::noinline]] void store_r(const Pack<T>& pack) {
    InMemory::write(pack.r, pack.count, s_.r_rows, s_.n, [&]<int N>(index_t i, index_t j, VT* x) {
      upper_row<N>(i, j, i < s_.k ? sign_[i] : V{}, x, [](index_t) { return VT{}; });
    });
  }

  [[gnu::noinline]] void store_q(const Pack<T>& pack) {
    const index_t panel = s_.m * width;
    InMemory::write(pack.q, pack.count, s_.m, s_.q_cols, [&]<int N>(index_t i, index_t j, VT* x) {
      const V* from = &at(i, j);
#pragma GCC unroll 16
      for (int e = 0; e < N; ++e)
        x[e] = __builtin_convertvector(from[e / width * panel + e % width] * sign_[j + e], VT);
    });
  }

  const V& tau(index_t j) const { return t_[j / width * width * width + j % width * (width + 1)]; }

  /// Stores V\R and tau. Where V was rounded, tau = 2 / v'v is computed from the rounded V, so that
  /// I - tau v v' is orthogonal to the last bit of T.
  void store_reflectors(const Pack<T>& pack) {
    InMemory::write(pack.v, pack.count, s_.m, s_.n, [&]<int N>(index_t i, index_t j, VT* x) {
      upper_row<N>(i, j, broadcast(1), x,
                   [&](index_t column) { return __builtin_convertvector(at(i, column), VT); });
    });
    InMemory::write(pack.tau, pack.count, 1, s_.k, [&]<int N>(index_t, index_t j, VT* x) {
      for (int e = 0; e < N; ++e) x[e] = stored_tau(j + e);
    });
  }

  VT stored_tau(index_t j) const {
    if constexpr (sizeof(T) == sizeof(C)) {
      return tau(j);
    } else {
      V vv = broadcast(1);
      for (index_t i = j + 1; i < s_.m; ++i) {
        const VT rounded = __builtin_convertvector(at(i, j), VT);
        const V v = __builtin_convertvector(rounded, V);
        vv += v * v;
      }
      return __builtin_convertvector(tau(j) != 0 ? 2 / vv : V{}, VT);
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
        panel(b).factor(s_.k - b * width, top_ + b * width * width, t_ + b * width * width);
    }
  }

  /// Panel p, beginning with the row of its diagonal.
  Panel<C> panel(index_t p) const { return {row_of(p, p * width), s_.m - p * width}; }

  /// C := (I - V T V') C, or with T', where V is panel p and C is panel b from row 4 p on. C is
  /// zero above row `first`.
  template <bool is_transposed>
  void apply_panel(index_t p, index_t b, index_t first) {
    const index_t j = p * width;
    for (index_t q = 0; q < width; q += block)
      panel(p).template apply<is_transposed>(t_ + j * width, first - j, row_of(b, j) + q);
  }

  /// Overwrites V with Q = H_0 .. H_k-1 I, backward: panel b of Q needs only the panels of V to its
  /// left and its own.
  void form_q() {
    const index_t panels = panels_of(s_.k);
    for (index_t b = panels_of(s_.q_cols) - 1; b >= 0; --b) {
      const index_t j = b * width, above = b < panels ? j : s_.m;
      for (index_t e = 0; e < above * width; ++e) row_of(b, 0)[e] = V{};
      if (b < panels) {
        panel(b).start_q(t_ + j * width);
      } else {
        for (index_t q = 0; q < width && j + q < s_.m; ++q) at(j + q, j + q) = broadcast(1);
      }
      for (index_t p = (b < panels ? b : panels) - 1; p >= 0; --p)
        apply_panel<false>(p, b, (p + 1) * width);
    }
  }

  const Shape s_;
  std::size_t vectors_ = 0;  // in the workspace
  V* a_;                     // A, then V\R, then Q, in panels of m rows of `width` vectors
  V* top_;                   // the part of R in the first rows of every panel
  V* t_;                     // width x width for every panel
  V* sign_;                  // the sign of R_ii; 1 for the columns of Q beyond k
  V* up_;                    // 2^e_j as two factors
  IntT* largest_;            // the largest |a_ij| of each column, as bits
  IntT is_finite_, scale_, largest_r_{};
};

template <class T, class C>
constexpr Routine<T> routine{Factorization<T, C>::lanes, Factorization<T, C>::workspace_bytes,
                             Factorization<T, C>::factor};

}  // namespace

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET),
                                                   routine<float, float>, routine<float, double>,
                                                   routine<double, double>};

}  // namespace qrtool::batched
