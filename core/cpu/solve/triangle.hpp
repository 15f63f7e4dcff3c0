// SPDX-License-Identifier: Apache-2.0
// triangle.hpp: solves and products with R' of as many systems as a SIMD vector has lanes. Private
// to core/cpu, compiled once for every instruction set (simd.hpp).
#pragma once

#include "core/cpu/solve/system_columns.hpp"

namespace qrtool::systems {
namespace {

/// Solves systems with R' of `columns`, which must outlive the triangle.
template <class T>
class Triangle {
  using V = typename SystemColumns<T>::V;

 public:
  Triangle(const Shape& shape, const SystemColumns<T>& columns) : n_(shape.n), r_(columns) {}

  /// Computes the squares of the norms of the columns of R'.
  void find_column_squares() {
    for (index_t p = 0; p < r_.panels_of(n_); ++p) {
      V sums[width] = {};
      const V* r = r_.row_of(p, 0);
      for (index_t i = 0; i < p * width; ++i)
#pragma GCC unroll 4
        for (int q = 0; q < width; ++q) sums[q] += r[i * width + q] * r[i * width + q];
      for (index_t q = 0; q < r_.columns_of(p); ++q) {
        for (index_t i = p * width; i <= p * width + q; ++i)
          sums[q] += r_.diagonal_row(i)[q] * r_.diagonal_row(i)[q];
        r_.square(p * width + q) = sums[q];
      }
    }
  }

  /// y := R'^-1 y for K vectors; entry i of vector v is y[i K + v].
  template <int K>
  void solve_upper(V* y) const {
    solve_leading<K>(n_, y);
  }
  /// As above, if only the first `entries` entries of y are not 0.
  template <int K>
  [[gnu::noinline]] void solve_leading(index_t entries, V* y) const {
    for (index_t p = r_.panels_of(entries) - 1; p >= 0; --p) {
      const index_t first = p * width, columns = r_.columns_of(p);
      const V* top = r_.diagonal_row(first);
      for (index_t q = columns - 1; q >= 0; --q) {
        for (int v = 0; v < K; ++v) {
          V sum = y[(first + q) * K + v];
          for (index_t o = q + 1; o < columns; ++o)
            sum -= top[q * width + o] * y[(first + o) * K + v];
          y[(first + q) * K + v] = sum * r_.inverse(first + q);
        }
      }
      V known[width][K];
      for (index_t q = 0; q < width; ++q)
        for (int v = 0; v < K; ++v) known[q][v] = q < columns ? y[(first + q) * K + v] : V{};
      const V* r = r_.row_of(p, 0);
      for (index_t i = 0; i < first; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < K; ++v) {
          V sum = y[i * K + v];
#pragma GCC unroll 4
          for (int q = 0; q < width; ++q) sum -= r[i * width + q] * known[q][v];
          y[i * K + v] = sum;
        }
      }
    }
  }

  /// sums := the rows above panel p of R', transposed, times y.
  template <int K>
  [[gnu::always_inline]] void multiply_above(index_t p, const V* y, V (&sums)[width][K]) const {
    for (auto& sum : sums)
      for (V& each : sum) each = V{};
    const V* r = r_.row_of(p, 0);
    for (index_t i = 0; i < p * width; ++i) {
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q)
#pragma GCC unroll 4
        for (int v = 0; v < K; ++v) sums[q][v] += r[i * width + q] * y[i * K + v];
    }
  }

  /// y_j := step(v, j, y_j - sum over i < j of R'_ij y_i) / R'_jj, in ascending order: with step =
  /// the identity this is R'^-T y.
  template <int K, class Step>
  [[gnu::always_inline]] void substitute(V* y, Step step) const {
    for (index_t p = 0; p < r_.panels_of(n_); ++p) {
      const index_t first = p * width, columns = r_.columns_of(p);
      const V* top = r_.diagonal_row(first);
      V sums[width][K];
      multiply_above<K>(p, y, sums);
      for (index_t q = 0; q < columns; ++q) {
        for (int v = 0; v < K; ++v) {
          V sum = sums[q][v];
          for (index_t o = 0; o < q; ++o) sum += top[o * width + q] * y[(first + o) * K + v];
          V& yj = y[(first + q) * K + v];
          yj = step(v, first + q, yj - sum) * r_.inverse(first + q);
        }
      }
    }
  }
  template <int K>
  [[gnu::noinline]] void solve_upper_transposed(V* y) const {
    substitute<K>(y, [](int, index_t, V x) { return x; });
  }

  /// y := R' x and z := R'^T y, for the two vectors of an estimate. R' is read once: four rows of
  /// it are used twice while they are near.
  [[gnu::noinline]] void multiply_both_ways(const V* x, V* y, V* z) const {
    const index_t panels = r_.panels_of(n_);
    for (index_t e = 0; e < 2 * n_; ++e) z[e] = V{};
    for (index_t k = 0; k < panels; ++k) {
      const index_t first = k * width, rows = r_.columns_of(k);
      V sums[width][2] = {};
      for (index_t o = 0; o < rows; ++o)
        for (index_t j = o; j < rows; ++j)
          for (int v = 0; v < 2; ++v)
            sums[o][v] += r_.diagonal_row(first + o)[j] * x[(first + j) * 2 + v];
      for (index_t p = k + 1; p < panels; ++p) {
        const index_t columns = r_.columns_of(p);
        const V *r = r_.row_of(p, first), *from = x + p * width * 2;
#pragma GCC unroll 4
        for (index_t c = 0; c < columns; ++c)
#pragma GCC unroll 4
          for (int o = 0; o < width; ++o)
#pragma GCC unroll 2
            for (int v = 0; v < 2; ++v) sums[o][v] += r[o * width + c] * from[c * 2 + v];
      }
      for (index_t o = 0; o < rows; ++o)
        for (int v = 0; v < 2; ++v) y[(first + o) * 2 + v] = sums[o][v];
      for (index_t o = 0; o < rows; ++o)
        for (index_t j = o; j < rows; ++j)
          for (int v = 0; v < 2; ++v)
            z[(first + j) * 2 + v] += r_.diagonal_row(first + o)[j] * sums[o][v];
      for (index_t p = k + 1; p < panels; ++p) {
        const index_t columns = r_.columns_of(p);
        const V* r = r_.row_of(p, first);
        V* to = z + p * width * 2;
#pragma GCC unroll 4
        for (index_t c = 0; c < columns; ++c)
#pragma GCC unroll 2
          for (int v = 0; v < 2; ++v) {
            V sum = to[c * 2 + v];
#pragma GCC unroll 4
            for (int o = 0; o < width; ++o) sum += r[o * width + c] * sums[o][v];
            to[c * 2 + v] = sum;
          }
      }
    }
  }

 private:
  const index_t n_;
  const SystemColumns<T>& r_;
};

}  // namespace
}  // namespace qrtool::systems
