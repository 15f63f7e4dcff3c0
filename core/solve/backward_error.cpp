// SPDX-License-Identifier: Apache-2.0
// backward_error.cpp: the bounds of Stewart and the estimate of Karlson and Walden.
#include "core/solve/backward_error.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/solve/triangular.hpp"

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

template <class S>
double karlson_walden(const SolutionNorms& norms, MatrixView<const S> r, const std::vector<S>& g) {
  using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
  if (norms.r == 0 || norms.g == 0) return 0;
  const index_t n = r.cols, k = r.rows;
  const double e = norms.consistent_error();
  Matrix stacked = Matrix::Zero(k + n, n);
  for (index_t i = 0; i < k; ++i)
    for (index_t j = i; j < n; ++j) stacked(i, j) = r(i, j) / norms.a;
  stacked.bottomRows(n).diagonal().setConstant(e);
  const Eigen::HouseholderQR<Matrix> qr(stacked);
  Eigen::Matrix<S, Eigen::Dynamic, 1> y(n);
  for (index_t j = 0; j < n; ++j) y(j) = g[j] / norms.a;
  qr.matrixQR().topRows(n).template triangularView<Eigen::Upper>().adjoint().solveInPlace(y);
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
