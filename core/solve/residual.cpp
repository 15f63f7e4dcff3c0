// SPDX-License-Identifier: Apache-2.0
// residual.cpp: residual and gradient row by row, while a row is in the first-level cache.
#include "core/solve/residual.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace qrtool {
namespace {

/// The rows in a plain sum.
constexpr index_t block_rows = 256;
/// The right sides that are taken together: X and the gradient of 64 columns of A stay in the
/// second-level cache.
constexpr index_t columns_at_once = 32;

template <class T>
void add_row(const T* a, index_t n, double b, const double* x, double* gradient, double& squares) {
  double product = 0;
#pragma omp simd reduction(+ : product)
  for (index_t j = 0; j < n; ++j) product += static_cast<double>(a[j]) * x[j];
  const double r = b - product;
  squares += r * r;
#pragma omp simd
  for (index_t j = 0; j < n; ++j) gradient[j] += static_cast<double>(a[j]) * r;
}

/// The columns [first, first + count) of the right sides; `sums` has the gradient n x count.
template <class T>
void add_block(MatrixView<const T> a, MatrixView<const T> b, MatrixView<const double> x,
               index_t data_rows, ResidualSums& sums) {
  const index_t n = a.cols, p = b.cols;
  double r[columns_at_once];
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t c = 0; c < p; ++c) {
      r[c] = static_cast<double>(b(i, c));
      sums.b_squares[c] += r[c] * r[c];
    }
    if (p == 1 && x.ld == 1) {
      double squares = 0;
      add_row(&a(i, 0), n, r[0], x.data, sums.gradient.data(), squares);
      sums.r_squares[0] += squares;
      if (i < data_rows) sums.data_squares[0] += squares;
      continue;
    }
    for (index_t j = 0; j < n; ++j) {
      const auto aij = static_cast<double>(a(i, j));
      const double* xj = &x(j, 0);
#pragma omp simd
      for (index_t c = 0; c < p; ++c) r[c] -= aij * xj[c];
    }
    for (index_t c = 0; c < p; ++c) {
      sums.r_squares[c] += r[c] * r[c];
      if (i < data_rows) sums.data_squares[c] += r[c] * r[c];
    }
    for (index_t j = 0; j < n; ++j) {
      const auto aij = static_cast<double>(a(i, j));
      double* gj = sums.gradient.data() + j * p;
#pragma omp simd
      for (index_t c = 0; c < p; ++c) gj[c] += aij * r[c];
    }
  }
}

void add(std::vector<double>& to, const std::vector<double>& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

/// Unevaluated sums of two float64 numbers each, side by side, so that the processor adds to
/// several at a time.
struct Twofolds {
  double *high, *low;

  /// Adds x y to sum j. Source: Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci.
  /// Comput. 26 (2005), Dot2.
  void add_product(index_t j, double x, double y) const {
    const double product = x * y;
    low[j] += std::fma(x, y, -product);
    add(j, product);
  }
  void add(index_t j, double term) const {
    const double sum = high[j] + term, back = sum - high[j];
    low[j] += (high[j] - (sum - back)) + (term - back);
    high[j] = sum;
  }
};

/// The sums of a dot product that do not wait for each other.
constexpr index_t dot_sums = 16;

/// Returns b - a'x as the sum of two float64 numbers.
std::pair<double, double> precise_residual(const double* a, const double* x, index_t n, double b) {
  double high[dot_sums] = {}, low[dot_sums] = {};
  const Twofolds sums{high, low};
  const index_t whole = n / dot_sums * dot_sums;
  for (index_t j = 0; j < whole; j += dot_sums) {
#pragma omp simd
    for (index_t l = 0; l < dot_sums; ++l) sums.add_product(l, -a[j + l], x[j + l]);
  }
  for (index_t j = whole; j < n; ++j) sums.add_product(j - whole, -a[j], x[j]);
  double r_high = b, r_low = 0;
  const Twofolds r{&r_high, &r_low};
  for (index_t l = 0; l < dot_sums; ++l) {
    r.add(0, high[l]);
    r_low += low[l];
  }
  const double rounded = r_high + r_low;
  return {rounded, (r_high - rounded) + r_low};
}

}  // namespace

void ResidualSums::clear() {
  for (auto* sums : {&r_squares, &data_squares, &b_squares, &gradient})
    std::fill(sums->begin(), sums->end(), 0.0);
}

void ResidualSums::add(const ResidualSums& other) {
  qrtool::add(r_squares, other.r_squares);
  qrtool::add(data_squares, other.data_squares);
  qrtool::add(b_squares, other.b_squares);
  qrtool::add(gradient, other.gradient);
}

template <class T>
void add_residual(MatrixView<const T> a, MatrixView<const T> b, MatrixView<const double> x,
                  index_t data_rows, ResidualSums& sums) {
  const index_t n = a.cols, p = b.cols;
  ResidualSums part;
  for (index_t c = 0; c < p; c += columns_at_once) {
    const index_t count = std::min(columns_at_once, p - c);
    if (std::ssize(part.r_squares) != count) part = ResidualSums(n, count);
    for (index_t i = 0; i < a.rows; i += block_rows) {
      const index_t rows = std::min(block_rows, a.rows - i);
      part.clear();
      add_block<T>(a.row_block(i, rows), {b.data + i * b.ld + c, rows, count, b.ld},
                   {x.data + c, n, count, x.ld}, data_rows - i, part);
      for (index_t q = 0; q < count; ++q) {
        sums.r_squares[c + q] += part.r_squares[q];
        sums.data_squares[c + q] += part.data_squares[q];
        sums.b_squares[c + q] += part.b_squares[q];
      }
      for (index_t j = 0; j < n; ++j)
        for (index_t q = 0; q < count; ++q)
          sums.gradient[j * p + c + q] += part.gradient[j * count + q];
    }
  }
}
template void add_residual(MatrixView<const float>, MatrixView<const float>,
                           MatrixView<const double>, index_t, ResidualSums&);
template void add_residual(MatrixView<const double>, MatrixView<const double>,
                           MatrixView<const double>, index_t, ResidualSums&);

void add_precise_residual(MatrixView<const double> a, const double* b, index_t b_step,
                          const double* x, std::vector<double>& gradient, double& r_squares) {
  const index_t n = a.cols;
  std::vector<double> high(static_cast<std::size_t>(n)), low(high.size());
  const Twofolds g{high.data(), low.data()};
  for (index_t i = 0; i < a.rows; ++i) {
    const double* row = &a(i, 0);
    const auto [r, rest] = precise_residual(row, x, n, b[i * b_step]);
    const double r_high = r, r_low = rest;
    r_squares += r_high * r_high;
#pragma omp simd
    for (index_t j = 0; j < n; ++j) {
      g.add_product(j, row[j], r_high);
      g.low[j] += row[j] * r_low;
    }
  }
  for (index_t j = 0; j < n; ++j) gradient[j] += high[j] + low[j];
}

}  // namespace qrtool
