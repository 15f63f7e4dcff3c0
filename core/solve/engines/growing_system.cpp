// SPDX-License-Identifier: Apache-2.0
// growing_system.cpp: rotations, and sums in pairs of float64.
#include "core/solve/engines/growing_system.hpp"

#include <algorithm>
#include <cmath>

namespace qrtool {
namespace {

/// The rows that are put together before they join R.
constexpr index_t rows_of_block = 256;

/// An unevaluated sum of two float64 numbers, the second of which is a rounding error of the first.
struct Pair {
  double high = 0, low = 0;

  void add(double term, double error) {
    const double sum = high + term, back = sum - high;
    const double rest = ((high - (sum - back)) + (term - back)) + (low + error);
    high = sum + rest;
    low = rest - (high - sum);
  }
  void add_product(double x, double y) {
    const double product = x * y;
    add(product, std::fma(x, y, -product));
  }
  void add_product(double x, const Pair& y) {
    const double product = x * y.high;
    add(product, std::fma(x, y.high, -product) + x * y.low);
  }
};

}  // namespace

GrowingSystem::GrowingSystem(index_t n)
    : n_(n),
      factor_(static_cast<std::size_t>((n + 1) * (n + 1)), 0.0),
      base_(factor_),
      block_(factor_),
      high_(factor_.size(), 0.0),
      low_(factor_.size(), 0.0),
      row_(static_cast<std::size_t>(n + 1)) {}

void GrowingSystem::add_row(const double* ab) {
  const index_t width = n_ + 1;
  for (index_t i = 0; i < width; ++i) {
    for (index_t j = i; j < width; ++j) {
      double &high = high_[i * width + j], &low = low_[i * width + j];
      Pair sum{high, low};
      sum.add_product(ab[i], ab[j]);
      high = sum.high;
      low = sum.low;
    }
  }
  for (std::vector<double>* factor : {&factor_, &block_}) {
    std::copy_n(ab, width, row_.data());
    rotate(*factor);
  }
  if (++rows_ < rows_of_block) return;
  // Errors of as many rotations as there are rows would add up.
  factor_ = base_;
  for (index_t i = 0; i < width; ++i) {
    std::copy_n(block_.data() + i * width, width, row_.data());
    rotate(factor_);
  }
  base_ = factor_;
  std::ranges::fill(block_, 0.0);
  rows_ = 0;
}

/// factor := R of [factor; row_].
void GrowingSystem::rotate(std::vector<double>& factor) {
  const index_t width = n_ + 1;
  for (index_t i = 0; i < width; ++i) {
    if (row_[i] == 0) continue;
    double* const r = factor.data() + i * width;
    const double norm = std::sqrt(r[i] * r[i] + row_[i] * row_[i]);
    if (norm == 0) continue;
    const double c = r[i] / norm, s = row_[i] / norm;
    r[i] = norm;
    for (index_t j = i + 1; j < width; ++j) {
      const double above = r[j];
      r[j] = c * above + s * row_[j];
      row_[j] = c * row_[j] - s * above;
    }
  }
}

/// gradient := A'(b - A x), without b if it does not count. Returns ||b - A x||^2, or what the sums
/// cannot tell it from:
///
///   b'b - x'A'b - x'(A'b - A'A x)
double GrowingSystem::squares_of(const double* x, bool has_b, double* gradient) const {
  const index_t width = n_ + 1;
  const auto moment = [&](index_t i, index_t j) {
    const index_t at = std::min(i, j) * width + std::max(i, j);
    return Pair{high_[at], low_[at]};
  };
  Pair squares = has_b ? moment(n_, n_) : Pair{};
  double size = std::sqrt(squares.high);
  for (index_t i = 0; i < n_; ++i) {
    Pair g = has_b ? moment(i, n_) : Pair{};
    if (has_b) squares.add_product(-x[i], g);
    for (index_t j = 0; j < n_; ++j) g.add_product(-x[j], moment(i, j));
    squares.add_product(-x[i], g);
    gradient[i] = g.high;
    size += std::abs(x[i]) * std::sqrt(high_[i * width + i]);
  }
  constexpr double unit = 0x1p-100;
  return std::max(squares.high, 0.0) + unit * size * size;
}

void GrowingSystem::add_residual(index_t, MatrixView<const double> x, ResidualSums<double>& sums) {
  const double squares = squares_of(x.data, true, sums.gradient.data());
  sums.r_squares[0] += squares;
  sums.data_squares[0] += squares;
  sums.b_squares[0] += high_.back();
}

void GrowingSystem::add_precise_residual(index_t j, const double* x, std::vector<double>& gradient,
                                         double& r_squares) {
  r_squares += squares_of(x, j >= 0, gradient.data());
}

}  // namespace qrtool
