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
#include "core/cpu/blocked/strip_rows.hpp"
#include "core/simd/products.hpp"

namespace qrtool::blocked {
namespace {

/// Matrices are stored in T, and computed in C.
template <class T, class C>
class ComplexStrips : StripRows<T, C, 2> {
  using Base = StripRows<T, C, 2>;
  using Base::lanes, Base::load, Base::panels_, Base::part_vectors, Base::row_vectors, Base::rows_,
      Base::s_, Base::sign_, Base::store, Base::strips_of;
  using typename Base::V;
  using Products = blocked::Products<C>;
  using Leaf = ComplexLeaf<C>;
  using Square = typename Leaf::Square;
  static constexpr index_t strip = Leaf::strip;
  static_assert(strip == Base::columns);

 public:
  static std::size_t workspace_bytes(const Shape& shape, int) {
    return ComplexStrips(shape, nullptr).bytes_;
  }

  static void factor(const Shape& shape, const Matrix<T>& matrix, std::byte* workspace,
                     const Team&) {
    ComplexStrips f(shape, workspace);
    if (f.factor_strips(matrix) && shape.q_cols > 0) f.form_q(matrix.q);
  }

  static Outcome outcome(const Shape& shape, std::byte* workspace, int) {
    return ComplexStrips(shape, workspace).found();
  }

 private:
  ComplexStrips(const Shape& shape, std::byte* workspace) : Base(shape, workspace, tile_rows) {
    this->take(strip_, panels_ * rows_ * width);
    this->take(own_, rows_ * width);
    this->take(columns_, Leaf::entries(rows_));
    this->take(top_, panels_ * strip * width);
    this->take(t_, panels_);
    this->take_columns();
  }

  // ---- the order of the strips

  /// Returns false if the matrix is not finite.
  bool factor_strips(const Matrix<T>& matrix) {
    for (index_t s = 0; s < this->strips_; ++s) {
      C* const c = s < panels_ ? strip_ + s * rows_ * width : own_;
      this->load_strip(matrix.a, s, c);
      if (this->largest_[s] >= Base::infinity_bits) return false;
      for (index_t p = 0; p < lesser(s, panels_); ++p) apply_panel<true>(p, rows_ - p * strip, c);
      if (s < panels_) factor_panel(s, c);
      const auto row_of = [&](index_t i) {
        return (s < panels_ && i >= s * strip ? top_ : c) + i * width;
      };
      if (s_.is_raw)
        this->store_reflectors(matrix, s, c, row_of, [&](index_t j) { return t_[s].entry[j][j]; });
      else
        this->store_r(matrix.r, s, row_of);
    }
    return true;
  }

  /// Q = H_0 .. H_k-1 I. A strip of I is zero above its ones, and stays zero above row 16 p when
  /// panel p is applied.
  void form_q(const Strided<T>& out) {
    for (index_t s = strips_of(s_.q_cols) - 1; s >= 0; --s) {
      for (index_t e = 0; e < rows_ * width; e += lanes) store(own_ + e, V{});
      for (index_t i = 0; i < lesser(strip, s_.m - s * strip); ++i)
        own_[(s * strip + i) * width + i] = 1;
      for (index_t p = (s < panels_ ? s : panels_ - 1); p >= 0; --p) {
        const index_t rows = rows_ - p * strip;
        apply_panel<false>(p, p == s ? lesser(rows, strip) : rows, own_);
      }
      this->store_q(out, s, own_);
    }
  }

  void factor_panel(index_t p, C* c) {
    const index_t j = p * strip;
    C* const v = c + j * width;
    Leaf part(columns_, rows_ - j);
    part.read(v);
    Square r;
    part.factor(lesser(strip, s_.n - j), lesser(strip, s_.k - j), r, t_[p]);
    part.write(v);
    C* const top = top_ + j * width;
    for (index_t i = 0; i < strip; ++i) {
      for (index_t q = 0; q < strip; ++q) {
        top[i * width + q] = r.entry[i][q].re;
        top[i * width + strip + q] = r.entry[i][q].im;
      }
      this->choose_sign(j + i, r.entry[i][i].re);
    }
  }

  /// C := (I - V T V^H) C, or with T^H, where V is panel p. C is zero below its first `filled`
  /// rows, counted from row 16 p.
  template <bool is_adjoint>
  [[gnu::noinline]] void apply_panel(index_t p, index_t filled, C* matrix) const {
    const index_t j = p * strip * width;
    const C* const v = strip_ + p * rows_ * width + j;
    C* const c = matrix + j;
    alignas(64) C x[width * width], w[width * width];
    for (index_t e = 0; e < width * width; e += lanes) store(x + e, V{});
    Products::add_products(filled, width, v, c, row_vectors, x);
    fold(x);
    multiply_by_t<is_adjoint>(t_[p], x, w);
    Products::subtract_products(rows_ - p * strip, width, v, w, row_vectors, c);
  }

  /// The first 16 rows of x := [Re W, Im W].
  static void fold(C* x) {
    for (index_t i = 0; i < strip; ++i) {
      C *const r = x + i * width, *const other = x + (strip + i) * width;
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
        const C* const row = x + l * width + q * lanes;
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
        C *const row = y + i * width + q * lanes, *const other = row + strip * width;
        sum[q] = sum[q] * tau;
        store(row, sum[q].re);
        store(row + strip, sum[q].im);
        store(other, -sum[q].im);
        store(other + strip, sum[q].re);
      }
    }
  }

  C* strip_;    // V below R, rows_ x 32 for every panel
  C* own_;      // a strip without reflectors, or of Q
  C* columns_;  // the strip that is factored, by columns
  C* top_;      // R in the own rows of every panel
  Square* t_;   // T of every panel
};

}  // namespace
}  // namespace qrtool::blocked
