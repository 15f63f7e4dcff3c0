// SPDX-License-Identifier: Apache-2.0
// residual.cpp: residual and gradient row by row, while a row is in the first-level cache.
#include "core/solve/residual.hpp"

#include <algorithm>
#include <cmath>

namespace qrtool {
namespace {

/// The rows in a plain sum.
constexpr index_t block_rows = 256;
/// The right sides that are taken together: X and the gradient of 64 columns of A stay in the
/// second-level cache.
constexpr index_t tile = 32;

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
  double r[tile];
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

/// An unevaluated sum of two float64 numbers.
struct Twofold {
  double high = 0, low = 0;

  /// Adds x y. Source: Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26
  /// (2005), Dot2.
  void add_product(double x, double y) {
    const double product = x * y;
    low += std::fma(x, y, -product);
    add(product);
  }
  void add(double term) {
    const double sum = high + term, back = sum - high;
    low += (high - (sum - back)) + (term - back);
    high = sum;
  }
  double value() const { return high + low; }
};

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
  for (index_t c = 0; c < p; c += tile) {
    const index_t count = std::min(tile, p - c);
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
  std::vector<Twofold> g(static_cast<std::size_t>(a.cols));
  for (index_t i = 0; i < a.rows; ++i) {
    Twofold r;
    r.add(b[i * b_step]);
    for (index_t j = 0; j < a.cols; ++j) r.add_product(-a(i, j), x[j]);
    // r in two parts, each rounded to float64.
    const double high = r.value(), low = (r.high - high) + r.low;
    r_squares += high * high;
    for (index_t j = 0; j < a.cols; ++j) {
      g[j].add_product(a(i, j), high);
      g[j].low += a(i, j) * low;
    }
  }
  for (index_t j = 0; j < a.cols; ++j) gradient[j] += g[j].value();
}

}  // namespace qrtool
