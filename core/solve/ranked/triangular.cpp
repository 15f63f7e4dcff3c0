// SPDX-License-Identifier: Apache-2.0
// triangular.cpp: substitution by rows of R, which are contiguous, and power methods on R^H R.
#include "core/solve/ranked/triangular.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/solve/ranked/rows.hpp"

namespace qrtool {
namespace {

template <class S, class D>
void divide(S* x, D by, index_t count) {
  for (index_t i = 0; i < count; ++i) x[i] /= by;
}

/// Scales x to norm 1 and returns the norm that it had; 0 and infinity stay.
template <class S>
double normalize(std::vector<S>& x) {
  const double norm = norm_of(x.data(), std::ssize(x));
  if (norm > 0 && std::isfinite(norm)) divide(x.data(), norm, std::ssize(x));
  return norm;
}

/// x := R x
template <class S>
void multiply(MatrixView<const S> r, std::vector<S>& x) {
  const index_t n = r.cols;
  for (index_t i = 0; i < n; ++i) x[i] = dot(&r(i, i), &x[i], n - i);
}

/// x := R^H x
template <class S>
void multiply_adjoint(MatrixView<const S> r, std::vector<S>& x) {
  const index_t n = r.cols;
  for (index_t i = n - 1; i >= 0; --i) {
    const S xi = x[i];
    x[i] = 0;
    subtract_conjugate(&x[i], -xi, &r(i, i), n - i);
  }
}

/// y + y / |y|, and -1 for 0.
template <class S>
S moved_from_zero(S y) {
  if constexpr (is_complex_number<S>) {
    const double size = std::abs(y);
    return size > 0 ? y + y / size : S(-1);
  } else {
    return y > 0 ? y + 1 : y - 1;
  }
}

/// Returns a vector v for which R^-H v is large: in forward substitution each sign is chosen so
/// that the next entry grows. Source: LINPACK trco.
template <class S>
std::vector<S> growing_solution(MatrixView<const S> r) {
  const index_t n = r.cols;
  std::vector<S> y(static_cast<std::size_t>(n), S(0));
  for (index_t j = 0; j < n; ++j) {
    y[j] = moved_from_zero(y[j]) / conjugate(r(j, j));
    subtract_conjugate(y.data() + j + 1, y[j], r.data + j * r.ld + j + 1, n - j - 1);
  }
  return y;
}

constexpr int iterations = 3;

template <class S>
double smallest_singular_value(MatrixView<const S> r) {
  for (index_t j = 0; j < r.cols; ++j)
    if (r(j, j) == S(0)) return 0;
  std::vector<S> x = growing_solution(r);
  if (!std::isfinite(normalize(x))) return 0;
  const MatrixView<S> view{x.data(), r.cols, 1, 1};
  double inverse_norm = 0;
  for (int i = 0; i < iterations; ++i) {
    solve_upper(r, view);
    const double forward = normalize(x);
    if (!std::isfinite(forward)) return 0;
    solve_upper_adjoint(r, view);
    const double backward = normalize(x);
    if (!std::isfinite(backward)) return 0;
    inverse_norm = std::max({inverse_norm, forward, backward});
  }
  return 1 / inverse_norm;
}

template <class S>
double largest_singular_value(MatrixView<const S> r) {
  const index_t n = r.cols;
  std::vector<S> x(static_cast<std::size_t>(n), S(0));
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
    multiply_adjoint(r, x);
    largest = std::max(largest, normalize(x));
  }
  return largest;
}

}  // namespace

template <class S>
double norm_of(const S* x, index_t count, index_t step) {
  constexpr index_t parts = parts_of<S>;
  const auto* const all = reinterpret_cast<const double*>(x);
  const auto for_each_part = [&](auto use) {
    for (index_t i = 0; i < count; ++i)
      for (index_t q = 0; q < parts; ++q) use(all[i * step * parts + q]);
  };
  double largest = 0;
  bool all_are_finite = true;
  for_each_part([&](double value) {
    const double size = std::abs(value);
    largest = std::max(largest, size);
    all_are_finite = all_are_finite && size <= std::numeric_limits<double>::max();
  });
  if (!all_are_finite) return std::numeric_limits<double>::quiet_NaN();
  if (largest == 0) return 0;
  int exponent = 0;
  std::frexp(largest, &exponent);
  const bool is_ordinary = exponent > -400 && exponent < 400;
  double sum = 0;
  for_each_part([&](double value) {
    if (!is_ordinary) value = std::ldexp(value, -exponent);
    sum += value * value;
  });
  return is_ordinary ? std::sqrt(sum) : std::ldexp(std::sqrt(sum), exponent);
}

template <class S>
void solve_upper(std::type_identity_t<MatrixView<const S>> r, MatrixView<S> x) {
  const index_t n = r.cols, p = x.cols;
  if (p == 1 && x.ld == 1) {
    for (index_t i = n - 1; i >= 0; --i) {
      const index_t rest = n - 1 - i;
      const S known = rest == 0 ? S(0) : dot<S>(&r(i, i) + 1, x.data + i + 1, rest);
      x(i, 0) = (x(i, 0) - known) / r(i, i);
    }
    return;
  }
  for (index_t i = n - 1; i >= 0; --i) {
    for (index_t k = i + 1; k < n; ++k) subtract<S>(&x(i, 0), r(i, k), &x(k, 0), p);
    divide(&x(i, 0), r(i, i), p);
  }
}

template <class S>
void solve_upper_adjoint(std::type_identity_t<MatrixView<const S>> r, MatrixView<S> x) {
  const index_t n = r.cols, p = x.cols;
  for (index_t i = 0; i < n; ++i) {
    divide(&x(i, 0), conjugate(r(i, i)), p);
    if (p == 1 && x.ld == 1) {
      subtract_conjugate<S>(x.data + i + 1, x(i, 0), &r(i, i) + 1, n - 1 - i);
    } else {
      for (index_t k = i + 1; k < n; ++k) subtract<S>(&x(k, 0), conjugate(r(i, k)), &x(i, 0), p);
    }
  }
}

namespace {

/// X := R^-1 (n x n).
template <class S>
void invert_upper(MatrixView<const S> r, MatrixView<S> x) {
  const index_t n = r.cols;
  for (index_t i = n - 1; i >= 0; --i) {
    std::fill_n(&x(i, 0), n, S(0));
    x(i, i) = 1;
    for (index_t k = i + 1; k < n; ++k) subtract<S>(&x(i, k), r(i, k), &x(k, k), n - k);
    divide(&x(i, i), r(i, i), n - i);
  }
}

}  // namespace

template <class S>
std::vector<double> inverse_row_norms(MatrixView<const S> r) {
  const Batch<S> inverse(1, r.cols, r.cols);
  const MatrixView<S> x = inverse.view()[0];
  invert_upper(r, x);
  std::vector<double> norms(static_cast<std::size_t>(r.cols));
  for (index_t i = 0; i < r.cols; ++i) norms[i] = norm_of(&x(i, i), r.cols - i);
  return norms;
}

template <class S>
std::vector<S> inverse_row_correlations(MatrixView<const S> r) {
  const index_t n = r.cols;
  const Batch<S> inverse(1, n, n);
  const MatrixView<S> x = inverse.view()[0];
  invert_upper(r, x);
  for (index_t i = 0; i < n; ++i) divide(&x(i, i), norm_of(&x(i, i), n - i), n - i);
  std::vector<S> correlations(static_cast<std::size_t>(n * n));
  for (index_t i = 0; i < n; ++i) {
    correlations[i * n + i] = 1;
    for (index_t j = i + 1; j < n; ++j) {
      S sum = 0;
      for (index_t k = j; k < n; ++k) sum += product(x(i, k), conjugate(x(j, k)));
      correlations[i * n + j] = sum;
      correlations[j * n + i] = conjugate(sum);
    }
  }
  return correlations;
}

double SingularValues::condition() const {
  return smallest > 0 ? largest / smallest : std::numeric_limits<double>::infinity();
}

template <class S>
SingularValues estimate_singular_values(MatrixView<const S> r) {
  if (r.cols == 0) return {};
  return {largest_singular_value(r), smallest_singular_value(r)};
}

#define QRTOOL_FOR(S)                                                                          \
  template void solve_upper(std::type_identity_t<MatrixView<const S>>, MatrixView<S>);         \
  template void solve_upper_adjoint(std::type_identity_t<MatrixView<const S>>, MatrixView<S>); \
  template std::vector<double> inverse_row_norms(MatrixView<const S>);                         \
  template std::vector<S> inverse_row_correlations(MatrixView<const S>);                       \
  template double norm_of(const S*, index_t, index_t);                                         \
  template SingularValues estimate_singular_values(MatrixView<const S>);
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
