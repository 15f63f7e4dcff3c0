// SPDX-License-Identifier: Apache-2.0
// tiles.hpp: moves the entries of as many matrices as a vector has lanes between rows in memory and
// vectors. A tile of `lanes` entries of every matrix is transposed in registers. Private to
// core/cpu, compiled once for every instruction set (simd.hpp).
#pragma once

#include <cstddef>

#include "core/cpu/batched/pack_kernel.hpp"
#include "core/simd/transpose.hpp"

namespace qrtool::batched {
namespace {

/// `lanes` matrices that are stored in T.
template <class T, int lanes>
class Tiles {
  using VT = typename VectorOf<T, lanes>::type;
  using UnalignedVT = typename VectorOf<T, lanes>::unaligned;

 public:
  /// Calls body<N>(x, i, j) for the entries (i, j), .., (i, j + N - 1) of rows x cols matrices;
  /// x[e] holds entry (i, j + e) of `lanes` matrices. N is 1, or it is `lanes` and j is a multiple
  /// of it. Lanes without a matrix get the first one.
  template <bool by_strips = true, class Body>
  static void read(const Strided<const T>& in, index_t count, index_t rows, index_t cols,
                   Body body) {
    for_tiles<by_strips>(in, rows, cols, [&](auto& tile, index_t offset, index_t entries) {
      const T* from = in.data + offset;
      if (entries == lanes) {
        read_tile(from, in.stride, count, entries, tile, body);
      } else {
        T part[lanes * lanes] = {};
        const auto bytes = static_cast<std::size_t>(entries) * sizeof(T);
        for (index_t l = 0; l < count; ++l)
          __builtin_memcpy(part + l * lanes, from + l * in.stride, bytes);
        read_tile(part, lanes, count, entries, tile, body);
      }
    });
  }

  /// Stores x as the entries (i, j), .., (i, j + N - 1) of every matrix after value<N>(i, j, x) has
  /// set it.
  template <class Value>
  static void write(const Strided<T>& out, index_t count, index_t rows, index_t cols, Value value) {
    for_tiles<false>(out, rows, cols, [&](auto& tile, index_t offset, index_t entries) {
      T* to = out.data + offset;
      if (entries == lanes) {
        write_tile(to, out.stride, count, entries, tile, value);
      } else {
        T part[lanes * lanes];
        write_tile(part, lanes, count, entries, tile, value);
        const auto bytes = static_cast<std::size_t>(entries) * sizeof(T);
        for (index_t l = 0; l < count; ++l)
          __builtin_memcpy(to + l * out.stride, part + l * lanes, bytes);
      }
    });
  }

 private:
  /// Goes through a rows x cols matrix in row-major order, a tile of `lanes` entries at a time.
  struct Anywhere {
    index_t i, j, cols;
    /// Calls body<N>(e, i, j) for the entries e, .., e + N - 1 of the tile.
    template <class Body>
    [[gnu::always_inline]] void each(index_t entries, Body body) {
#pragma GCC unroll 16
      for (int e = 0; e < lanes; ++e) {
        if (e >= entries) break;
        body.template operator()<1>(e, i, j);
        if (++j == cols) {
          j = 0;
          ++i;
        }
      }
    }
  };
  /// A walk through a matrix in which a tile never continues in the next row.
  struct WithinRow {
    index_t i, j;
    template <class Body>
    [[gnu::always_inline]] void each(index_t, Body body) const {
      body.template operator()<lanes>(0, i, j);
    }
  };

  /// Calls body(tile, offset in memory, entries) for a rows x cols matrix. A tile continues in the
  /// next row if rows follow each other without a gap. Row by row memory is read in order, at twice
  /// the speed of strip by strip if matrices are not in the caches; the caller's panels must then
  /// not lie a power of two apart.
  template <bool by_strips, class View, class Body>
  static void for_tiles(const View& view, index_t rows, index_t cols, Body body) {
    if (cols % lanes == 0) {
      const auto tile_at = [&](index_t i, index_t j) {
        WithinRow tile{i, j};
        body(tile, i * view.ld + j, index_t{lanes});
      };
      if constexpr (by_strips) {
        for (index_t j = 0; j < cols; j += lanes)
          for (index_t i = 0; i < rows; ++i) tile_at(i, j);
      } else {
        for (index_t i = 0; i < rows; ++i)
          for (index_t j = 0; j < cols; j += lanes) tile_at(i, j);
      }
      return;
    }
    const bool is_packed = view.ld == cols;
    const index_t runs = is_packed ? 1 : rows, run = is_packed ? rows * cols : cols;
    for (index_t i = 0; i < runs; ++i) {
      Anywhere tile{i, 0, cols};
      for (index_t first = 0; first < run; first += lanes)
        body(tile, i * view.ld + first, run - first < lanes ? run - first : index_t{lanes});
    }
  }

  /// Prefetches the cache line that is eight lines ahead in the same matrix, if eight matrices are
  /// read or written a line at a time. It saves 7 to 15 % of the time at 32x32 and 64x64 in
  /// float64, and nothing for the sixteen matrices of float32.
  template <int is_write>
  static void prefetch(const T* row) {
    if constexpr (sizeof(VT) == 64 && lanes == 8) {
      const auto at = reinterpret_cast<std::uintptr_t>(row) + 8 * sizeof(VT);
      __builtin_prefetch(reinterpret_cast<const void*>(at), is_write);
    }
  }

  /// Reads `entries` <= lanes entries of every matrix.
  template <class Tile, class Body>
  [[gnu::always_inline]] static void read_tile(const T* from, index_t stride, index_t count,
                                               index_t entries, Tile& tile, Body& body) {
    VT x[lanes];
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) {
      const T* row = from + (l < count ? l * stride : 0);
      x[l] = *reinterpret_cast<const UnalignedVT*>(row);
      prefetch<0>(row);
    }
    transpose(x);
    tile.each(entries, [&]<int N>(int e, index_t i, index_t j) {
      body.template operator()<N>(x + e, i, j);
    });
  }

  template <class Tile, class Value>
  [[gnu::always_inline]] static void write_tile(T* to, index_t stride, index_t count,
                                                index_t entries, Tile& tile, Value& value) {
    VT x[lanes];
#pragma GCC unroll 16
    for (int e = 0; e < lanes; ++e) x[e] = VT{};
    tile.each(entries, [&]<int N>(int e, index_t i, index_t j) {
      value.template operator()<N>(i, j, x + e);
    });
    transpose(x);
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) {
      if (l >= count) break;
      *reinterpret_cast<UnalignedVT*>(to + l * stride) = x[l];
      prefetch<1>(to + l * stride);
    }
  }
};

}  // namespace
}  // namespace qrtool::batched
