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

#include "core/cpu/batched/columns.hpp"

namespace qrtool::batched {
namespace {

template <class T, class C>
class GramPack : public Columns<T, C> {
  using Base = Columns<T, C>;
  using Base::broadcast, Base::largest_, Base::magnitude_bits, Base::n_, Base::panels_of,
      Base::row_of, Base::square_roots, Base::top_, Base::up_;
  using typename Base::Int, typename Base::InMemory, typename Base::V, typename Base::VT;

 public:
  using typename Base::Workspace;

  /// Others gain nothing, or too little for the time of a look at 32 rows where none is accepted.
  static bool fits(index_t m, index_t n) { return n >= 16 && m >= 96 && m >= 2 * n; }

  GramPack(index_t m, index_t n, Workspace& workspace) : Base(n, n, n, 0, workspace), rows_(m) {
    data_ = workspace.take(panels_of(n) * panel_rows());
    x_ = workspace.take(panels_of(n) * width * width);
    down_ = workspace.take(panels_of(n) * width);
    squares_ = workspace.take(panels_of(n) * width);
    inverse_ = workspace.take(panels_of(n) * width);
  }

  /// Forms R. Returns the lanes in which the guard accepts it.
  Int factor(const Strided<const T>& a, index_t count) {
    this->clear();
    for (index_t j = n_; j % width != 0; ++j)
      for (index_t i = 0; i < rows_; ++i) data_of(j / width, i)[j % width] = V{};
    Int accepted{};
    for (index_t first = 0; first < rows_; first += run) {
      const index_t rows = rows_ - first < run ? rows_ - first : run;
      load_rows(a, count, first, rows);
      multiply_rows(first, rows, {0, looked_at});
      if (first == 0) {
        accepted = look();
        if (!any(accepted)) return accepted;
      }
      multiply_rows(first, rows, {looked_at, panels_of(n_)});
    }
    this->find_scale();
    choose_scales(accepted);
    for (index_t p = 0; p < panels_of(n_); ++p) factor_panel(p);
    const V most = broadcast(most_condition * static_cast<C>(n_));
    accepted &= diagonal_condition(n_) <= most;
    if (any(accepted)) accepted &= squared_condition() <= most;
    return accepted;
  }

 private:
  /// Rows in a plain sum.
  static constexpr index_t run = 32;
  static constexpr C most_condition = 16;
  static constexpr int most_exponent = sizeof(C) == 4 ? 30 : 200;

  /// The panels by which the first rows are judged.
  static constexpr index_t looked_at = 4;
  index_t panel_rows() const { return (rows_ + 1) * width; }
  V* data_of(index_t p, index_t i) const { return data_ + p * panel_rows() + i * width; }
  index_t columns_of(index_t p) const {
    return n_ - p * width < width ? n_ - p * width : index_t{width};
  }
  V* tile_of(index_t left, index_t right) const {
    return left == right ? top_ + left * width * width : row_of(right, left * width);
  }

  [[gnu::noinline]] void load_rows(const Strided<const T>& a, index_t count, index_t first,
                                   index_t rows) {
    const index_t panel = panel_rows();
    InMemory::template read<false>({a.data + first * a.ld, a.ld, a.stride}, count, rows, n_,
                                   [&]<int N>(const VT* x, index_t i, index_t j) {
                                     V* to = data_of(j / width, first + i) + j % width;
                                     auto* largest = largest_ + j;
#pragma GCC unroll 16
                                     for (int e = 0; e < N; ++e) {
                                       const auto bits = magnitude_bits(x[e]);
                                       largest[e] = bits > largest[e] ? bits : largest[e];
                                       to[e / width * panel + e % width] =
                                           __builtin_convertvector(x[e], V);
                                     }
                                   });
  }

  struct Range {
    index_t begin, end;
  };
  /// Adds to some panels of A'A. Squares of four panels by four stay in the first-level cache.
  void multiply_rows(index_t first, index_t rows, const Range& panels) {
    constexpr index_t square = 4;
    for (index_t right = panels.begin; right < panels.end; right += square)
      for (index_t left = 0; left <= right; left += square)
        for (index_t r = right; r < right + square && r < panels.end; ++r)
          for (index_t l = left; l < left + square && l <= r; ++l)
            for (index_t q = 0; q < width; q += block) multiply_tile(first, rows, l, r, q);
  }

  [[gnu::noinline]] void multiply_tile(index_t first, index_t rows, index_t left, index_t right,
                                       index_t q) {
    V sums[width][block] = {};
    PanelProducts<C>::template add<1>(data_of(left, first), data_of(right, first) + q, rows, sums);
    V* to = tile_of(left, right) + q;
    for (index_t o = 0; o < columns_of(left); ++o)
#pragma GCC unroll 4
      for (int e = 0; e < block; ++e)
        to[o * width + e] = first == 0 ? sums[o][e] : to[o * width + e] + sums[o][e];
  }

  /// The lanes that the guard might accept, by A'A of the first rows and 16 columns, before all
  /// others are multiplied. Where columns have a common mean, it accepts none.
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

  /// Forms one panel of columns of the Cholesky factor.
  void factor_panel(index_t right) {
    for (index_t left = 0; left <= right; ++left) {
      V tile[width][width];
      reduce_tile(left, right, tile);
      left == right ? factor_tile(left, tile) : solve_tile(left, tile);
      V* to = tile_of(left, right);
      for (index_t o = 0; o < columns_of(left); ++o)
#pragma GCC unroll 4
        for (int e = 0; e < width; ++e) to[o * width + e] = tile[o][e];
    }
  }

  /// tile := G less the products of the rows of R above.
  [[gnu::noinline]] void reduce_tile(index_t left, index_t right, V (&tile)[width][width]) {
    const V* from = tile_of(left, right);
    for (index_t q = 0; q < width; q += block) {
      V sums[width][block];
      for (index_t o = 0; o < width; ++o)
#pragma GCC unroll 4
        for (int e = 0; e < block; ++e)
          sums[o][e] = o < columns_of(left) ? from[o * width + q + e] * down_[left * width + o] *
                                                  down_[right * width + q + e]
                                            : V{};
      for (index_t e = 0; left == right && e < block; ++e)
        squares_[right * width + q + e] = sums[q + e][e];
      PanelProducts<C>::template add<-1>(row_of(left, 0), row_of(right, 0) + q, left * width, sums);
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o)
#pragma GCC unroll 4
        for (int e = 0; e < block; ++e) tile[o][q + e] = sums[o][e];
    }
  }

  /// tile := U^-T tile, where U is the diagonal tile of R.
  void solve_tile(index_t left, V (&tile)[width][width]) const {
    const V* top = tile_of(left, left);
#pragma GCC unroll 4
    for (int o = 0; o < width; ++o)
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q) {
#pragma GCC unroll 4
        for (int e = 0; e < o; ++e) tile[o][q] -= top[e * width + o] * tile[e][q];
        tile[o][q] *= inverse_[left * width + o];
      }
  }
  /// tile := U with U'U = tile.
  void factor_tile(index_t p, V (&tile)[width][width]) const {
    for (index_t o = 0; o < columns_of(p); ++o) {
      const V inverse = inverse_[p * width + o] = 1 / square_roots(tile[o][o]);
      for (int q = 0; q < width; ++q) tile[o][q] *= inverse;
      for (int e = static_cast<int>(o) + 1; e < width; ++e)
        for (int q = e; q < width; ++q) tile[e][q] -= tile[o][e] * tile[o][q];
    }
  }

  /// The sum of N_j^2 / R_jj^2, a part of ||N R^-1||^2. NaN where a pivot is not positive.
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

  const index_t rows_;
  V* data_;     // A, in panels of rows_ + 1 rows
  V* x_;        // a panel of R^-1
  V* down_;     // 2^-e_j
  V* squares_;  // of the norms of the columns
  V* inverse_;  // of the diagonal of R
};

}  // namespace
}  // namespace qrtool::batched
