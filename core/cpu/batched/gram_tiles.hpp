// SPDX-License-Identifier: Apache-2.0
// gram_tiles.hpp: A'A of as many matrices as a SIMD vector has lanes, summed while A comes into the
// cache, and its Cholesky factor R, both in tiles of 4 x 4 entries. Private to core/cpu, compiled
// once for every instruction set (simd.hpp).
//
// R lies where a Place says, a class derived from Columns: columns_of(p) is the number of columns
// of A in panel p, upper_row(i, p) is row i of R in panel p, and row_of(p, i) the same above the
// diagonal; inverse(j) is 1 / R_jj, and square(j) the square of the norm of column j.
#pragma once

#include "core/cpu/batched/columns.hpp"

namespace qrtool::batched {
namespace {

/// Keeps A in panels, and sums A'A in the place of R.
template <class T, class C, class Place>
class GramRows : Lanes<T, C> {
  using Base = Lanes<T, C>;
  using typename Base::V, typename Base::VT;
  using InMemory = Tiles<T, Base::lanes>;

 public:
  /// The number of rows in a plain sum.
  static constexpr index_t run = 32;

  /// For m rows of `columns` columns, which are A and the right sides beside it.
  template <class Workspace>
  GramRows(index_t m, index_t columns, Place& place, Workspace& workspace)
      : m_(m), columns_(columns), place_(place) {
    data_ = workspace.take(Place::panels_of(columns) * panel_vectors());
  }

  /// The size of a panel of A. Rows of panels a power of two apart would share few places of the
  /// first-level cache.
  index_t panel_vectors() const { return (m_ + 1) * width; }
  /// Returns row i of panel p of A.
  V* data_of(index_t p, index_t i) const { return data_ + p * panel_vectors() + i * width; }

  /// Sets the sums to zero. Columns beyond the last are zero.
  void clear() {
    for (index_t j = columns_; j % width != 0; ++j)
      for (index_t i = 0; i < m_; ++i) data_of(j / width, i)[j % width] = V{};
  }

  /// Loads some rows of the first columns, and finds their largest entries.
  [[gnu::noinline, gnu::flatten]] void load(const Strided<const T>& a, index_t count, index_t first,
                                            index_t rows, index_t columns) {
    InMemory::template read<false>(
        {a.data + first * a.ld, a.ld, a.stride}, count, rows, columns,
        [&]<int N>(const VT* x, index_t i, index_t j) { keep<N>(x, first + i, j); });
  }
  /// Takes the entries (i, j), .., (i, j + N - 1).
  template <int N>
  [[gnu::always_inline]] void keep(const VT* x, index_t i, index_t j) {
    const index_t panel = panel_vectors();
    V* to = data_ + j / width * panel + i * width + j % width;
#pragma GCC unroll 16
    for (int e = 0; e < N; ++e) {
      place_.raise_largest(j + e, x[e]);
      to[e / width * panel + e % width] = __builtin_convertvector(x[e], V);
    }
  }

  struct Range {
    index_t begin, end;
  };
  /// Adds the products of some rows to the panels of A'A in the range, the first `panels` of which
  /// belong to A. Squares of four panels by four stay in the first-level cache. Panel `thin` has
  /// one column.
  void multiply(index_t first, index_t rows, Range range, index_t panels, index_t thin = -1) {
    constexpr index_t square = 4;
    for (index_t right = range.begin; right < range.end; right += square)
      for (index_t left = 0; left <= right; left += square)
        for (index_t r = right; r < right + square && r < range.end; ++r)
          for (index_t l = left; l < left + square && l <= r && l < panels; ++l) {
            if (r == thin) {
              multiply_tile<1>(first, rows, l, r);
            } else {
              for (index_t q = 0; q < width; q += block) multiply_tile<block>(first, rows, l, r, q);
            }
          }
  }

 private:
  /// Adds the products of some rows of A to the tile of A'A that begins at row 4 left and column 4
  /// right + q.
  template <int columns>
  [[gnu::noinline]] void multiply_tile(index_t first, index_t rows, index_t left, index_t right,
                                       index_t q = 0) {
    using Products = PanelProducts<C>;
    V sums[width][columns] = {};
    if constexpr (columns == 1) {
      V odd[width][columns] = {};
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
    V* to = place_.upper_row(left * width, right) + q;
    for (index_t o = 0; o < place_.columns_of(left); ++o)
#pragma GCC unroll 4
      for (int e = 0; e < columns; ++e)
        to[o * width + e] = first == 0 ? sums[o][e] : to[o * width + e] + sums[o][e];
  }

  const index_t m_, columns_;
  Place& place_;
  V* data_;
};

/// Factors a Gram matrix by Cholesky's method, one tile after another: the tiles above it and to
/// its left are complete.
template <class C, class Place>
class GramTiles : Lanes<C, C> {
  using Base = Lanes<C, C>;
  using Base::square_roots;
  using typename Base::V;

 public:
  explicit GramTiles(const Place& place) : place_(place) {}

  /// Calls entry(left, right, o, e), which returns entry (o, e) of a tile of the Gram matrix, for
  /// panels of columns, the first `panels` of which belong to A.
  template <class Entry>
  void factor(index_t panels, index_t all, Entry entry) const {
    for (index_t right = 0; right < all; ++right)
      for (index_t left = 0; left <= right && left < panels; ++left) {
        V tile[width][width];
        reduce_tile(left, right, tile, entry);
        left == right ? factor_tile(left, tile) : solve_tile(left, tile);
        V* to = place_.upper_row(left * width, right);
        for (index_t o = 0; o < place_.columns_of(left); ++o)
#pragma GCC unroll 4
          for (int e = 0; e < width; ++e) to[o * width + e] = tile[o][e];
      }
  }

 private:
  /// tile := its entries less the products of the rows of R above.
  template <class Entry>
  [[gnu::noinline]] void reduce_tile(index_t left, index_t right, V (&tile)[width][width],
                                     Entry entry) const {
    for (index_t q = 0; q < width; q += block) {
      V sums[width][block];
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o)
#pragma GCC unroll 4
        for (int e = 0; e < block; ++e)
          sums[o][e] = o < place_.columns_of(left) ? entry(left, right, o, q + e) : V{};
      for (index_t e = 0; left == right && e < block; ++e)
        if (e < place_.columns_of(right) - q) place_.square(right * width + q + e) = sums[q + e][e];
      PanelProducts<C>::template add<-1>(place_.row_of(left, 0), place_.row_of(right, 0) + q,
                                         left * width, sums);
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o)
#pragma GCC unroll 4
        for (int e = 0; e < block; ++e) tile[o][q + e] = sums[o][e];
    }
  }

  /// tile := U^-T tile, where U is the diagonal tile of R.
  void solve_tile(index_t left, V (&tile)[width][width]) const {
    const V* top = place_.upper_row(left * width, left);
#pragma GCC unroll 4
    for (int o = 0; o < width; ++o)
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q) {
#pragma GCC unroll 4
        for (int e = 0; e < o; ++e) tile[o][q] -= top[e * width + o] * tile[e][q];
        tile[o][q] *= place_.inverse(left * width + o);
      }
  }
  /// tile := U with U'U = tile, beside its right sides.
  void factor_tile(index_t p, V (&tile)[width][width]) const {
    for (int o = 0; o < place_.columns_of(p); ++o) {
      const V inverse = place_.inverse(p * width + o) = 1 / square_roots(tile[o][o]);
      for (int q = o; q < width; ++q) tile[o][q] *= inverse;
      for (int e = o + 1; e < width; ++e)
        for (int q = e; q < width; ++q) tile[e][q] -= tile[o][e] * tile[o][q];
    }
  }

  const Place& place_;
};

}  // namespace
}  // namespace qrtool::batched
