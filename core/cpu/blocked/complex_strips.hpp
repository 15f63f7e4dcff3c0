// SPDX-License-Identifier: Apache-2.0
// complex_strips.hpp: Householder QR of one complex matrix in strips of 16 columns (LAPACK geqrt,
// gemqrt, ungqr). Private to core/cpu, compiled once for every instruction set (simd.hpp).
//
// The method is that of core/cpu/blocked/matrix_kernel.cpp, on one thread. A row of a strip has the
// real parts of 16 columns and then the imaginary ones, so that a strip is a real one of 32
// columns, and products of strips are those of real matrices (core/simd/products.hpp) without a
// wasted operation:
//
//     X := [Re V, Im V]' [Re C, Im C]                       real, 32 x 32
//     W := V^H C = X_rr + X_ii + i (X_ri - X_ir)            complex, 16 x 16; then W := T W
//     C := C - V W,    [Re C, Im C] -= [Re V, Im V] [ Re W  Im W]
//                                                   [-Im W  Re W]
//
// Four real products make a complex one; three would lose the accuracy of the smaller part.
#pragma once

#include "core/cpu/blocked/complex_leaf.hpp"
#include "core/cpu/blocked/matrix_kernel.hpp"
#include "core/simd/products.hpp"

namespace qrtool::blocked {
namespace {

/// Matrices are stored in T, and computed in C.
template <class T, class C>
class ComplexStrips : Lanes<T, C> {
  using Base = Lanes<T, C>;
  using Base::exponent_of, Base::infinity_bits, Base::lanes, Base::magnitude_bits,
      Base::split_power;
  using typename Base::Int, typename Base::IntT, typename Base::V, typename Base::VT;
  using UnalignedVT = typename VectorOf<T, lanes>::unaligned;
  using Products = blocked::Products<C>;
  using Leaf = ComplexLeaf<C>;
  using Square = typename Leaf::Square;
  static constexpr index_t strip = Leaf::strip, strip_reals = Leaf::strip_reals;
  static_assert(strip_reals == width);

 public:
  static std::size_t workspace_bytes(const Shape& shape, int) {
    return ComplexStrips(shape, nullptr).bytes_;
  }

  static void factor(const Shape& shape, const Matrix<T>& matrix, std::byte* workspace,
                     const Team&) {
    ComplexStrips f(shape, workspace);
    *f.outcome_ = {};
    if (f.factor_strips(matrix) && shape.q_cols > 0) f.form_q(matrix.q);
    f.outcome_->r_fits = !any(f.largest_r_ >= infinity_bits);
  }

  static Outcome outcome(const Shape& shape, std::byte* workspace, int) {
    return *ComplexStrips(shape, workspace).outcome_;
  }

 private:
  static constexpr int vectors = strip_reals / lanes, part_vectors = strip / lanes;

  ComplexStrips(const Shape& shape, std::byte* workspace)
      : s_(shape),
        rows_(round_up(shape.m, tile_rows)),
        strips_(strips_of(shape.n)),
        panels_(strips_of(shape.k)) {
    const auto take = [&]<class E>(E*& member, index_t count) {
      member = workspace == nullptr ? nullptr : reinterpret_cast<E*>(workspace + bytes_);
      bytes_ += static_cast<std::size_t>(round_up(count * static_cast<index_t>(sizeof(E)), 64));
    };
    take(strip_, panels_ * rows_ * strip_reals);
    take(own_, rows_ * strip_reals);
    take(columns_, Leaf::entries(rows_));
    take(top_, panels_ * strip * strip_reals);
    take(t_, panels_);
    take(up_, 2 * strips_ * strip);
    take(sign_, panels_ * strip);
    take(outcome_, 1);
  }

  static V load(const C* x) { return Products::load(x); }
  static void store(C* x, V value) { Products::store(x, value); }
  static constexpr index_t strips_of(index_t columns) { return (columns + strip - 1) / strip; }

  // ---- the order of the strips

  /// Returns false where the matrix is not finite.
  bool factor_strips(const Matrix<T>& matrix) {
    typename Format<T>::Int largest = 0;
    for (index_t s = 0; s < strips_; ++s) {
      C* const c = s < panels_ ? strip_ + s * rows_ * strip_reals : own_;
      const auto of_strip = load_strip(matrix.a, s, c);
      largest = of_strip > largest ? of_strip : largest;
      if (largest >= infinity_bits) {
        outcome_->is_finite = false;
        return false;
      }
      for (index_t p = 0; p < lesser(s, panels_); ++p) apply_panel<true>(p, rows_ - p * strip, c);
      if (s < panels_) factor_panel(s, c);
      if (s_.is_raw)
        store_reflectors(matrix, s, c);
      else
        store_r(matrix.r, s, c);
    }
    outcome_->scale = static_cast<int>(exponent_of(IntT{} + largest)[0]);
    return true;
  }

  /// Q = H_0 .. H_k-1 I. A strip of I is zero above its ones, and stays zero above row 16 p when
  /// panel p is applied.
  void form_q(const Strided<T>& out) {
    for (index_t s = strips_of(s_.q_cols) - 1; s >= 0; --s) {
      for (index_t e = 0; e < rows_ * strip_reals; e += lanes) store(own_ + e, V{});
      for (index_t i = 0; i < lesser(strip, s_.m - s * strip); ++i)
        own_[(s * strip + i) * strip_reals + i] = 1;
      for (index_t p = (s < panels_ ? s : panels_ - 1); p >= 0; --p) {
        const index_t rows = rows_ - p * strip;
        apply_panel<false>(p, p == s ? lesser(rows, strip) : rows, own_);
      }
      store_q(out, s);
    }
  }

  void factor_panel(index_t p, C* c) {
    const index_t j = p * strip;
    C* const v = c + j * strip_reals;
    Leaf part(columns_, rows_ - j);
    part.read(v);
    Square r;
    part.factor(lesser(strip, s_.n - j), lesser(strip, s_.k - j), r, t_[p]);
    part.write(v);
    C* const top = top_ + j * strip_reals;
    for (index_t i = 0; i < strip; ++i) {
      for (index_t q = 0; q < strip; ++q) {
        top[i * strip_reals + q] = r.entry[i][q].re;
        top[i * strip_reals + strip + q] = r.entry[i][q].im;
      }
      const bool is_negative = j + i < s_.k && r.entry[i][i].re < 0;
      sign_[j + i] = s_.is_positive && is_negative ? C(-1) : C(1);
    }
  }

  /// C := (I - V T V^H) C, or with T^H, where V is panel p. C is zero in all but its first `filled`
  /// rows from row 16 p on.
  template <bool is_adjoint>
  [[gnu::noinline]] void apply_panel(index_t p, index_t filled, C* matrix) const {
    const index_t j = p * strip * strip_reals;
    const C* const v = strip_ + p * rows_ * strip_reals + j;
    C* const c = matrix + j;
    alignas(64) C x[strip_reals * strip_reals], w[strip_reals * strip_reals];
    for (index_t e = 0; e < strip_reals * strip_reals; e += lanes) store(x + e, V{});
    Products::add_products(filled, strip_reals, v, c, vectors, x);
    fold(x);
    multiply_by_t<is_adjoint>(t_[p], x, w);
    Products::subtract_products(rows_ - p * strip, strip_reals, v, w, vectors, c);
  }

  /// The first 16 rows of x := [Re W, Im W].
  static void fold(C* x) {
    for (index_t i = 0; i < strip; ++i) {
      C *const r = x + i * strip_reals, *const other = x + (strip + i) * strip_reals;
#pragma GCC unroll 8
      for (index_t q = 0; q < strip; q += lanes) {
        store(r + q, load(r + q) + load(other + strip + q));
        store(r + strip + q, load(r + strip + q) - load(other + q));
      }
    }
  }

  /// y := T W or T^H W in 32 rows: [Re Y, Im Y] and [-Im Y, Re Y]. `t` has tau and U.
  template <bool is_adjoint>
  static void multiply_by_t(const Square& t, const C* w, C* y) {
    using Z = Complex<V>;
    for (index_t step = 0; step < strip; ++step) {
      const index_t i = is_adjoint ? step : strip - 1 - step;
      const auto row_of = [&](const C* x, index_t l, int q) {
        const C* const row = x + l * strip_reals + q * lanes;
        return Z{load(row), load(row + strip)};
      };
      Z sum[part_vectors];
#pragma GCC unroll 8
      for (int q = 0; q < part_vectors; ++q) sum[q] = row_of(w, i, q);
      for (index_t l = is_adjoint ? 0 : i + 1; l < (is_adjoint ? i : strip); ++l) {
        const Complex<C> factor = is_adjoint ? conj(t.entry[l][i]) : t.entry[i][l];
#pragma GCC unroll 8
        for (int q = 0; q < part_vectors; ++q) subtract_product(sum[q], row_of(y, l, q), factor);
      }
      const Complex<C> tau = is_adjoint ? conj(t.entry[i][i]) : t.entry[i][i];
#pragma GCC unroll 8
      for (int q = 0; q < part_vectors; ++q) {
        C *const row = y + i * strip_reals + q * lanes, *const other = row + strip * strip_reals;
        sum[q] = sum[q] * tau;
        store(row, sum[q].re);
        store(row + strip, sum[q].im);
        store(other, -sum[q].im);
        store(other + strip, sum[q].re);
      }
    }
  }

  // ---- between rows in memory and strips

  template <int... e>
  [[gnu::always_inline]] static void split_pair(const VT& x, const VT& y, VT& re, VT& im,
                                                std::integer_sequence<int, e...>) {
    re = __builtin_shufflevector(x, y, 2 * e...);
    im = __builtin_shufflevector(x, y, 2 * e + 1 ...);
  }
  template <int... e>
  [[gnu::always_inline]] static void join_pair(const VT& re, const VT& im, VT& x, VT& y,
                                               std::integer_sequence<int, e...>) {
    x = __builtin_shufflevector(re, im, (e % 2 * lanes + e / 2)...);
    y = __builtin_shufflevector(re, im, (e % 2 * lanes + lanes / 2 + e / 2)...);
  }
  using Lane = std::make_integer_sequence<int, lanes>;

  /// The parts of 16 columns of a row, with zeros beyond `reals`.
  struct Row {
    VT re[part_vectors], im[part_vectors];

    [[gnu::always_inline]] void read(const T* from, index_t reals) {
      T padded[strip_reals] = {};
      if (reals < strip_reals) {
        for (index_t j = 0; j < reals; ++j) padded[j] = from[j];
        from = padded;
      }
#pragma GCC unroll 8
      for (int q = 0; q < part_vectors; ++q) {
        const VT x = *reinterpret_cast<const UnalignedVT*>(from + 2 * q * lanes);
        const VT y = *reinterpret_cast<const UnalignedVT*>(from + (2 * q + 1) * lanes);
        split_pair(x, y, re[q], im[q], Lane());
      }
    }
    [[gnu::always_inline]] void write(T* to, index_t reals) const {
      alignas(64) T row[strip_reals];
      T* const at = reals < strip_reals ? row : to;
#pragma GCC unroll 8
      for (int q = 0; q < part_vectors; ++q) {
        VT x, y;
        join_pair(re[q], im[q], x, y, Lane());
        *reinterpret_cast<UnalignedVT*>(at + 2 * q * lanes) = x;
        *reinterpret_cast<UnalignedVT*>(at + (2 * q + 1) * lanes) = y;
      }
      if (reals < strip_reals)
        for (index_t j = 0; j < reals; ++j) to[j] = row[j];
    }
  };

  /// Prefetches the strip's part of a later row. That part is in another page, so that the
  /// processor would not prefetch it.
  template <int is_write>
  static void prefetch(const T* row, index_t ld) {
    constexpr index_t ahead = 16, line = 64;
    const auto at = reinterpret_cast<std::uintptr_t>(row + ahead * ld);
    for (index_t b = 0; b < strip_reals * static_cast<index_t>(sizeof(T)); b += line)
      __builtin_prefetch(reinterpret_cast<const void*>(at + static_cast<std::uintptr_t>(b)),
                         is_write);
  }

  static index_t reals_of(index_t columns, index_t s) {
    return 2 * lesser(strip, columns - s * strip);
  }

  /// Loads strip s of A D with D = diag(2^-e_j). Returns the bits of its largest part.
  [[gnu::noinline]] typename Format<T>::Int load_strip(const Strided<const T>& a, index_t s, C* c) {
    const T* from = a.data + s * strip_reals;
    const index_t reals = reals_of(s_.n, s);
    IntT largest[part_vectors] = {};
    for (index_t i = 0; i < s_.m; ++i) {
      prefetch<0>(from + i * a.ld, a.ld);
      Row row;
      row.read(from + i * a.ld, reals);
#pragma GCC unroll 8
      for (int q = 0; q < part_vectors; ++q) {
        const IntT re = magnitude_bits(row.re[q]), im = magnitude_bits(row.im[q]);
        const IntT bits = re > im ? re : im;
        largest[q] = bits > largest[q] ? bits : largest[q];
        store(c + i * strip_reals + q * lanes, __builtin_convertvector(row.re[q], V));
        store(c + i * strip_reals + strip + q * lanes, __builtin_convertvector(row.im[q], V));
      }
    }
    for (index_t e = s_.m * strip_reals; e < rows_ * strip_reals; e += lanes) store(c + e, V{});
    IntT most{};
    V down[part_vectors][2];
#pragma GCC unroll 8
    for (int q = 0; q < part_vectors; ++q) {
      most = largest[q] > most ? largest[q] : most;
      const Int e = __builtin_convertvector(exponent_of(largest[q]), Int);
      V up[2];
      split_power(-e, down[q]);
      split_power(e, up);
      for (int f = 0; f < 2; ++f) store(up_ + (2 * s + f) * strip + q * lanes, up[f]);
    }
    for (index_t i = 0; i < s_.m; ++i) {
      C* const row = c + i * strip_reals;
#pragma GCC unroll 16
      for (int q = 0; q < vectors; ++q) {
        const V* const factors = down[q % part_vectors];
        store(row + q * lanes, load(row + q * lanes) * factors[0] * factors[1]);
      }
    }
    typename Format<T>::Int greatest = 0;
    for (int l = 0; l < lanes; ++l) greatest = most[l] > greatest ? most[l] : greatest;
    return greatest;
  }

  /// Row i of R D^-1 in strip s, each part rounded once, where adding 0 turns -0 into +0.
  Row upper_row(index_t i, index_t s, C sign, const C* c) {
    const bool is_own = s < panels_ && i >= s * strip;
    const C* const from = is_own ? top_ + i * strip_reals : c + i * strip_reals;
    const C* const up = up_ + 2 * s * strip;
    Row row;
    for (int q = 0; q < part_vectors; ++q) {
      const V factor = load(up + q * lanes), second = load(up + strip + q * lanes);
      const auto scale = [&](V x) {
        return __builtin_convertvector(x * sign * factor * second, VT) + VT{};
      };
      row.re[q] = scale(load(from + q * lanes));
      row.im[q] = scale(load(from + strip + q * lanes));
      note_size(row.re[q]);
      note_size(row.im[q]);
    }
    return row;
  }
  void note_size(VT x) {
    const IntT bits = magnitude_bits(x);
    largest_r_ = bits > largest_r_ ? bits : largest_r_;
  }

  [[gnu::noinline]] void store_r(const Strided<T>& r, index_t s, const C* c) {
    const index_t reals = reals_of(s_.n, s), upper = lesser(s_.k, (s + 1) * strip);
    T* const to = r.data + s * strip_reals;
    for (index_t i = 0; i < upper; ++i) {
      prefetch<1>(to + i * r.ld, r.ld);
      upper_row(i, s, sign_[i], c).write(to + i * r.ld, reals);
    }
    for (index_t i = upper; i < s_.r_rows; ++i)
      __builtin_memset(to + i * r.ld, 0, static_cast<std::size_t>(reals) * sizeof(T));
  }

  [[gnu::noinline]] void store_q(const Strided<T>& out, index_t s) const {
    const index_t reals = reals_of(s_.q_cols, s);
    for (index_t i = 0; i < s_.m; ++i) {
      const C* const from = own_ + i * strip_reals;
      prefetch<1>(out.data + i * out.ld + s * strip_reals, out.ld);
      Row row;
#pragma GCC unroll 8
      for (int q = 0; q < part_vectors; ++q) {
        const V sign = s < panels_ ? load(sign_ + s * strip + q * lanes) : V{} + 1;
        row.re[q] = __builtin_convertvector(load(from + q * lanes) * sign, VT);
        row.im[q] = __builtin_convertvector(load(from + strip + q * lanes) * sign, VT);
      }
      row.write(out.data + i * out.ld + s * strip_reals, reals);
    }
  }

  /// Stores V\R and tau of strip s. Where V was rounded, tau is computed from the rounded V, so
  /// that I - tau v v^H is unitary to the last bit of T.
  [[gnu::noinline]] void store_reflectors(const Matrix<T>& matrix, index_t s, const C* c) {
    const index_t columns = lesser(strip, s_.n - s * strip), first = s * strip;
    C squares[strip];
    for (C& square : squares) square = 1;
    for (index_t i = 0; i < s_.m; ++i) {
      T row[strip_reals] = {};
      if (i < lesser(s_.k, first + strip)) upper_row(i, s, 1, c).write(row, strip_reals);
      for (index_t j = 0; j < lesser(columns, i - first); ++j)
        for (index_t part = 0; part < 2; ++part) {
          const T x = row[2 * j + part] = static_cast<T>(c[i * strip_reals + part * strip + j]);
          squares[j] += static_cast<C>(x) * static_cast<C>(x);
        }
      __builtin_memcpy(matrix.v.data + i * matrix.v.ld + first * 2, row,
                       static_cast<std::size_t>(2 * columns) * sizeof(T));
    }
    for (index_t j = 0; j < lesser(columns, s_.k - first); ++j) {
      const Complex<C>& found = t_[s].entry[j][j];
      const Complex<C> tau = sizeof(T) < sizeof(C) ? tau_for(found, squares[j]) : found;
      matrix.tau.data[2 * (first + j)] = static_cast<T>(tau.re);
      matrix.tau.data[2 * (first + j) + 1] = static_cast<T>(tau.im);
    }
  }

  const Shape s_;
  const index_t rows_;             // m with the padding
  const index_t strips_, panels_;  // all strips of A, and the strips with reflectors
  std::size_t bytes_ = 0;          // of the workspace
  C* strip_;                       // V below R, rows_ x 32 for every panel
  C* own_;                         // a strip without reflectors, or of Q
  C* columns_;                     // the strip that is factored, by columns
  C* top_;                         // R in the own rows of every panel
  Square* t_;                      // T of every panel
  C* up_;                          // 2^e_j as two factors, 2 x 16 for every strip
  C* sign_;                        // of R_ii
  IntT largest_r_{};
  Outcome* outcome_;
};

}  // namespace
}  // namespace qrtool::blocked
