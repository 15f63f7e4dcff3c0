// SPDX-License-Identifier: Apache-2.0
// pack_gram.hpp: R alone of a pack of matrices with at least twice as many rows as columns, as the
// Cholesky factors of A'A, where a guard allows it. Private to core/cpu, compiled once for every
// instruction set (simd.hpp).
//
//     G := D A'A D       sums over 32 rows, in tiles of 4 x 4; D scales columns by powers of two
//     R'R = G            a tile after the other: those above it and to its left are complete
//     X := R^-1          for the guard, four columns at a time
//
// The guard and what it promises are those of core/cpu/blocked/matrix_gram.hpp: ||N R^-1||^2 <= 16
// n in the Frobenius norm, where N has the norms of the columns. Its theorem needs |G - R'R|_ij <=
// c e N_i N_j with c <= 2 m. Here c = 36 + m / 32 + n, since sums are in runs of 32 rows, and m is
// at least 96 and n at most m / 2. Columns whose largest entry is not between 2^-30 and 2^30
// (float64: 2^-200 and 2^200) are refused, so that products neither overflow nor underflow where it
// matters. Each lane is judged alone.
#pragma once

#include "core/cpu/batched/gram_tiles.hpp"

namespace qrtool::batched {
namespace {

template <class T, class C>
class GramPack : public Columns<T, C> {
  using Base = Columns<T, C>;
  using Base::broadcast, Base::largest_, Base::n_, Base::up_;
  using typename Base::Int, typename Base::V;

 public:
  using Base::panels_of, Base::raise_largest, Base::row_of, Base::upper_row;
  using typename Base::Workspace;

  /// Whether A'A may be faster. Other shapes gain nothing, or less than it costs to look at 32 rows
  /// of matrices that are refused.
  static bool fits(index_t m, index_t n) { return n >= 16 && m >= 96 && m >= 2 * n; }

  GramPack(index_t m, index_t n, Workspace& workspace)
      : Base(n, n, n, 0, workspace), m_(m), rows_(m, n, *this, workspace) {
    x_ = workspace.take(panels_of(n) * width * width);
    down_ = workspace.take(panels_of(n) * width);
    squares_ = workspace.take(panels_of(n) * width);
    inverse_ = workspace.take(panels_of(n) * width);
  }

  index_t columns_of(index_t p) const {
    return n_ - p * width < width ? n_ - p * width : index_t{width};
  }
  V& square(index_t j) const { return squares_[j]; }
  V& inverse(index_t j) const { return inverse_[j]; }

  /// Forms R. Returns the lanes in which the guard accepts it.
  Int factor(const Strided<const T>& a, index_t count) {
    this->clear();
    rows_.clear();
    const index_t panels = panels_of(n_);
    Int accepted{};
    for (index_t first = 0; first < m_; first += rows_.run) {
      const index_t rows = m_ - first < rows_.run ? m_ - first : rows_.run;
      rows_.load(a, count, first, rows, n_);
      rows_.multiply(first, rows, {0, looked_at}, panels);
      if (first == 0) {
        accepted = look();
        if (!any(accepted)) return accepted;
      }
      rows_.multiply(first, rows, {looked_at, panels}, panels);
    }
    this->find_scale();
    choose_scales(accepted);
    GramTiles<C, GramPack>(*this).factor(
        panels, panels, [&](index_t left, index_t right, index_t o, index_t e) {
          return upper_row(left * width, right)[o * width + e] * down_[left * width + o] *
                 down_[right * width + e];
        });
    const V most = broadcast(most_condition * static_cast<C>(n_));
    accepted &= diagonal_condition(n_) <= most;
    if (any(accepted)) accepted &= squared_condition() <= most;
    return accepted;
  }

 private:
  static constexpr C most_condition = 16;
  static constexpr int most_exponent = sizeof(C) == 4 ? 30 : 200;
  /// The panels by which the first rows are judged.
  static constexpr index_t looked_at = 4;

  V* tile_of(index_t left, index_t right) const { return upper_row(left * width, right); }

  /// Returns the lanes that the guard might accept, by A'A of the first rows and 16 columns, before
  /// all others are multiplied. If columns have a common mean, it accepts none.
  Int look() {
    constexpr index_t n = looked_at * width;
    V sums = {};
    V g[n][n];
    for (index_t i = 0; i < n; ++i)
      for (index_t j = i; j < n; ++j) g[i][j] = this->r_at(i, j);
    for (index_t k = 0; k < n; ++k) squares_[k] = g[k][k];
    for (index_t k = 0; k < n; ++k) {
      const V inverse = 1 / g[k][k];
      sums += squares_[k] > 0 ? squares_[k] * inverse : V{};
      for (index_t i = k + 1; i < n; ++i) {
        const V factor = g[k][i] * inverse;
        for (index_t j = i; j < n; ++j) g[i][j] -= factor * g[k][j];
      }
    }
    return (sums > 0) & (sums <= broadcast(most_condition * static_cast<C>(n)));
  }

  /// Chooses D and D^-1 of every column, and refuses lanes beyond the range of exponents.
  void choose_scales(Int& accepted) {
    accepted &= __builtin_convertvector(this->is_finite_, Int);
    for (index_t j = 0; j < n_; ++j) {
      Int e = __builtin_convertvector(this->exponent_of(largest_[j]), Int);
      accepted &= (e <= most_exponent) & (e >= -most_exponent);
      e = accepted & e;
      down_[j] = this->power_of_two(-e);
      this->split_power(e, up_ + 2 * j);
    }
    for (index_t j = n_; j < panels_of(n_) * width; ++j) down_[j] = V{};
  }

  /// Returns the sum of N_j^2 / R_jj^2, a part of ||N R^-1||^2, or NaN if a pivot is not positive.
  V diagonal_condition(index_t columns) const {
    V sum{};
    for (index_t j = 0; j < columns; ++j) sum += squares_[j] * inverse_[j] * inverse_[j];
    return sum;
  }

  /// Returns ||N R^-1||^2. Tile k of a panel of X = R^-1 is -R_kk^-1 (sum over l > k of R_kl X_l).
  [[gnu::noinline]] V squared_condition() {
    V sum{};
    for (index_t p = 0; p < panels_of(n_); ++p) {
      for (index_t k = p; k >= 0; --k) {
        V tile[width][width] = {};
        for (int o = 0; k == p && o < columns_of(p); ++o) tile[o][o] = broadcast(1);
        for (index_t l = k + 1; l <= p; ++l) subtract_product(k, l, tile);
        solve_upper(k, tile);
        for (int o = 0; o < columns_of(k); ++o) {
          V squares{};
#pragma GCC unroll 4
          for (int q = 0; q < width; ++q) {
            x_[(k * width + o) * width + q] = tile[o][q];
            squares += tile[o][q] * tile[o][q];
          }
          sum += squares * squares_[k * width + o];
        }
      }
    }
    return sum;
  }
  [[gnu::always_inline]] void subtract_product(index_t k, index_t l,
                                               V (&tile)[width][width]) const {
    const V *r = tile_of(k, l), *x = x_ + l * width * width;
    const index_t columns = columns_of(l);
    for (index_t e = 0; e < columns; ++e)
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o)
#pragma GCC unroll 4
        for (int q = 0; q < width; ++q) tile[o][q] -= r[o * width + e] * x[e * width + q];
  }
  void solve_upper(index_t k, V (&tile)[width][width]) const {
    const V* top = tile_of(k, k);
    for (index_t o = columns_of(k) - 1; o >= 0; --o)
      for (int q = 0; q < width; ++q) {
        for (index_t e = o + 1; e < columns_of(k); ++e)
          tile[o][q] -= top[o * width + e] * tile[e][q];
        tile[o][q] *= inverse_[k * width + o];
      }
  }

  const index_t m_;
  GramRows<T, C, GramPack> rows_;
  V* x_;        // a panel of R^-1
  V* down_;     // 2^-e_j
  V* squares_;  // of the norms of the columns
  V* inverse_;  // of the diagonal of R
};

}  // namespace
}  // namespace qrtool::batched
