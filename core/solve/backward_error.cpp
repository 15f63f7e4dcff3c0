// SPDX-License-Identifier: Apache-2.0
// backward_error.cpp: the bounds of Stewart and the estimate of Karlson and Walden.
#include "core/solve/backward_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/solve/ranked/triangular.hpp"

namespace qrtool {

double SolutionNorms::consistent_error() const { return r == 0 ? 0 : r / std::hypot(a * x, b); }

double backward_error_bound(const SolutionNorms& norms, double transposed_norm) {
  if (norms.r == 0 || norms.g == 0) return 0;
  const double e = norms.consistent_error();
  // NaN must not win.
  double least = std::numeric_limits<double>::quiet_NaN();
  for (const double bound : {norms.g / (norms.a * norms.r), e * transposed_norm / norms.r, e})
    if (!(bound >= least)) least = std::isnan(bound) ? least : bound;
  return least;
}

namespace {

/// Updates R by one more row, whose entries before `first` are zero, with a rotation for each
/// entry. The row becomes zero.
template <class S>
void append_row(MatrixView<S> r, S* row, index_t first) {
  for (index_t j = first; j < r.cols; ++j) {
    if (row[j] == S(0)) continue;
    S* const upper = &r(j, 0);
    const double size = std::hypot(std::abs(upper[j]), std::abs(row[j]));
    const S c = upper[j] / size, s = row[j] / size;
#pragma omp simd
    for (index_t k = j; k < r.cols; ++k) {
      const S above = upper[k], below = row[k];
      upper[k] = product(conjugate(c), above) + product(conjugate(s), below);
      row[k] = product(c, below) - product(s, above);
    }
  }
}

}  // namespace

template <class S>
double karlson_walden(const SolutionNorms& norms, MatrixView<const S> r, const std::vector<S>& g) {
  if (norms.r == 0 || norms.g == 0) return 0;
  const index_t n = r.cols;
  const double e = norms.consistent_error();
  // K is R of R / a with e I below it.
  const Batch<S> memory(1, n, n);
  const MatrixView<S> k = memory.view()[0];
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j) k(i, j) = i < r.rows && j >= i ? r(i, j) / norms.a : S(0);
  std::vector<S> row(static_cast<std::size_t>(n)), y(row.size());
  for (index_t i = 0; i < n; ++i) {
    row[i] = e;
    append_row(k, row.data(), i);
  }
  for (index_t j = 0; j < n; ++j) y[j] = g[j] / norms.a;
  solve_upper_adjoint(k, MatrixView<S>{y.data(), n, 1, 1});
  return e / norms.r * norm_of(y.data(), n);
}
template double karlson_walden(const SolutionNorms&, MatrixView<const double>,
                               const std::vector<double>&);
template double karlson_walden(const SolutionNorms&, MatrixView<const std::complex<double>>,
                               const std::vector<std::complex<double>>&);

double solution_bar(ElementType type, index_t m, index_t n) {
  const double u = real_of(type) == ElementType::float32 ? 0x1p-23 : 0x1p-52;
  const auto rows = static_cast<double>(m), k = static_cast<double>(std::min(m, n));
  return u * std::min(std::max(rows, 16.0), 30 * k);
}

}  // namespace qrtool
