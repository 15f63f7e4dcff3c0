// SPDX-License-Identifier: Apache-2.0
// backward_error_test.cpp: bounds and estimate against the exact backward error, for small problems
// with residuals of every size.
#include "core/solve/backward_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/eigen/eigen_qr.hpp"
#include "core/solve/ranked/ranked_factor.hpp"
#include "core/solve/residual.hpp"
#include "tests/support/solution_error.hpp"

namespace qrtool::test::backward_error_test {
namespace {

/// A random problem, and an x that is not its solution.
struct Trial {
  Batch<double> a, r;
  std::vector<double> b, x;
};

Trial make_trial(std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  const auto pick = [&](int least, int most) {
    return static_cast<index_t>(std::uniform_int_distribution<int>(least, most)(random));
  };
  const index_t n = pick(1, 5), m = n + pick(1, 8);
  Trial t{Batch<double>(1, m, n), Batch<double>(1, n, n), {}, {}};
  const MatrixView<double> a = t.a.view()[0];
  const double grading = std::pow(10.0, -static_cast<double>(pick(0, 2)));
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j) a(i, j) = normal(random) * std::pow(grading, j);
  for (index_t j = 0; j < n; ++j) t.x.push_back(normal(random));
  const double residual = std::pow(10.0, static_cast<double>(pick(-6, 4)));
  const double change = std::pow(10.0, static_cast<double>(pick(-5, 0)));
  for (index_t i = 0; i < m; ++i) {
    double product = residual * normal(random);
    for (index_t j = 0; j < n; ++j) product += a(i, j) * t.x[j];
    t.b.push_back(product);
  }
  for (double& xj : t.x) xj *= 1 + change * normal(random);
  const Problem problem{.count = 1, .m = m, .n = n, .type = ElementType::float64, .mode = Mode::r};
  EigenQr<double>(problem).factor(a, {.q = {}, .r = t.r.view()[0], .v = {}, .tau = {}});
  return t;
}

TEST(BackwardError, IsBracketedByTheEstimateAndTheBounds) {
  std::mt19937_64 random(7);
  double least = 10, most = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const Trial t = make_trial(random);
    const MatrixView<const double> a = t.a.view()[0], r = t.r.view()[0];
    const index_t n = a.cols;
    ResidualSums<double> sums(n, 1);
    add_residual<double>(a, {t.b.data(), a.rows, 1, 1}, {t.x.data(), n, 1, 1}, a.rows, sums);
    RankedFactor<double> factor;
    factor.set(r, {.tolerance = 1e-14});
    const SolutionNorms norms{.a = norm_of(r.data, n * n),
                              .b = std::sqrt(sums.b_squares[0]),
                              .x = norm_of(t.x.data(), n),
                              .r = std::sqrt(sums.r_squares[0]),
                              .g = norm_of(sums.gradient.data(), n)};
    const double exact = exact_backward_error(a, t.b.data(), t.x.data());
    if (exact < 1e-10) continue;  // the reference has lost its digits
    const double estimate = karlson_walden<double>(norms, r, sums.gradient);
    const double bound = backward_error_bound(norms, factor.adjoint_solution_norm(sums.gradient));
    EXPECT_LE(estimate, exact * (1 + 1e-5));
    EXPECT_GE(estimate * std::sqrt(2), exact * (1 - 1e-5));
    EXPECT_GE(bound, exact * (1 - 1e-5));
    least = std::min(least, exact / estimate);
    most = std::max(most, exact / estimate);
  }
  // The trials reach both ends.
  EXPECT_LT(least, 1.01);
  EXPECT_GT(most, 1.3);
}

TEST(BackwardError, IsZeroForAnExactSolution) {
  const SolutionNorms norms{.a = 1, .b = 1, .x = 1, .r = 0, .g = 0};
  EXPECT_EQ(backward_error_bound(norms, 0), 0);
  EXPECT_EQ(karlson_walden<double>(norms, {}, {}), 0);
}

TEST(BackwardError, OfNanIsNotBelowAnyBar) {
  SolutionNorms norms{.a = 1, .b = 1, .x = NAN, .r = NAN, .g = NAN};
  EXPECT_FALSE(backward_error_bound(norms, NAN) <= 1);
}

TEST(BackwardError, HasTheBarOfFactors) {
  EXPECT_EQ(solution_bar(ElementType::float64, 4, 2), 16 * 0x1p-52);
  EXPECT_EQ(solution_bar(ElementType::float32, 100, 4), 100 * 0x1p-23);
  EXPECT_EQ(solution_bar(ElementType::float32, 1000000, 4), 120 * 0x1p-23);
  EXPECT_EQ(solution_bar(ElementType::float32, 3, 1000), 16 * 0x1p-23);
}

}  // namespace
}  // namespace qrtool::test::backward_error_test
