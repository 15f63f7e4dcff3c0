// SPDX-License-Identifier: Apache-2.0
// normal.hpp: R' and z of as many systems as a SIMD vector has lanes by A'A, which is formed while
// A and b come into the cache. Private to core/cpu, compiled once for every instruction set
// (simd.hpp).
//
//   R'^T R' = A'^T A', R'^T z = A'^T b'   sums over rows, less those over the rows of R' above
//
// A tile of 4 x 4 entries of R' is computed at a time. Errors: solution_kernel.cpp.
#pragma once

#include "core/cpu/solve/arithmetic.hpp"
#include "core/cpu/solve/system_columns.hpp"

namespace qrtool::systems {
namespace {

using batched::block;

/// Rows in a plain sum of A'A.
constexpr index_t gram_rows = 32;

/// Factors a Gram matrix that lies where R' will be, by Cholesky's method, one tile of 4 x 4
/// entries after another: the tiles above it and to its left are complete.
template <class T>
class GramTiles : SolveArithmetic<T> {
  using Base = SolveArithmetic<T>;
  using Base::square_roots;
  using typename Base::V;
  using Products = batched::PanelProducts<double>;

 public:
  explicit GramTiles(const SystemColumns<T>& columns) : columns_(columns) {}

  /// For columns of panels, of which the first `panels` are those of A. entry(left, right, o, e)
  /// returns entry (o, e) of a tile of the Gram matrix.
  template <class Entry>
  void factor(index_t panels, index_t all, Entry entry) const {
    for (index_t right = 0; right < all; ++right)
      for (index_t left = 0; left <= right && left < panels; ++left) {
        V tile[width][width];
        reduce_tile(left, right, tile, entry);
        left == right ? factor_tile(left, tile) : solve_tile(left, tile);
        V* to = columns_.upper_row(left * width, right);
        for (int o = 0; o < columns_.columns_of(left); ++o)
#pragma GCC unroll 4
          for (int e = 0; e < width; ++e) to[o * width + e] = tile[o][e];
      }
  }

 private:
  /// tile := its entries less R'^T R' of the rows above.
  template <class Entry>
  [[gnu::noinline]] void reduce_tile(index_t left, index_t right, V (&tile)[width][width],
                                     Entry entry) const {
    for (index_t q = 0; q < width; q += block) {
      V sums[width][block];
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o)
#pragma GCC unroll 4
        for (int e = 0; e < block; ++e)
          sums[o][e] = o < columns_.columns_of(left) ? entry(left, right, o, q + e) : V{};
      for (index_t e = 0; left == right && e < block; ++e)
        if (e < columns_.columns_of(right) - q)
          columns_.square(right * width + q + e) = sums[q + e][e];
      Products::template add<-1>(columns_.row_of(left, 0), columns_.row_of(right, 0) + q,
                                 left * width, sums);
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o)
#pragma GCC unroll 4
        for (int e = 0; e < block; ++e) tile[o][q + e] = sums[o][e];
    }
  }

  /// tile := U^-T tile, where U is the diagonal tile of R'.
  void solve_tile(index_t left, V (&tile)[width][width]) const {
    const V* top = columns_.diagonal_row(left * width);
#pragma GCC unroll 4
    for (int o = 0; o < width; ++o)
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q) {
#pragma GCC unroll 4
        for (int e = 0; e < o; ++e) tile[o][q] -= top[e * width + o] * tile[e][q];
        tile[o][q] *= columns_.inverse(left * width + o);
      }
  }
  /// tile := U with U'U = tile, beside its right sides.
  void factor_tile(index_t p, V (&tile)[width][width]) const {
    for (int o = 0; o < columns_.columns_of(p); ++o) {
      const V inverse = columns_.inverse(p * width + o) = 1 / square_roots(tile[o][o]);
      for (int q = o; q < width; ++q) tile[o][q] *= inverse;
      for (int e = o + 1; e < width; ++e)
        for (int q = e; q < width; ++q) tile[e][q] -= tile[o][e] * tile[o][q];
    }
  }

  const SystemColumns<T>& columns_;
};

/// Keeps A and b, which the check reads, beside `columns`, which get R' and z.
template <class T>
class NormalEquations : SolveArithmetic<T> {
  using Base = SolveArithmetic<T>;
  using Base::power;
  using typename Base::V, typename Base::VT;
  using InMemory = typename SystemColumns<T>::InMemory;
  using Products = batched::PanelProducts<double>;

 public:
  NormalEquations(const Shape& shape, SystemColumns<T>& columns,
                  typename SystemColumns<T>::Workspace& workspace)
      : s_(shape), columns_(columns) {
    if (!s_.is_gram) return;
    data_ = workspace.take(columns_.panels_of(s_.n + s_.p) * panel_vectors());
    down_ = workspace.take(columns_.panels_of(s_.n + s_.p) * width);
  }

  /// The size of a panel of A and b. Rows of panels a power of two apart would share few places of
  /// the first-level cache.
  index_t panel_vectors() const { return (s_.m + 1) * width; }
  /// Row i of panel p of A and b.
  V* data_of(index_t p, index_t i) const { return data_ + p * panel_vectors() + i * width; }
  /// 2^-e of column j of A and b.
  V down(index_t j) const { return down_[j]; }

  /// Data and A'A, where R' will be: rows that have just been loaded are multiplied.
  void load(const Pack<T>& pack) {
    const index_t columns = s_.n + s_.p;
    for (index_t j = columns; j % width != 0; ++j)
      for (index_t i = 0; i < s_.m; ++i) data_of(j / width, i)[j % width] = V{};
    for (index_t first = 0; first < s_.m; first += gram_rows) {
      const index_t rows = s_.m - first < gram_rows ? s_.m - first : gram_rows;
      load_rows(pack, first, rows);
      multiply_rows(first, rows);
    }
    columns_.find_scale();
    for (index_t j = 0; j < columns_.panels_of(columns) * width; ++j)
      down_[j] = j < columns ? power(-columns_.exponent(j)) : V{};
  }

  /// Factors A'^T A', which is A^T A scaled, beside its right sides.
  void factor() {
    const GramTiles<T> tiles(columns_);
    tiles.factor(columns_.panels_of(s_.n), columns_.panels_of(s_.n + s_.p),
                 [&](index_t left, index_t right, index_t o, index_t e) {
                   const V* from = columns_.upper_row(left * width, right);
                   return from[o * width + e] * down_[left * width + o] * down_[right * width + e];
                 });
  }

 private:
  [[gnu::noinline]] void load_rows(const Pack<T>& pack, index_t first, index_t rows) {
    const index_t panel = panel_vectors();
    const auto take = [&](VT x, index_t i, index_t j) {
      columns_.raise_largest(j, x);
      data_[j / width * panel + i * width + j % width] = __builtin_convertvector(x, V);
    };
    InMemory::template read<false>({pack.a.data + first * pack.a.ld, pack.a.ld, pack.a.stride},
                                   pack.count, rows, s_.n,
                                   [&]<int N>(const VT* x, index_t i, index_t j) {
#pragma GCC unroll 16
                                     for (int e = 0; e < N; ++e) take(x[e], first + i, j + e);
                                   });
    columns_.read_right_sides(pack, {0, s_.p}, first, rows,
                              [&](VT x, index_t i, index_t j) { take(x, i, s_.n + j); });
  }

  /// Adds the products of some rows to A'^T A', by squares of four panels by four, which stay in
  /// the first-level cache.
  void multiply_rows(index_t first, index_t rows) {
    constexpr index_t square = 4;
    const index_t panels = columns_.panels_of(s_.n), all = columns_.panels_of(s_.n + s_.p);
    const bool is_thin = (s_.n + s_.p) % width == 1 && s_.n % width == 0;
    for (index_t right = 0; right < all; right += square)
      for (index_t left = 0; left <= right; left += square)
        for (index_t r = right; r < right + square && r < all; ++r)
          for (index_t l = left; l < left + square && l <= r && l < panels; ++l) {
            if (is_thin && r == all - 1) {
              multiply_tile<1>(first, rows, l, r);
            } else {
              for (index_t q = 0; q < width; q += block) multiply_tile<block>(first, rows, l, r, q);
            }
          }
  }

  /// Adds the products of some rows to rows 4 left, .. and columns 4 right + q, .. of A^T A.
  template <int C>
  [[gnu::noinline]] void multiply_tile(index_t first, index_t rows, index_t left, index_t right,
                                       index_t q = 0) {
    V sums[width][C] = {};
    if constexpr (C == 1) {
      V odd[width][C] = {};
      const V *x = data_of(left, first), *y = data_of(right, first);
      index_t i = 0;
      for (; i + 2 <= rows; i += 2) {
        Products::template add<1>(x + i * width, y + i * width, 1, sums);
        Products::template add<1>(x + (i + 1) * width, y + (i + 1) * width, 1, odd);
      }
      Products::template add<1>(x + i * width, y + i * width, rows - i, sums);
      for (int o = 0; o < width; ++o) sums[o][0] += odd[o][0];
    } else {
      Products::template add<1>(data_of(left, first), data_of(right, first) + q, rows, sums);
    }
    V* to = columns_.upper_row(left * width, right) + q;
    for (index_t o = 0; o < columns_.columns_of(left); ++o)
#pragma GCC unroll 4
      for (int e = 0; e < C; ++e)
        to[o * width + e] = first == 0 ? sums[o][e] : to[o * width + e] + sums[o][e];
  }

  const Shape& s_;
  SystemColumns<T>& columns_;
  V *data_ = nullptr, *down_ = nullptr;
};

}  // namespace
}  // namespace qrtool::systems
