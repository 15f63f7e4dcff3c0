// SPDX-License-Identifier: Apache-2.0
// growing_system.cpp: rotations in a tree, and sums in pairs of float64.
#include "core/solve/engines/growing_system.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

namespace qrtool {
namespace {

/// The rows of a block of the tree.
constexpr index_t rows_of_block = 16;

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

RowTree::RowTree(index_t width)
    : width_(width),
      block_(static_cast<std::size_t>(width * width), 0.0),
      row_(static_cast<std::size_t>(width)) {}

void RowTree::add_row(const double* row, std::vector<double>& r) {
  rotate(row, r);
  rotate(row, block_);
  if (++rows_ < rows_of_block) return;
  rows_ = 0;
  std::vector<double> carried(r.size(), 0.0);
  carried.swap(block_);
  std::size_t level = 0;
  for (; level < levels_.size() && !levels_[level].empty(); ++level) {
    join(carried, levels_[level]);
    carried = std::exchange(levels_[level], {});
  }
  levels_.resize(std::max(levels_.size(), level + 1));
  levels_[level] = std::move(carried);
  std::ranges::fill(r, 0.0);
  for (const std::vector<double>& of_level : levels_ | std::views::reverse)
    if (!of_level.empty()) join(of_level, r);
}

/// r := R of [r; below].
void RowTree::join(const std::vector<double>& below, std::vector<double>& r) {
  for (index_t i = 0; i < width_; ++i) rotate(below.data() + i * width_, r);
}

/// r := R of [r; row].
void RowTree::rotate(const double* row, std::vector<double>& r) {
  std::copy_n(row, width_, row_.data());
  for (index_t i = 0; i < width_; ++i) {
    if (row_[i] == 0) continue;
    double* const of_r = r.data() + i * width_;
    const double norm = std::sqrt(of_r[i] * of_r[i] + row_[i] * row_[i]);
    if (norm == 0) continue;
    const double c = of_r[i] / norm, s = row_[i] / norm;
    of_r[i] = norm;
    for (index_t j = i + 1; j < width_; ++j) {
      const double above = of_r[j];
      of_r[j] = c * above + s * row_[j];
      row_[j] = c * row_[j] - s * above;
    }
  }
}

GrowingSystem::GrowingSystem(index_t n)
    : n_(n),
      factor_(static_cast<std::size_t>((n + 1) * (n + 1)), 0.0),
      high_(factor_),
      low_(factor_) {}

void GrowingSystem::add_row(const double* ab, RowTree& tree) {
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
  tree.add_row(ab, factor_);
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
