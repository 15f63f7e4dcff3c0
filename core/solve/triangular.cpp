// SPDX-License-Identifier: Apache-2.0
// triangular.cpp: substitution by rows of R, which are contiguous, and power methods on R'R.
#include "core/solve/triangular.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qrtool {
namespace {

double dot(const double* x, const double* y, index_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (index_t i = 0; i < count; ++i) sum += x[i] * y[i];
  return sum;
}

/// y -= factor x
void subtract(double* y, double factor, const double* x, index_t count) {
#pragma omp simd
  for (index_t i = 0; i < count; ++i) y[i] -= factor * x[i];
}

void divide(double* x, double by, index_t count) {
  for (index_t i = 0; i < count; ++i) x[i] /= by;
}

/// Scales x to norm 1 and returns the norm that it had; 0 and infinity stay.
double normalize(std::vector<double>& x) {
  const double norm = norm_of(x.data(), std::ssize(x));
  if (norm > 0 && std::isfinite(norm)) divide(x.data(), norm, std::ssize(x));
  return norm;
}

/// x := R x
void multiply(MatrixView<const double> r, std::vector<double>& x) {
  const index_t n = r.cols;
  for (index_t i = 0; i < n; ++i) x[i] = dot(&r(i, i), &x[i], n - i);
}

/// x := R' x
void multiply_transposed(MatrixView<const double> r, std::vector<double>& x) {
  const index_t n = r.cols;
  for (index_t i = n - 1; i >= 0; --i) {
    const double xi = x[i];
    x[i] = 0;
    subtract(&x[i], -xi, &r(i, i), n - i);
  }
}

/// A vector v for which R^-T v is large: in forward substitution each sign is chosen so that the
/// next entry grows. Source: LINPACK trco.
std::vector<double> growing_solution(MatrixView<const double> r) {
  const index_t n = r.cols;
  std::vector<double> y(static_cast<std::size_t>(n), 0.0);
  for (index_t j = 0; j < n; ++j) {
    y[j] = (y[j] > 0 ? y[j] + 1 : y[j] - 1) / r(j, j);
    subtract(y.data() + j + 1, y[j], r.data + j * r.ld + j + 1, n - j - 1);
  }
  return y;
}

constexpr int iterations = 3;

double smallest_singular_value(MatrixView<const double> r) {
  for (index_t j = 0; j < r.cols; ++j)
    if (r(j, j) == 0) return 0;
  std::vector<double> x = growing_solution(r);
  if (!std::isfinite(normalize(x))) return 0;
  const MatrixView<double> view{x.data(), r.cols, 1, 1};
  double inverse_norm = 0;
  for (int i = 0; i < iterations; ++i) {
    solve_upper(r, view);
    const double forward = normalize(x);
    if (!std::isfinite(forward)) return 0;
    solve_upper_transposed(r, view);
    const double backward = normalize(x);
    if (!std::isfinite(backward)) return 0;
    inverse_norm = std::max({inverse_norm, forward, backward});
  }
  return 1 / inverse_norm;
}

double largest_singular_value(MatrixView<const double> r) {
  const index_t n = r.cols;
  std::vector<double> x(static_cast<std::size_t>(n), 0.0);
  index_t longest = 0;
  double most = -1;
  for (index_t j = 0; j < n; ++j) {
    const double norm = norm_of(&r(0, j), j + 1, r.ld);
    if (norm > most) longest = j;
    most = std::max(most, norm);
  }
  x[longest] = 1;
  double largest = most;
  for (int i = 0; i < iterations; ++i) {
    multiply(r, x);
    largest = std::max(largest, normalize(x));
    multiply_transposed(r, x);
    largest = std::max(largest, normalize(x));
  }
  return largest;
}

}  // namespace

double norm_of(const double* x, index_t count, index_t step) {
  double largest = 0;
  bool is_finite = true;
  for (index_t i = 0; i < count; ++i) {
    const double size = std::abs(x[i * step]);
    largest = std::max(largest, size);
    is_finite = is_finite && size <= std::numeric_limits<double>::max();
  }
  if (!is_finite) return std::numeric_limits<double>::quiet_NaN();
  if (largest == 0) return 0;
  int exponent = 0;
  std::frexp(largest, &exponent);
  const bool is_ordinary = exponent > -400 && exponent < 400;
  double sum = 0;
  for (index_t i = 0; i < count; ++i) {
    const double value = is_ordinary ? x[i * step] : std::ldexp(x[i * step], -exponent);
    sum += value * value;
  }
  return is_ordinary ? std::sqrt(sum) : std::ldexp(std::sqrt(sum), exponent);
}

void solve_upper(MatrixView<const double> r, MatrixView<double> x) {
  const index_t n = r.cols, p = x.cols;
  if (p == 1 && x.ld == 1) {
    for (index_t i = n - 1; i >= 0; --i) {
      const index_t rest = n - 1 - i;
      const double known = rest == 0 ? 0.0 : dot(&r(i, i) + 1, x.data + i + 1, rest);
      x(i, 0) = (x(i, 0) - known) / r(i, i);
    }
    return;
  }
  for (index_t i = n - 1; i >= 0; --i) {
    for (index_t k = i + 1; k < n; ++k) subtract(&x(i, 0), r(i, k), &x(k, 0), p);
    divide(&x(i, 0), r(i, i), p);
  }
}

void solve_upper_transposed(MatrixView<const double> r, MatrixView<double> x) {
  const index_t n = r.cols, p = x.cols;
  for (index_t i = 0; i < n; ++i) {
    divide(&x(i, 0), r(i, i), p);
    if (p == 1 && x.ld == 1) {
      subtract(x.data + i + 1, x(i, 0), &r(i, i) + 1, n - 1 - i);
    } else {
      for (index_t k = i + 1; k < n; ++k) subtract(&x(k, 0), r(i, k), &x(i, 0), p);
    }
  }
}

namespace {

/// X := R^-1 (n x n).
void invert_upper(MatrixView<const double> r, MatrixView<double> x) {
  const index_t n = r.cols;
  for (index_t i = n - 1; i >= 0; --i) {
    std::fill_n(&x(i, 0), n, 0.0);
    x(i, i) = 1;
    for (index_t k = i + 1; k < n; ++k) subtract(&x(i, k), r(i, k), &x(k, k), n - k);
    divide(&x(i, i), r(i, i), n - i);
  }
}

}  // namespace

std::vector<double> inverse_row_norms(MatrixView<const double> r) {
  const Batch<double> inverse(1, r.cols, r.cols);
  const MatrixView<double> x = inverse.view()[0];
  invert_upper(r, x);
  std::vector<double> norms(static_cast<std::size_t>(r.cols));
  for (index_t i = 0; i < r.cols; ++i) norms[i] = norm_of(&x(i, i), r.cols - i);
  return norms;
}

std::vector<double> inverse_row_correlations(MatrixView<const double> r) {
  const index_t n = r.cols;
  const Batch<double> inverse(1, n, n);
  const MatrixView<double> x = inverse.view()[0];
  invert_upper(r, x);
  for (index_t i = 0; i < n; ++i) divide(&x(i, i), norm_of(&x(i, i), n - i), n - i);
  std::vector<double> correlations(static_cast<std::size_t>(n * n));
  for (index_t i = 0; i < n; ++i) {
    correlations[i * n + i] = 1;
    for (index_t j = i + 1; j < n; ++j) {
      double sum = 0;
      for (index_t k = j; k < n; ++k) sum += x(i, k) * x(j, k);
      correlations[i * n + j] = correlations[j * n + i] = sum;
    }
  }
  return correlations;
}

double SingularValues::condition() const {
  return smallest > 0 ? largest / smallest : std::numeric_limits<double>::infinity();
}

SingularValues estimate_singular_values(MatrixView<const double> r) {
  if (r.cols == 0) return {};
  return {largest_singular_value(r), smallest_singular_value(r)};
}

}  // namespace qrtool
