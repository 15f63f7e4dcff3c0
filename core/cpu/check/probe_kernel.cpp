// SPDX-License-Identifier: Apache-2.0
// probe_kernel.cpp: computes A'(A x) for some rows at a time, compiled once for every instruction
// set. The products A x of these rows stay in registers.
#include "core/cpu/check/probe_kernel.hpp"

#include "core/cpu/simd.hpp"

namespace qrtool::probe {
namespace {

constexpr int lanes = vector_bytes / static_cast<int>(sizeof(double));
constexpr int parts = static_cast<int>(vectors) / lanes;  // of a row of x, a vector each
constexpr int most_rows = 8 / parts;                      // 8 vectors hold their products
using V = VectorOf<double, lanes>::type;
using Stored = VectorOf<double, lanes>::unaligned;

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

void add_products(const double* a, index_t rows, index_t n, const double* x, double* s) {
  index_t i = 0;
  for (; i + most_rows <= rows; i += most_rows) add_rows<most_rows>(a + i * n, n, x, s);
  for (; i < rows; ++i) add_rows<1>(a + i * n, n, x, s);
}

void widen(const float* from, index_t count, double* to) {
  for (index_t i = 0; i < count; ++i) to[i] = static_cast<double>(from[i]);
}

double sum_of_squares(const double* from, index_t count) {
  V sums[4] = {};
  index_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
      const V x = load(from + i + p * lanes);
      sums[p] += x * x;
    }
  }
  const V all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double sum = 0;
  for (int l = 0; l < lanes; ++l) sum += all[l];
  for (; i < count; ++i) sum += from[i] * from[i];
  return sum;
}

}  // namespace

#define QRTOOL_PROBE(target) QRTOOL_JOIN(target, _probe)

extern const Kernels QRTOOL_PROBE(QRTOOL_TARGET){add_products, widen, sum_of_squares};

}  // namespace qrtool::probe
