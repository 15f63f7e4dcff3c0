// SPDX-License-Identifier: Apache-2.0
// residual.cpp: residual and gradient row by row, while a row is in the first-level cache.
#include "core/solve/residual.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace qrtool {
namespace {

/// The number of rows in a plain sum.
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
void add_block(MatrixView<const T> a, MatrixView<const T> b, MatrixView<const Wide<T>> x,
               index_t data_rows, ResidualSums<Wide<T>>& sums) {
  using S = Wide<T>;
  const index_t n = a.cols, p = b.cols;
  S r[columns_at_once];
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t c = 0; c < p; ++c) {
      r[c] = static_cast<S>(b(i, c));
      sums.b_squares[c] += square_of(r[c]);
    }
    if constexpr (!is_complex_number<T>) {
      if (p == 1 && x.ld == 1) {
        double squares = 0;
        add_row(&a(i, 0), n, r[0], x.data, sums.gradient.data(), squares);
        sums.r_squares[0] += squares;
        if (i < data_rows) sums.data_squares[0] += squares;
        continue;
      }
    }
    for (index_t j = 0; j < n; ++j) {
      const auto aij = static_cast<S>(a(i, j));
      const S* xj = &x(j, 0);
#pragma omp simd
      for (index_t c = 0; c < p; ++c) r[c] -= product(aij, xj[c]);
    }
    for (index_t c = 0; c < p; ++c) {
      sums.r_squares[c] += square_of(r[c]);
      if (i < data_rows) sums.data_squares[c] += square_of(r[c]);
    }
    for (index_t j = 0; j < n; ++j) {
      const auto aij = conjugate(static_cast<S>(a(i, j)));
      S* gj = sums.gradient.data() + j * p;
#pragma omp simd
      for (index_t c = 0; c < p; ++c) gj[c] += product(aij, r[c]);
    }
  }
}

template <class S>
void add(std::vector<S>& to, const std::vector<S>& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

/// Several unevaluated sums of two float64 numbers, side by side, so that the processor adds to
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

template <class S>
void ResidualSums<S>::clear() {
  for (auto* sums : {&r_squares, &data_squares, &b_squares})
    std::fill(sums->begin(), sums->end(), 0.0);
  std::fill(gradient.begin(), gradient.end(), S(0));
}

template <class S>
void ResidualSums<S>::add(const ResidualSums& other) {
  qrtool::add(r_squares, other.r_squares);
  qrtool::add(data_squares, other.data_squares);
  qrtool::add(b_squares, other.b_squares);
  qrtool::add(gradient, other.gradient);
}

template <class T>
void add_residual(MatrixView<const T> a, MatrixView<const T> b, MatrixView<const Wide<T>> x,
                  index_t data_rows, ResidualSums<Wide<T>>& sums) {
  const index_t n = a.cols, p = b.cols;
  ResidualSums<Wide<T>> part;
  for (index_t c = 0; c < p; c += columns_at_once) {
    const index_t count = std::min(columns_at_once, p - c);
    if (std::ssize(part.r_squares) != count) part = ResidualSums<Wide<T>>(n, count);
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

namespace {

/// The two rows of the real matrix [Re -Im; Im Re] that stand for one row of a complex matrix, for
/// x as its real and imaginary parts in turn. The sums over both are the sums for the complex row.
class RealRows {
 public:
  explicit RealRows(index_t n) : first_(static_cast<std::size_t>(2 * n)), second_(first_.size()) {}

  void set(const std::complex<double>* row) {
    for (std::size_t j = 0; j < first_.size() / 2; ++j) {
      first_[2 * j] = second_[2 * j + 1] = row[j].real();
      second_[2 * j] = row[j].imag();
      first_[2 * j + 1] = -row[j].imag();
    }
  }
  const double* first() const { return first_.data(); }
  const double* second() const { return second_.data(); }

 private:
  std::vector<double> first_, second_;
};

}  // namespace

template <class S>
void add_precise_residual(MatrixView<const S> a, const S* b, index_t b_step, const S* x,
                          std::vector<S>& gradient, double& r_squares) {
  const index_t n = parts_of<S> * a.cols;
  std::vector<double> high(static_cast<std::size_t>(n)), low(high.size());
  const Twofolds g{high.data(), low.data()};
  const auto* const parts_of_x = reinterpret_cast<const double*>(x);
  const auto add_row = [&](const double* row, double bi) {
    const auto [r, rest] = precise_residual(row, parts_of_x, n, bi);
    const double r_high = r, r_low = rest;
    r_squares += r_high * r_high;
#pragma omp simd
    for (index_t j = 0; j < n; ++j) {
      g.add_product(j, row[j], r_high);
      g.low[j] += row[j] * r_low;
    }
  };
  if constexpr (is_complex_number<S>) {
    RealRows rows(a.cols);
    for (index_t i = 0; i < a.rows; ++i) {
      const S right = b == nullptr ? S(0) : b[i * b_step];
      rows.set(&a(i, 0));
      add_row(rows.first(), right.real());
      add_row(rows.second(), right.imag());
    }
  } else {
    for (index_t i = 0; i < a.rows; ++i) add_row(&a(i, 0), b == nullptr ? 0 : b[i * b_step]);
  }
  auto* const sums = reinterpret_cast<double*>(gradient.data());
  for (index_t j = 0; j < n; ++j) sums[j] += high[j] + low[j];
}

template struct ResidualSums<double>;
template struct ResidualSums<std::complex<double>>;
#define QRTOOL_FOR(T)                                                                             \
  template void add_residual(MatrixView<const T>, MatrixView<const T>, MatrixView<const Wide<T>>, \
                             index_t, ResidualSums<Wide<T>>&);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR
#define QRTOOL_FOR(S)                                                                  \
  template void add_precise_residual(MatrixView<const S>, const S*, index_t, const S*, \
                                     std::vector<S>&, double&);
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
