// SPDX-License-Identifier: Apache-2.0
// gram_kernel.cpp: computes A'A tile by tile, compiled once for every instruction set.
#include "core/cpu/tall/gram_kernel.hpp"

#include "core/simd/simd.hpp"

namespace qrtool::gram {
namespace {

constexpr int lanes = vector_bytes / static_cast<int>(sizeof(double));
using V = VectorOf<double, lanes>::stored;

/// The number of rows of a tile. With two vectors of columns a tile has 16 sums, or 8 on processors
/// with 16 registers.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int tile = 8;
#else
constexpr int tile = 4;
#endif

const V& load(const double* x) { return *reinterpret_cast<const V*>(x); }
void store(double* x, V value) { *reinterpret_cast<V*>(x) = value; }

/// Calls body(column, N) for tiles of N = 2 vectors, beginning with column `first`, and of 1 for an
/// odd last vector.
template <class Body>
[[gnu::always_inline]] inline void for_tiles(index_t first, index_t columns, Body body) {
  for (; first + 2 * lanes <= columns; first += 2 * lanes) body.template operator()<2>(first);
  if (first < columns) body.template operator()<1>(first);
}

/// Adds `sum` to one Kahan sum per lane.
[[gnu::always_inline]] inline void add_sum(const Gram& gram, index_t at, V sum) {
  const V before = load(gram.sum + at);
  const V corrected = sum - load(gram.compensation + at);
  const V next = before + corrected;
  store(gram.compensation + at, (next - before) - corrected);
  store(gram.sum + at, next);
}

/// Adds a tile of X'X: the rows beginning with p, in N vectors of columns.
template <int N>
[[gnu::always_inline]] inline void add_tile(const double* x, index_t rows, index_t ld, index_t p,
                                            index_t column, const Gram& gram) {
  V sum[tile][N] = {};
  for (index_t i = 0; i < rows; ++i) {
    const double* row = x + i * ld;
    V y[N];
#pragma GCC unroll 2
    for (int q = 0; q < N; ++q) y[q] = load(row + column + q * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < tile; ++r)
#pragma GCC unroll 2
      for (int q = 0; q < N; ++q) sum[r][q] += row[p + r] * y[q];
  }
#pragma GCC unroll 8
  for (int r = 0; r < tile; ++r) {
#pragma GCC unroll 2
    for (int q = 0; q < N; ++q) add_sum(gram, (p + r) * ld + column + q * lanes, sum[r][q]);
  }
}

#if defined(__AVX512F__)
/// Adds the entries on and above the diagonal of 16 rows and columns of X'X, beginning with p, as 8
/// x 8 squares. They take 24 sums and 10 loads per row of X; two tiles would take 19 loads.
[[gnu::noinline]] void add_corner(const double* x, index_t rows, index_t ld, index_t p,
                                  const Gram& gram) {
  V left[lanes] = {}, right[lanes] = {}, last[lanes] = {};
  for (index_t i = 0; i < rows; ++i) {
    const double* row = x + i * ld + p;
    const V y[2] = {load(row), load(row + lanes)};
#pragma GCC unroll 8
    for (int r = 0; r < lanes; ++r) {
      left[r] += row[r] * y[0];
      right[r] += row[r] * y[1];
      last[r] += row[lanes + r] * y[1];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < lanes; ++r) {
    add_sum(gram, (p + r) * ld + p, left[r]);
    add_sum(gram, (p + r) * ld + p + lanes, right[r]);
    add_sum(gram, (p + lanes + r) * ld + p + lanes, last[r]);
  }
}
#endif

void add_gram(const double* x, index_t rows, index_t columns, index_t first, const Gram& gram) {
  index_t p = first / unit * unit;
#if defined(__AVX512F__)
  for (; p + 2 * lanes <= columns; p += 2 * lanes) {
    add_corner(x, rows, columns, p, gram);
    for (const index_t q : {p, p + tile}) {
      for_tiles(p + 2 * lanes, columns,
                [&]<int N>(index_t column) { add_tile<N>(x, rows, columns, q, column, gram); });
    }
  }
#endif
  for (; p < columns; p += tile) {
    for_tiles(p / unit * unit, columns,
              [&]<int N>(index_t column) { add_tile<N>(x, rows, columns, p, column, gram); });
  }
}

std::uint32_t widen(const float* from, index_t count, double* to, std::uint32_t largest) {
  for (index_t i = 0; i < count; ++i) {
    to[i] = from[i];
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, from[i]) & 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

constexpr int narrow_lanes = vector_bytes / static_cast<int>(sizeof(float));
using F = VectorOf<float, narrow_lanes>::unaligned;
using Bits = VectorOf<std::int32_t, narrow_lanes>::type;
/// The number of rows of a tile in float32, which is one vector wide. Its sums take half of the
/// registers.
constexpr int narrow_tile = 2 * tile;
/// The rows of A in one plain sum; a longer sum would have a larger error.
constexpr index_t narrow_run = 32;

/// A'A in float32, and the bits of the largest |a_ij|, which are summed and found together.
struct Narrow {
  const float* a;
  index_t rows, columns;
  double* sums;
  Bits largest;
};

/// Adds a tile of A'A: the rows beginning with p, in one vector of columns.
template <bool measures>
[[gnu::noinline]] void add_narrow_tile(Narrow& gram, index_t p, index_t column) {
  F total[narrow_tile] = {};
  Bits largest = gram.largest;
  const float* x = gram.a + p;
  for (index_t left = gram.rows; left > 0; left -= narrow_run) {
    F sum[narrow_tile] = {};
    for (index_t i = left < narrow_run ? left : narrow_run; i > 0; --i, x += gram.columns) {
      const F y = *reinterpret_cast<const F*>(x + (column - p));
      if constexpr (measures) {
        const Bits bits = reinterpret_cast<Bits>(y) & 0x7fffffff;
        largest = bits > largest ? bits : largest;
      }
#pragma GCC unroll 16
      for (int r = 0; r < narrow_tile; ++r) sum[r] += x[r] * y;
    }
#pragma GCC unroll 16
    for (int r = 0; r < narrow_tile; ++r) total[r] += sum[r];
  }
  for (int r = 0; r < narrow_tile; ++r) {
    double* const to = gram.sums + (p + r) * gram.columns + column;
    for (int l = 0; l < narrow_lanes; ++l) to[l] += static_cast<double>(total[r][l]);
  }
  gram.largest = largest;
}

std::uint32_t add_narrow_gram(const float* a, index_t rows, index_t columns, double* sums,
                              std::uint32_t largest) {
  Narrow gram{a, rows, columns, sums, {}};
  for (index_t column = 0; column < columns; column += narrow_lanes) {
    add_narrow_tile<true>(gram, 0, column);
    for (index_t p = narrow_tile; p < column + narrow_lanes; p += narrow_tile)
      add_narrow_tile<false>(gram, p, column);
  }
  for (int l = 0; l < narrow_lanes; ++l) {
    const auto bits = static_cast<std::uint32_t>(gram.largest[l]);
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

}  // namespace

#define QRTOOL_GRAM(target) QRTOOL_JOIN(target, _gram)

extern const Kernels QRTOOL_GRAM(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET), add_gram, widen,
                                                add_narrow_gram};

}  // namespace qrtool::gram
