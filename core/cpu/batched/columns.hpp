// SPDX-License-Identifier: Apache-2.0
// columns.hpp: loads as many matrices as a SIMD vector has lanes into panels of four columns, and
// factors them. A complex m x n matrix is a real one of m x 2n, whose rows are re, im, re, im, ..
// Method: core/cpu/batched/pack_kernel.cpp. Private to core/cpu, compiled once for every
// instruction set (simd.hpp).
#pragma once

#include <cstddef>

#include "core/cpu/batched/pack_kernel.hpp"
#include "core/cpu/batched/panel.hpp"
#include "core/cpu/batched/tiles.hpp"

namespace qrtool::batched {
namespace {

/// Holds the columns of one matrix in each lane. They are stored in T and computed in C. Entries of
/// one part are real, and those of two are complex.
template <class T, class C, int parts = 1>
class Columns : protected Lanes<T, C> {
  using Base = Lanes<T, C>;

 public:
  using typename Base::Int, typename Base::V;

  /// Returns R in column j of the real matrix. R of a panel's own rows is stored apart: V has its
  /// ones and zeros there.
  V& r_at(index_t i, index_t j) const {
    return i / width == j / row_vectors ? top_[i * row_vectors + j % row_vectors] : at(i, j);
  }
  /// Returns row i of R in panel p, in the panel that holds its diagonal or right of it.
  V* upper_row(index_t i, index_t p) const {
    return p == i / width ? top_ + i * row_vectors : row_of(p, i);
  }
  /// 2^e_j for the columns from j on, each as two factors.
  const V* scales(index_t j) const { return up_ + 2 * j; }

 protected:
  using Base::exponent_of, Base::infinity_bits, Base::magnitude_bits, Base::split_power;
  using typename Base::IntT, typename Base::VT;
  using InMemory = Tiles<T, Base::lanes>;
  using E = Entry<V, parts>;

  /// The number of vectors in a row of a panel.
  static constexpr int row_vectors = parts * width;

  /// Hands out parts of a workspace; without one it counts the vectors that are needed.
  class Workspace {
   public:
    explicit Workspace(std::byte* first) : first_(reinterpret_cast<V*>(first)) {}
    V* take(index_t vectors) {
      V* part = first_ == nullptr ? nullptr : first_ + vectors_;
      vectors_ += static_cast<std::size_t>(vectors);
      return part;
    }
    std::size_t bytes() const { return vectors_ * sizeof(V); }

   private:
    V* first_;
    std::size_t vectors_ = 0;
  };

  /// m x n matrices, of which the first k columns get reflectors. There is room for `room` columns.
  Columns(index_t m, index_t n, index_t k, index_t room, Workspace& workspace)
      : m_(m), n_(n), k_(k) {
    const index_t columns = n > room ? n : room;
    const index_t panels = panels_of(k);
    a_ = workspace.take(panels_of(columns) * panel_vectors());
    top_ = workspace.take(panels * width * row_vectors);
    t_ = reinterpret_cast<E*>(workspace.take(panels * width * row_vectors));
    up_ = workspace.take(2 * n);
    largest_ = reinterpret_cast<IntT*>(workspace.take(n));
  }

  static V broadcast(C x) { return V{} + x; }
  static IntT greater(IntT x, IntT y) { return x > y ? x : y; }

  static index_t panels_of(index_t columns) { return (columns + width - 1) / width; }

  /// Returns row i of panel p.
  V* row_of(index_t p, index_t i) const { return a_ + p * panel_vectors() + i * row_vectors; }
  /// A row more than a panel has: panels a power of two apart would share few places of the
  /// first-level cache, and rows that are loaded reach all panels in turn.
  index_t panel_vectors() const { return (m_ + 1) * row_vectors; }
  /// Returns an entry of column j of the real matrix.
  V& at(index_t i, index_t j) const { return row_of(j / row_vectors, i)[j % row_vectors]; }

  // ---- between memory and the pack

  /// Before entries are loaded. Columns beyond n in the last panel are zero.
  void clear() {
    for (index_t j = 0; j < n_; ++j) largest_[j] = IntT{};
    for (index_t j = parts * n_; j % row_vectors != 0; ++j)
      for (index_t i = 0; i < m_; ++i) at(i, j) = V{};
  }

  /// Loads the columns [0, cols) and finds the largest part of each. Lanes without a matrix get the
  /// first one.
  [[gnu::noinline]] void load(const Strided<const T>& in, index_t count, index_t cols) {
    const index_t panel = panel_vectors();
    InMemory::template read<false>(
        in, count, m_, parts * cols, [&]<int N>(const VT* x, index_t i, index_t j) {
          V* to = &at(i, j);
#pragma GCC unroll 16
          for (int e = 0; e < N; ++e) {
            raise_largest(j / parts + e / parts, x[e]);
            to[e / row_vectors * panel + e % row_vectors] = __builtin_convertvector(x[e], V);
          }
        });
  }

  /// Lets the largest part of column j be at least |x|.
  [[gnu::always_inline]] void raise_largest(index_t j, VT x) {
    largest_[j] = greater(magnitude_bits(x), largest_[j]);
  }

  /// Copies the scales of another pack of the same matrices.
  void copy_scale(const Columns& from) {
    is_finite_ = from.is_finite_;
    scale_ = from.scale_;
  }
  /// Finds the scales. Call it after all columns are loaded.
  void find_scale() {
    IntT most{};
    for (index_t j = 0; j < n_; ++j) most = largest_[j] > most ? largest_[j] : most;
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
      if (j < n_) e = __builtin_convertvector(exponent_of(largest_[j]), Int) & keep;
      split_power(-e, down[q]);
      if (j < n_) split_power(e, up_ + 2 * j);
    }
    V* rows = row_of(p, 0);
    for (index_t i = 0; i < m_; ++i) {
#pragma GCC unroll 8
      for (int q = 0; q < row_vectors; ++q) {
        V& x = rows[i * row_vectors + q];
        x = x * down[q / parts][0] * down[q / parts][1];
      }
    }
    if (!any(~is_finite_)) return;
    for (index_t e = 0; e < m_ * row_vectors; ++e)
      rows[e] = reinterpret_cast<V>(reinterpret_cast<Int>(rows[e]) & keep);
  }

  // ---- arithmetic

  void factor_columns() {
    const index_t panels = panels_of(k_);
    for (index_t b = 0; b < panels_of(n_); ++b) {
      scale_panel(b);
      for (index_t p = 0; p < (b < panels ? b : panels); ++p) apply_panel<true>(p, b, p * width);
      if (b < panels)
        panel(b).factor(k_ - b * width, entries(top_ + b * width * row_vectors),
                        t_ + b * width * width);
    }
  }

  static E* entries(V* x) { return reinterpret_cast<E*>(x); }
  /// Returns panel p from the row of its diagonal on.
  Panel<C, parts> panel(index_t p) const { return {entries(row_of(p, p * width)), m_ - p * width}; }

  /// C := (I - V T V^H) C, or with T^H, where V is panel p and C is panel b from row 4 p on. C is
  /// zero above row `first`.
  template <bool is_adjoint>
  void apply_panel(index_t p, index_t b, index_t first) {
    const index_t j = p * width;
    for (index_t q = 0; q < width; q += Panel<C, parts>::block)
      panel(p).template apply<is_adjoint>(t_ + j * width, first - j, entries(row_of(b, j)) + q);
  }

  const index_t m_, n_, k_;
  V* a_;           // A, then V\R, in panels of m rows of `row_vectors` vectors
  V* top_;         // the part of R in the first rows of every panel
  E* t_;           // width x width for every panel
  V* up_;          // 2^e_j as two factors
  IntT* largest_;  // the largest part of each column, as bits
  IntT is_finite_, scale_;
};

}  // namespace
}  // namespace qrtool::batched
