// SPDX-License-Identifier: Apache-2.0
// products.hpp: computes C := (I - V T V') C for strips of 32 columns, in tiles of registers.
// Private to core, compiled once for every instruction set (simd.hpp).
//
//     W := V'C      tiles of 8 reflectors x 2 vectors of columns, summed over 32 rows at a time
//     W := T W
//     C -= V W      tiles of 8 rows x 2 vectors of columns
//
// A vector of C is loaded once per 8 reflectors; V is read as broadcast scalars, never packed.
#pragma once

#include "core/simd/simd.hpp"

namespace qrtool::blocked {
namespace {

/// A strip has `width` columns, and a leaf of its panel has `leaf` columns.
constexpr index_t width = 32, leaf = 16;
/// Rows are padded with zeros to whole tiles.
constexpr index_t tile_rows = 8;
/// The number of rows in a plain sum. Such sums are then added to each other, which gives a much
/// smaller error than one long sum: with 64 rows the error of a constant 130x160 matrix was 1.14
/// times its bar, and with 32 rows it is 0.6 times.
constexpr index_t sum_rows = 32;
/// The number of reflectors in a tile of V'C. With two vectors of columns a tile has 16 sums, or 8
/// on processors with 16 registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int tile_reflectors = 8;
#else
constexpr int tile_reflectors = 4;
#endif

constexpr index_t round_up(index_t x, index_t unit) { return (x + unit - 1) / unit * unit; }
constexpr index_t lesser(index_t x, index_t y) { return x < y ? x : y; }

/// Computes the products of strips in type C. Matrices have rows of 32 entries without gaps.
template <class C>
struct Products : Lanes<C, C> {
  using Base = Lanes<C, C>;
  using StoredV = typename VectorOf<C, Base::lanes>::stored;

 public:
  using Base::lanes;
  using typename Base::V;

  /// The `count` reflectors of a panel. V begins with the panel's first row. Its first 32 rows are
  /// in `top`, with their ones and zeros; the others are in the strip.
  struct Panel {
    const C *top, *rest;
    index_t top_rows, rest_rows, count;
    const C* t;  // T transposed: t[q * width + p] = T(p, q)
  };

  /// The rows in which C may have nonzero entries. V'C skips the other rows.
  struct Rows {
    bool in_top, in_rest;
  };

  static V load(const C* x) { return *reinterpret_cast<const StoredV*>(x); }
  static void store(C* x, V value) { *reinterpret_cast<StoredV*>(x) = value; }

  /// C := (I - V T V') C, or with T', for `vectors` vectors of columns.
  template <bool is_transposed>
  [[gnu::noinline]] static void apply(const Panel& v, Rows filled, C* c, int vectors) {
    alignas(64) C w[width * width], tw[width * width];
    C* rest = c + v.top_rows * width;
    for (index_t i = 0; i < v.count * width; i += lanes) store(w + i, V{});
    if (filled.in_top) add_products(v.top_rows, v.count, v.top, c, vectors, w);
    if (filled.in_rest) add_products(v.rest_rows, v.count, v.rest, rest, vectors, w);
    multiply_by_t<is_transposed>(v.t, v.count, w, vectors, tw);
    subtract_products(v.top_rows, v.count, v.top, tw, vectors, c);
    subtract_products(v.rest_rows, v.count, v.rest, tw, vectors, rest);
  }

  /// sum += a tile of X Y for the columns [first, end) of X. Entry (r, p) of X is x[r * down + p *
  /// across], and Y has rows of 32 entries.
  template <int Rows, int N>
  [[gnu::always_inline]] static void sum_tile(index_t first, index_t end, const C* x, index_t down,
                                              index_t across, const C* y, V (&sum)[Rows][N]) {
#pragma GCC unroll 4
    for (index_t p = first; p < end; ++p) {
      V row[N];
#pragma GCC unroll 2
      for (int c = 0; c < N; ++c) row[c] = load(y + p * width + c * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
        for (int c = 0; c < N; ++c) sum[r][c] += x[r * down + p * across] * row[c];
    }
  }

  /// W += V'C.
  static void add_products(index_t rows, index_t reflectors, const C* v, const C* c, int vectors,
                           C* w) {
    for (index_t i = 0; i < rows; i += sum_rows) {
      const index_t part = lesser(sum_rows, rows - i);
      for_tiles(vectors, [&]<int N>(int q) {
        for (index_t p = 0; p < reflectors; p += tile_reflectors) {
          const index_t tile = q / (N * lanes) * (width / tile_reflectors) + p / tile_reflectors;
          prefetch_part<N>(tile, v + (i + sum_rows) * width);
          add_tile<N>(part, v + i * width + p, c + i * width + q, w + p * width + q);
        }
      });
    }
  }

  /// Y := T W or T'W. T is upper triangular, and `t` is its transpose.
  template <bool is_transposed>
  static void multiply_by_t(const C* t, index_t reflectors, const C* w, int vectors, C* y) {
    constexpr index_t across = is_transposed ? 1 : width, down = is_transposed ? width : 1;
    for_tiles(vectors, [&]<int N>(int q) {
      for (index_t i = 0; i < reflectors; i += tile_reflectors) {
        const index_t first = is_transposed ? 0 : i;
        const index_t end = is_transposed ? i + tile_reflectors : reflectors;
        V sum[tile_reflectors][N] = {};
        sum_tile(first, end, t + i * down, down, across, w + q, sum);
#pragma GCC unroll 8
        for (int r = 0; r < tile_reflectors; ++r)
#pragma GCC unroll 2
          for (int c = 0; c < N; ++c) store(y + (i + r) * width + q + c * lanes, sum[r][c]);
      }
    });
  }

  /// C -= V W. `rows` is a multiple of tile_rows.
  static void subtract_products(index_t rows, index_t reflectors, const C* v, const C* w,
                                int vectors, C* c) {
    for (index_t i = 0; i < rows; i += tile_reflectors) {
      for_tiles(vectors, [&]<int N>(int q) {
        subtract_tile<N>(reflectors, v + i * width, w + q, c + i * width + q);
      });
    }
  }

 private:
  /// Calls body(q, N) for tiles of N = 2 vectors of columns, and of 1 for an odd last vector.
  template <class Body>
  [[gnu::always_inline]] static void for_tiles(int vectors, Body body) {
    int q = 0;
    for (; q + 2 <= vectors; q += 2) body.template operator()<2>(q * lanes);
    if (q < vectors) body.template operator()<1>(q * lanes);
  }

  /// Loads the part of the next 32 rows of V that belongs to one of the tiles of these rows into
  /// the second-level cache. The processor itself stops at the end of a page, which has 16 rows of
  /// float64: V'C of 2048 rows from a farther cache ran at 75 GFLOP/s in place of 87.
  template <int N>
  [[gnu::always_inline]] static void prefetch_part(index_t tile, const C* next) {
    constexpr index_t line = 64 / sizeof(C),
                      tiles = width / (N * lanes) * (width / tile_reflectors);
    constexpr index_t entries = tiles < width ? sum_rows * width / tiles : line;
    const auto at = reinterpret_cast<std::uintptr_t>(next + tile * entries);
#pragma GCC unroll 16
    for (index_t e = 0; e < entries; e += line)
      __builtin_prefetch(
          reinterpret_cast<const void*>(at + static_cast<std::uintptr_t>(e) * sizeof(C)), 0, 2);
  }

  template <int N>
  [[gnu::always_inline]] static void add_tile(index_t rows, const C* v, const C* c, C* w) {
    V sum[tile_reflectors][N] = {};
    sum_tile(0, rows, v, 1, width, c, sum);
#pragma GCC unroll 8
    for (int p = 0; p < tile_reflectors; ++p)
#pragma GCC unroll 2
      for (int q = 0; q < N; ++q) {
        C* at = w + p * width + q * lanes;
        store(at, load(at) + sum[p][q]);
      }
  }

  template <int N>
  [[gnu::always_inline]] static void subtract_tile(index_t reflectors, const C* v, const C* w,
                                                   C* c) {
    V x[tile_reflectors][N];
#pragma GCC unroll 8
    for (int i = 0; i < tile_reflectors; ++i)
#pragma GCC unroll 2
      for (int q = 0; q < N; ++q) x[i][q] = load(c + i * width + q * lanes);
#pragma GCC unroll 4
    for (index_t p = 0; p < reflectors; ++p) {
      V y[N];
#pragma GCC unroll 2
      for (int q = 0; q < N; ++q) y[q] = load(w + p * width + q * lanes);
#pragma GCC unroll 8
      for (int i = 0; i < tile_reflectors; ++i)
#pragma GCC unroll 2
        for (int q = 0; q < N; ++q) x[i][q] -= v[i * width + p] * y[q];
    }
#pragma GCC unroll 8
    for (int i = 0; i < tile_reflectors; ++i)
#pragma GCC unroll 2
      for (int q = 0; q < N; ++q) store(c + i * width + q * lanes, x[i][q]);
  }
};

}  // namespace
}  // namespace qrtool::blocked
