// SPDX-License-Identifier: Apache-2.0
// probe_kernel.cpp: computes A'(A x) for some rows at a time, compiled once for every instruction
// set. The products A x of these rows stay in registers. Rows in float32 are widened just before
// they are multiplied, so that the processor loads the next ones meanwhile.
#include "core/measure/probe_kernel.hpp"

#include "core/simd/simd.hpp"
#include "core/simd/widened.hpp"

namespace qrtool::probe {
namespace {

constexpr int lanes = vector_bytes / static_cast<int>(sizeof(double));
constexpr int parts = static_cast<int>(vectors) / lanes;  // of a row of x, a vector each
constexpr int rows_at_a_time = 8 / parts;                 // 8 vectors hold their products
static_assert(rows_at_a_time <= most_rows);
using V = VectorOf<double, lanes>::type;
using Stored = VectorOf<double, lanes>::unaligned;
using Single = VectorOf<float, lanes>::unaligned;

/// The processor loads entries this far ahead of the entries that are multiplied. Otherwise memory
/// takes a third of the time.
constexpr int bytes_ahead = 2048, line_bytes = 64;

V load(const double* x) { return *reinterpret_cast<const Stored*>(x); }
void store(double* x, V value) { *reinterpret_cast<Stored*>(x) = value; }

template <int Rows>
[[gnu::always_inline]] inline void add_rows(const double* a, index_t n, const double* x,
                                            double* s) {
  V y[Rows][parts] = {};
  for (index_t j = 0; j < n; ++j) {
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) {
      const V row = load(x + j * vectors + p * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) y[r][p] += a[r * n + j] * row;
    }
  }
  for (index_t j = 0; j < n; ++j) {
#pragma GCC unroll 4
    for (int p = 0; p < parts; ++p) {
      V even = load(s + j * vectors + p * lanes), odd{};
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) (r % 2 == 0 ? even : odd) += a[r * n + j] * y[r][p];
      store(s + j * vectors + p * lanes, even + odd);
    }
  }
}

/// A sum of squares, in parts that do not wait for each other.
struct Squares {
  V sums[4] = {};
  double rest = 0;

  double sum() const {
    const V all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double sum = rest;
    for (int l = 0; l < lanes; ++l) sum += all[l];
    return sum;
  }
};

/// Adds the squares of `count` entries and writes the entries to `to` in float64, unless they are
/// there.
template <class T>
[[gnu::always_inline]] inline void square_and_widen(const T* from, index_t count, double* to,
                                                    Squares& squares) {
  const auto vector_at = [&](index_t i) {
    if constexpr (sizeof(T) == sizeof(double)) {
      return load(from + i);
    } else {
      const V x = widened<V>(*reinterpret_cast<const Single*>(from + i));
      store(to + i, x);
      return x;
    }
  };
  index_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
#pragma GCC unroll 4
    for (int byte = 0; byte < 4 * lanes * static_cast<int>(sizeof(T)); byte += line_bytes) {
      __builtin_prefetch(reinterpret_cast<const char*>(from + i) + bytes_ahead + byte);
    }
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
      const V x = vector_at(i + p * lanes);
      squares.sums[p] += x * x;
    }
  }
  for (; i + lanes <= count; i += lanes) {
    const V x = vector_at(i);
    squares.sums[0] += x * x;
  }
  for (; i < count; ++i) {
    const double x = static_cast<double>(from[i]);
    if constexpr (sizeof(T) != sizeof(double)) to[i] = x;
    squares.rest += x * x;
  }
}

template <class T>
[[gnu::always_inline]] inline double add(const T* a, index_t rows, index_t n, const double* x,
                                         double* s, double* work) {
  Squares squares;
  const auto widened = [&](index_t i, index_t count) -> const double* {
    square_and_widen(a + i * n, count * n, work, squares);
    if constexpr (sizeof(T) == sizeof(double)) {
      return a + i * n;
    } else {
      return work;
    }
  };
  index_t i = 0;
  for (; i + rows_at_a_time <= rows; i += rows_at_a_time) {
    add_rows<rows_at_a_time>(widened(i, rows_at_a_time), n, x, s);
  }
  for (; i < rows; ++i) add_rows<1>(widened(i, 1), n, x, s);
  return squares.sum();
}

double add_single(const float* a, index_t rows, index_t n, const double* x, double* s,
                  double* work) {
  return add(a, rows, n, x, s, work);
}
double add_double(const double* a, index_t rows, index_t n, const double* x, double* s) {
  return add<double>(a, rows, n, x, s, nullptr);
}

}  // namespace

#define QRTOOL_PROBE(target) QRTOOL_JOIN(target, _probe)

extern const Kernels QRTOOL_PROBE(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET), add_single,
                                                 add_double};

}  // namespace qrtool::probe
