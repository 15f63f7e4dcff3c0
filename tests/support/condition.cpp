// SPDX-License-Identifier: Apache-2.0
// condition.cpp: the power method for U'U and for its inverse, U = R D^-1.
#include "tests/support/condition.hpp"

#include <Eigen/Dense>
#include <cmath>
#include <limits>

namespace qrtool::test {
namespace {

constexpr int steps = 12;

/// Returns the largest singular value of M; apply(x) overwrites x with M'M x.
template <class Apply>
double largest_of(Eigen::Index n, Apply apply) {
  Eigen::VectorXd x(n);
  for (Eigen::Index i = 0; i < n; ++i) x(i) = 1 + 0.3 * std::sin(static_cast<double>(i));
  for (int step = 0; step < steps; ++step) {
    x.normalize();
    apply(x);
  }
  return std::sqrt(x.norm());
}

}  // namespace

template <class T>
double scaled_condition(MatrixView<const T> r) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const Eigen::Index n = r.cols;
  if (r.rows < n) return infinite;
  Eigen::MatrixXd u = Eigen::MatrixXd::Zero(n, n);
  for (Eigen::Index j = 0; j < n; ++j) {
    for (Eigen::Index i = 0; i <= j; ++i) u(i, j) = static_cast<double>(r(i, j));
    u.col(j) /= u.col(j).stableNorm();
    if (!(std::abs(u(j, j)) > 0)) return infinite;
  }
  const Eigen::MatrixXd transposed = u.transpose();
  const auto upper = u.triangularView<Eigen::Upper>();
  const auto lower = transposed.triangularView<Eigen::Lower>();
  const double largest = largest_of(n, [&](Eigen::VectorXd& x) {
    x = upper * x;
    x = lower * x;
  });
  const double inverse = largest_of(n, [&](Eigen::VectorXd& x) {
    lower.solveInPlace(x);
    upper.solveInPlace(x);
  });
  const double condition = largest * inverse;
  return std::isnan(condition) ? infinite : condition;
}

template double scaled_condition(MatrixView<const float>);
template double scaled_condition(MatrixView<const double>);

}  // namespace qrtool::test
