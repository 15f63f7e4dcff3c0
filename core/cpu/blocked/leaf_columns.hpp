// SPDX-License-Identifier: Apache-2.0
// leaf_columns.hpp: the rows of a leaf below its first 16, stored by columns while they are
// factored. Private to core/cpu, compiled once for every instruction set (simd.hpp).
//
// A vector holds neighbouring rows of one column, and the vectors of the 16 columns follow each
// other. Columns left of a reflector then take no arithmetic but for T, where rows of 16 columns
// would take it all the same, and no entry is broadcast.
#pragma once

#include "core/simd/products.hpp"
#include "core/simd/transpose.hpp"

namespace qrtool::blocked {
namespace {

template <class C>
class LeafColumns : Lanes<C, C> {
  using Base = Lanes<C, C>;
  using Base::lanes;
  using typename Base::V;

 public:
  /// Returns the number of entries of C that `rows` rows need.
  static constexpr index_t entries(index_t rows) { return round_up(rows, lanes) * leaf; }

  LeafColumns(C* x, index_t rows) : x_(x), rows_(rows) {}

  /// Copies 16 columns of a strip. Rows beyond the last are zero.
  [[gnu::noinline]] void read(const C* strip) {
    for (index_t i = 0; i < rows_; i += lanes) {
      const index_t count = lesser(lanes, rows_ - i);
#pragma GCC unroll 1
      for (int q = 0; q < vectors; ++q) {
        V x[lanes];
#pragma GCC unroll 16
        for (int r = 0; r < lanes; ++r)
          x[r] = r < count ? load(strip + (i + r) * width + q * lanes) : V{};
        transpose(x);
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) store(x_ + i * leaf + (q * lanes + l) * lanes, x[l]);
      }
    }
  }

  [[gnu::noinline]] void write(C* strip) const {
    for (index_t i = 0; i < rows_; i += lanes) {
      const index_t count = lesser(lanes, rows_ - i);
#pragma GCC unroll 1
      for (int q = 0; q < vectors; ++q) {
        V x[lanes];
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) x[l] = load(x_ + i * leaf + (q * lanes + l) * lanes);
        transpose(x);
#pragma GCC unroll 16
        for (int r = 0; r < lanes; ++r)
          if (r < count) store(strip + (i + r) * width + q * lanes, x[r]);
      }
    }
  }

  C largest(index_t c) const {
    C most = 0;
    for (index_t i = 0; i < rows_; ++i) {
      const C entry = x_[place(i, c)], size = entry < 0 ? -entry : entry;
      most = size > most ? size : most;
    }
    return most;
  }

  void multiply(index_t c, C factor) {
    for (index_t i = 0; i < rows_; ++i) x_[place(i, c)] *= factor;
  }

  /// dots += a_c'a_l for all columns a_l.
  void add_products(index_t c, V* dots) const {
    sum_rows_of(dots, [&](const C* rows, V* part) {
      const V x = load(rows + c * lanes);
#pragma GCC unroll 16
      for (int l = 0; l < leaf; ++l) part[l] += x * load(rows + l * lanes);
    });
  }

  /// Column c := v = x inverse, and a_l += x w_l right of it. If there is a next reflector, dots +=
  /// a_c+1'a_l for all columns a_l.
  void sweep(index_t c, bool has_next, C inverse, const C* w, V* dots) {
    sweep_any(c, has_next, inverse, w, dots, std::make_integer_sequence<int, leaf>());
  }

 private:
  static constexpr int vectors = leaf / lanes;
  /// The vectors of rows in a plain sum (products.hpp).
  static constexpr index_t sum_vectors = 32;

  static V load(const C* x) { return Products<C>::load(x); }
  static void store(C* x, V value) { Products<C>::store(x, value); }
  static index_t place(index_t i, index_t c) {
    return i / lanes * lanes * leaf + c * lanes + i % lanes;
  }

  /// Calls step(a vector of rows, sums of the columns) for all of them, and adds the sums to
  /// `dots`.
  template <class Step>
  [[gnu::always_inline]] void sum_rows_of(V* dots, Step step) const {
    V total[leaf] = {};
    C *rows = x_, *const all = x_ + entries(rows_);
    while (rows < all) {
      C* const left = rows + sum_vectors * lanes * leaf;
      C* const end = left < all ? left : all;
      V part[leaf] = {};
      for (; rows < end; rows += lanes * leaf) step(rows, part);
#pragma GCC unroll 16
      for (int l = 0; l < leaf; ++l) total[l] += part[l];
    }
#pragma GCC unroll 16
    for (int q = 0; q < vectors; ++q) {
      sum_lanes<lanes>(total + q * lanes);
      dots[q] += total[q * lanes];
    }
  }

  template <int... c>
  void sweep_any(index_t which, bool has_next, C inverse, const C* w, V* dots,
                 std::integer_sequence<int, c...>) {
    const auto call = [&]<int at>() {
      if (has_next && at + 1 < leaf) {
        sweep_with_next<at>(inverse, w, dots);
      } else {
        last_sweep<at>(inverse, w);
      }
    };
    ((which == c ? call.template operator()<c>() : void()), ...);
  }

  template <int c>
  [[gnu::noinline]] void sweep_with_next(C inverse, const C* w, V* dots) {
    sum_rows_of(dots, [&](C* rows, V* part) {
      const V x = load(rows + c * lanes), v = x * inverse;
      const V y = load(rows + (c + 1) * lanes) + x * w[c + 1];
      store(rows + c * lanes, v);
      store(rows + (c + 1) * lanes, y);
#pragma GCC unroll 16
      for (int l = 0; l < c; ++l) part[l] += y * load(rows + l * lanes);
      part[c] += y * v;
      part[c + 1] += y * y;
#pragma GCC unroll 16
      for (int l = c + 2; l < leaf; ++l) {
        const V z = load(rows + l * lanes) + x * w[l];
        store(rows + l * lanes, z);
        part[l] += y * z;
      }
    });
  }

  template <int c>
  [[gnu::noinline]] void last_sweep(C inverse, const C* w) {
    for (C* rows = x_; rows < x_ + entries(rows_); rows += lanes * leaf) {
      const V x = load(rows + c * lanes);
      store(rows + c * lanes, x * inverse);
#pragma GCC unroll 16
      for (int l = c + 1; l < leaf; ++l) store(rows + l * lanes, load(rows + l * lanes) + x * w[l]);
    }
  }

  C* x_;
  index_t rows_;
};

}  // namespace
}  // namespace qrtool::blocked
