// SPDX-License-Identifier: Apache-2.0
// tile_products.hpp: computes C := (I - V T V') C for a strip of 32 columns in float32 with the
// tile registers of AMX, where the compiler has them. Private to core/cpu, compiled once for every
// instruction set (simd.hpp).
//
// A number x of float32 is h + m + l, three bfloat16 of 8 bits each, up to 2^-26 |x|. A product of
// two such sums is h h' + (h m' + m h') + (h l' + m m' + l h'), up to 2^-24 |x y|, which is what
// float32 rounds away. Six products of tiles take less time than one of vectors of float32. Tiles
// take denormal numbers as zero; columns are scaled, so that this is far below their rounding.
//
//     W := V'C      tiles of 16 reflectors x 16 columns, summed over 32 rows at a time
//     W := T W      in vectors (products.hpp)
//     C -= V W      tiles of 16 rows x 16 columns
//
// A tile of bfloat16 has pairs of terms side by side. Here a pair is terms e and e + 16 of 32, so
// that two vectors are packed into one without a shuffle.
#pragma once

#ifdef __AMX_BF16__
#include <immintrin.h>
#endif

#include "core/simd/products.hpp"
#include "core/simd/transpose.hpp"

namespace qrtool::blocked {
namespace {

/// A stand-in for types that have no tiles.
template <class C>
struct TileProducts {
  static constexpr bool exist = false;
  static constexpr index_t block_rows = tile_rows;
  struct Rows {};
  using Panel = typename Products<C>::Panel;
  static void begin() {}
  static void end() {}
  static void split(const Panel&, Rows*) {}
  template <bool is_transposed>
  static void apply(const Panel&, const Rows*, typename Products<C>::Rows, C*) {}
};

#ifdef __AMX_BF16__

template <>
class TileProducts<float> {
  using Floats = Products<float>;
  using V = Floats::V;
  using Bits = typename VectorOf<std::uint32_t, 16>::type;
  using StoredBits = typename VectorOf<std::uint32_t, 16>::stored;

 public:
  static constexpr bool exist = true;
  /// The rows of V and C are a multiple of it.
  static constexpr index_t block_rows = 32;

  /// Holds the three bfloat16 parts of 32 x 32 numbers. Each part is two tiles: the first and the
  /// last 16 rows.
  struct Block {
    alignas(64) std::uint32_t parts[3][2][16][16];
  };

  /// 32 rows of V, twice: as the left factor of V'C, and as the left factor of V W.
  struct Rows {
    Block transposed, plain;
  };

  /// Gives this thread tiles of 16 rows of 64 bytes.
  static void begin() {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } sizes;
    _tile_loadconfig(&sizes);
  }
  static void end() { _tile_release(); }

  /// Splits V of a panel.
  [[gnu::noinline]] static void split(const Floats::Panel& v, Rows* to) {
    const bool is_full = v.count > leaf;
    for (index_t i = 0; i < v.top_rows + v.rest_rows; i += block_rows, ++to) {
      const float* from = i == 0 ? v.top : v.rest + (i - v.top_rows) * width;
      for (index_t half = 0; half < 2; ++half) {
        for (index_t r = 0; r < leaf; ++r) {
          const float* row = from + (half * leaf + r) * width;
          store_parts(load(row), is_full ? load(row + leaf) : V{}, to->plain, half, r);
        }
        V first[leaf], last[leaf];
#pragma GCC unroll 16
        for (index_t r = 0; r < leaf; ++r)
          first[r] = half == 0 || is_full ? load(from + r * width + half * leaf) : V{};
        transpose(first);
#pragma GCC unroll 16
        for (index_t r = 0; r < leaf; ++r)
          last[r] = half == 0 || is_full ? load(from + (leaf + r) * width + half * leaf) : V{};
        transpose(last);
        for (index_t r = 0; r < leaf; ++r) store_parts(first[r], last[r], to->transposed, half, r);
      }
    }
  }

  /// C := (I - V T V') C, or with T'. `rows` is the result of split() for V.
  template <bool is_transposed>
  [[gnu::noinline]] static void apply(const Floats::Panel& v, const Rows* rows, Floats::Rows filled,
                                      float* c) {
    alignas(64) float w[width * width], tw[width * width];
    for (index_t e = 0; e < width * width; e += leaf) store(w + e, V{});
    for (index_t e = v.count * width; e < width * width; e += leaf) store(tw + e, V{});
    const index_t blocks = (v.top_rows + v.rest_rows) / block_rows;
    form_products(rows, filled.in_top ? 0 : 1, filled.in_rest ? blocks : 1, c, w);
    Floats::multiply_by_t<is_transposed>(v.t, v.count, w, width / leaf, tw);
    Block right;
    for (index_t r = 0; r < width; ++r) split_row<true>(tw, r, right);
    for (index_t b = 0; b < blocks; ++b) {
      const Block& next = rows[b + 1 < blocks ? b + 1 : b].plain;
      add_to(rows[b].plain, next, right, c + b * block_rows * width);
    }
  }

 private:
  static V load(const float* x) { return Floats::load(x); }
  static void store(float* x, V value) { Floats::store(x, value); }

  /// Stores the parts of row r of a half block; `low` goes to the low halves of its words. The
  /// first part is rounded, so that the rest has any sign; the other parts are cut off, which loses
  /// nothing.
  [[gnu::always_inline]] static void store_parts(V low, V high, Block& to, index_t half,
                                                 index_t r) {
#pragma GCC unroll 3
    for (int p = 0; p < 3; ++p) {
      const std::uint32_t round = p == 0 ? 0x8000u : 0u;
      const Bits lower = reinterpret_cast<Bits>(low) + round;
      const Bits upper = (reinterpret_cast<Bits>(high) + round) & 0xffff0000u;
      *reinterpret_cast<StoredBits*>(to.parts[p][half][r]) = lower >> 16 | upper;
      low -= reinterpret_cast<V>(lower & 0xffff0000u);
      high -= reinterpret_cast<V>(upper);
    }
  }

  /// Splits a pair of rows of 32 x 32 numbers, or of their negatives, as the right factor of a
  /// product: rows r and r + 16 of the first 16 columns, then of the last.
  template <bool is_negative>
  [[gnu::always_inline]] static void split_row(const float* from, index_t r, Block& to) {
    const index_t half = r / leaf;
    const float* row = from + r % leaf * width + half * leaf;
    const V low = load(row), high = load(row + leaf * width);
    store_parts(is_negative ? -low : low, is_negative ? -high : high, to, half, r % leaf);
  }

  template <int tile>
  [[gnu::always_inline]] static void load_left(const Block& x) {
    _tile_loadd(4, x.parts[tile][0], 64);
    _tile_loadd(5, x.parts[tile][1], 64);
  }
  template <int tile>
  [[gnu::always_inline]] static void load_right(const Block& x) {
    _tile_loadd(6, x.parts[tile][0], 64);
    _tile_loadd(7, x.parts[tile][1], 64);
  }
  [[gnu::always_inline]] static void multiply() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }

  /// Adds X Y to the first four tiles. between(e), e = 0 .. 5, may compute with vectors meanwhile.
  template <class Between>
  [[gnu::always_inline]] static void multiply_parts(const Block& x, const Block& y,
                                                    Between between) {
    asm volatile("" ::: "memory");  // the blocks are in memory before tiles are loaded from it
    load_left<1>(x);
    load_right<1>(y);
    multiply();
    between(0);
    load_right<0>(y);
    multiply();
    between(1);
    load_left<2>(x);
    multiply();
    between(2);
    load_left<0>(x);
    multiply();
    between(3);
    load_right<1>(y);
    multiply();
    between(4);
    load_right<2>(y);
    multiply();
    between(5);
  }

  /// Loads a sixth of a block into the cache. The processor itself stops at the end of a page.
  [[gnu::always_inline]] static void prefetch_part(const Block& x, int sixth) {
    constexpr int lines = 3 * 2 * 16 / 6;
#pragma GCC unroll 16
    for (int r = 0; r < lines; ++r)
      __builtin_prefetch(reinterpret_cast<const char*>(&x) + (sixth * lines + r) * 64);
  }

  /// W := V'C. While the tiles multiply 32 rows, the next 32 rows of C are split.
  [[gnu::always_inline]] static void form_products(const Rows* v, index_t first, index_t end,
                                                   const float* c, float* w) {
    alignas(64) float sums[width * width];
    Block right[2];
    if (first < end) {
      for (index_t r = 0; r < width; ++r)
        split_row<false>(c + first * block_rows * width, r, right[first & 1]);
    }
    for (index_t b = first; b < end; ++b) {
      const index_t following = b + 1 < end ? b + 1 : b;
      const float* next = c + following * block_rows * width;
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      multiply_parts(v[b].transposed, right[b & 1], [&](int e) {
        prefetch_part(v[following].transposed, e);
        for (index_t r = e * width / 6; r < (e + 1) * width / 6; ++r)
          split_row<false>(next, r, right[~b & 1]);
      });
      store_tiles(sums);
      for (index_t e = 0; e < width * width; e += leaf) store(w + e, load(w + e) + load(sums + e));
    }
  }

  /// C += X Y for 32 rows. The next block of X is loaded into the cache.
  [[gnu::always_inline]] static void add_to(const Block& x, const Block& next, const Block& y,
                                            float* c) {
    constexpr index_t row_bytes = width * sizeof(float);
    asm volatile("" ::: "memory");
    _tile_loadd(0, c, row_bytes);
    _tile_loadd(1, c + leaf, row_bytes);
    _tile_loadd(2, c + leaf * width, row_bytes);
    _tile_loadd(3, c + leaf * width + leaf, row_bytes);
    multiply_parts(x, y, [&](int e) { prefetch_part(next, e); });
    store_tiles(c);
  }

  [[gnu::always_inline]] static void store_tiles(float* c) {
    constexpr index_t row_bytes = width * sizeof(float);
    _tile_stored(0, c, row_bytes);
    _tile_stored(1, c + leaf, row_bytes);
    _tile_stored(2, c + leaf * width, row_bytes);
    _tile_stored(3, c + leaf * width + leaf, row_bytes);
  }
};

#endif

}  // namespace
}  // namespace qrtool::blocked
