// SPDX-License-Identifier: Apache-2.0
// error_probe_test.cpp: estimates are as near to the true errors as the bound says, whatever the
// error is, and what the bound does not exclude is measured.
#include "core/measure/error_probe.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/cpu/blocked/blocked_qr.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"

namespace qrtool::error_probe_test {
namespace {

/// A matrix with its factors.
template <class T>
struct Case {
  Problem problem;
  Batch<T> a, q, r;

  Case(index_t m, index_t n, Mode mode = Mode::reduced, double factor = 1)
      : problem{.count = 1, .m = m, .n = n, .type = element_type<T>, .mode = mode},
        a(1, m, n),
        q(1, m, problem.q_cols()),
        r(1, problem.r_rows(), n) {
    fill_matrix<T>({.kind = "gauss"}, 0, view_a());
    for (index_t i = 0; i < m * n; ++i) a.view().data[i] *= static_cast<T>(factor);
    BlockedQr<T>(problem, 1)
        .factor(view_a(), {.q = q.view()[0], .r = r.view()[0], .v = {}, .tau = {}}, 1);
  }

  Case(const Case& other)
      : problem(other.problem), a(copy(other.a)), q(copy(other.q)), r(copy(other.r)) {}

  static Batch<T> copy(const Batch<T>& from) {
    const BatchView<T> view = from.view();
    Batch<T> to(view.count, view.rows, view.cols);
    std::copy_n(view.data, view.count * view.rows * view.cols, to.view().data);
    return to;
  }
  MatrixView<T> view_a() const { return a.view()[0]; }
  ErrorFinder::Shape shape(int threads = 1) const {
    return {problem.m, problem.n, problem.q_cols(), problem.r_rows(), threads};
  }
  int scale() const { return magnitude_of<T>(view_a()).scale(); }

  Errors estimate(int threads = 1) const {
    ErrorProbe probe(problem.m, problem.n, problem.q_cols(), problem.r_rows(), threads);
    return probe.estimate<T>(view_a(), q.view()[0], r.view()[0], scale());
  }
  Errors measure() const {
    ErrorMeter meter(problem.m, problem.n, problem.q_cols(), problem.r_rows());
    return meter.measure<T>(view_a(), q.view()[0], r.view()[0], scale());
  }
  Bars bars(const Errors& errors) const {
    return standard_bars(problem.m, problem.n, precision_of(problem), errors);
  }
  Errors find(Check check) const {
    ErrorFinder finder(shape(), check);
    return finder.find<T>(view_a(), q.view()[0], r.view()[0], scale(),
                          [&](const Errors& errors) { return bars(errors); });
  }
};

template <class T>
class ErrorProbeTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ErrorProbeTest, Types);

TEST(ErrorProbe, FactorsAreThoseOfTheTheorem) {
  const auto probability = [](double factor, double vectors) {
    const double t = 1 / (factor * factor);
    return std::pow(t * std::exp(1 - t), vectors / 2);
  };
  for (const double p : {probability(residual_factor, residual_vectors),
                         probability(orthogonality_factor, orthogonality_vectors)}) {
    EXPECT_LE(p, 1e-9);
    EXPECT_GE(p, 0.98e-9);
  }
}

// The estimates of full-rank errors vary by a few percent.
TYPED_TEST(ErrorProbeTest, EstimatesTheErrorsOfEveryShape) {
  using T = TypeParam;
  for (const Mode mode : {Mode::reduced, Mode::complete, Mode::r}) {
    for (const auto& [m, n] : {std::pair<index_t, index_t>{200, 200}, {417, 193}, {150, 333}}) {
      for (const double factor : {1.0, sizeof(T) == 4 ? 1e-36 : 1e-300}) {
        const Case<T> c(m, n, mode, factor);
        const Errors estimate = c.estimate(), measured = c.measure();
        const std::string what =
            std::string(name_of(mode)) + " " + std::to_string(m) + "x" + std::to_string(n);
        // The meter's own errors are below 0.1 of the bar.
        const double slack = sizeof(T) == 4 ? 0 : 0.02 * c.bars(measured).orthogonality;
        EXPECT_NEAR(estimate.residual, measured.residual, 0.25 * measured.residual + slack) << what;
        const double orthogonality = mode == Mode::r ? 0 : measured.orthogonality;
        EXPECT_NEAR(mode == Mode::r ? 0 : estimate.orthogonality, orthogonality,
                    0.15 * orthogonality + slack)
            << what;
        EXPECT_NEAR(estimate.norm, measured.norm, 1e-12 * measured.norm);
        EXPECT_EQ(estimate.diagonal_ratio, measured.diagonal_ratio);
        EXPECT_EQ(estimate.lower, 0);
      }
    }
  }
}

/// Adds size * x y' to a matrix, with x and y of norm 1.
template <class T>
void add_rank_one(MatrixView<T> to, double size, std::uint64_t seed) {
  std::vector<double> x, y;
  const auto draw = [&](std::vector<double>& v, index_t count, std::uint64_t stream) {
    double squares = 0;
    for (index_t i = 0; i < count; ++i) {
      v.push_back(normal(seed, stream, static_cast<std::uint64_t>(i)));
      squares += v.back() * v.back();
    }
    for (double& entry : v) entry /= std::sqrt(squares);
  };
  draw(x, to.rows, 5);
  draw(y, to.cols, 6);
  for (index_t i = 0; i < to.rows; ++i)
    for (index_t j = 0; j < to.cols; ++j) to(i, j) += static_cast<T>(size * x[i] * y[j]);
}

// The square of an estimate of a rank-one error is the true square times chi-squared(s) / s.
TEST(ErrorProbe, EstimatesOfRankOneErrorsHaveTheStatedDistribution) {
  const Case<double> good(200, 200);
  double residual = 0, residual_of_squares = 0, orthogonality = 0;
  double least_residual = 1, least_orthogonality = 1;
  constexpr int trials = 150;
  for (int trial = 0; trial < trials; ++trial) {
    Case<double> c = good;
    add_rank_one<double>(c.view_a(), 1e-6, 100 + static_cast<std::uint64_t>(trial));
    add_rank_one<double>(c.q.view()[0], 1e-6, 900 + static_cast<std::uint64_t>(trial));
    const Errors estimate = c.estimate(), measured = c.measure();
    const double x = std::pow(estimate.residual / measured.residual, 2);
    const double y = std::pow(estimate.orthogonality / measured.orthogonality, 2);
    residual += x / trials;
    residual_of_squares += x * x / trials;
    orthogonality += y / trials;
    least_residual = std::min(least_residual, std::sqrt(x));
    least_orthogonality = std::min(least_orthogonality, std::sqrt(y));
  }
  EXPECT_NEAR(residual, 1, 0.2);  // five standard deviations of the mean
  EXPECT_NEAR(residual_of_squares - residual * residual, 2.0 / residual_vectors, 0.15);
  EXPECT_NEAR(orthogonality, 1, 0.1);
  EXPECT_GT(least_residual, 0.15);
  EXPECT_GT(least_orthogonality, 0.5);
}

TYPED_TEST(ErrorProbeTest, GoodFactorsGetTheEstimate) {
  const Case<TypeParam> c(256, 256);
  const Errors found = c.find(Check::probe), estimate = c.estimate();
  EXPECT_EQ(found.orthogonality, estimate.orthogonality);
  EXPECT_EQ(found.residual, estimate.residual);
  EXPECT_EQ(c.find(Check::full).orthogonality, c.measure().orthogonality);
}

TYPED_TEST(ErrorProbeTest, WhatTheBoundDoesNotExcludeIsMeasured) {
  using T = TypeParam;
  // The sizes are in units of the bar. The first one passes although its bound is above the bar,
  // the second one does not.
  for (const double size : {0.5, 3.0}) {
    Case<T> c(256, 256);
    add_rank_one<T>(c.q.view()[0], size * c.bars({}).orthogonality, 7);
    const Errors found = c.find(Check::probe), measured = c.measure();
    EXPECT_EQ(found.orthogonality, measured.orthogonality);
    EXPECT_EQ(found.residual, measured.residual);
  }
  // The residual alone has an error, which is below its bar, while its bound is above.
  Case<T> c(256, 256);
  const double norm = std::ldexp(c.measure().norm, c.scale());
  add_rank_one<T>(c.view_a(), 0.2 * c.bars({}).residual * norm, 8);
  EXPECT_EQ(c.find(Check::probe).residual, c.measure().residual);
}

TYPED_TEST(ErrorProbeTest, SeesWhatIsBelowTheDiagonalOfR) {
  using T = TypeParam;
  for (const Mode mode : {Mode::reduced, Mode::r}) {
    Case<T> c(300, 260, mode);
    for (const auto& [i, j] : {std::pair<index_t, index_t>{1, 0}, {130, 129}, {259, 3}}) {
      Case<T> damaged = c;
      damaged.r.view()[0](i, j) = T(0.125);
      const Errors estimate = damaged.estimate(), measured = damaged.measure();
      // Both add the same squares, in orders that follow from the width of the vectors.
      EXPECT_NEAR(estimate.lower, measured.lower, 300 * 260 * 0x1p-53 * measured.lower);
      EXPECT_GT(estimate.residual, 0.2 * measured.residual);
      EXPECT_LT(estimate.residual, 3 * measured.residual);
    }
  }
}

TYPED_TEST(ErrorProbeTest, NaNFails) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const index_t at : {index_t{0}, index_t{255 * 256 + 255}}) {
    Case<T> c(256, 256);
    c.q.view().data[at] = nan;
    const Errors found = c.find(Check::probe);
    EXPECT_EQ(judge(found, c.bars(found), true), Status::above_bar);
  }
}

TYPED_TEST(ErrorProbeTest, AZeroMatrixHasNoError) {
  using T = TypeParam;
  Case<T> c(200, 200);
  std::fill_n(c.a.view().data, 200 * 200, T(0));
  std::fill_n(c.r.view().data, 200 * 200, T(0));
  EXPECT_EQ(c.estimate().residual, 0);
  c.r.view().data[0] = T(1e-30);
  EXPECT_EQ(c.estimate().residual, std::numeric_limits<double>::infinity());
}

TYPED_TEST(ErrorProbeTest, EstimatesDoNotDependOnThreads) {
  for (const Mode mode : {Mode::reduced, Mode::r}) {
    const Case<TypeParam> c(700, 300, mode);
    const Errors one = c.estimate(1);
    for (const int threads : {2, 3, 8}) {
      const Errors other = c.estimate(threads);
      EXPECT_EQ(one.residual, other.residual);
      EXPECT_EQ(std::isnan(other.orthogonality), mode == Mode::r);
      EXPECT_TRUE(mode == Mode::r || one.orthogonality == other.orthogonality);
      EXPECT_EQ(one.norm, other.norm);
    }
  }
}

/// The rows of a matrix in calls of `rows` rows.
template <class T>
Errors estimate_by_rows(const Case<T>& c, index_t rows) {
  const index_t m = c.problem.m, q_cols = c.problem.q_cols();
  ErrorProbe probe(std::min(rows, m), c.problem.n, q_cols, c.problem.r_rows(), 2);
  for (int repeat = 0; repeat < 2; ++repeat) {  // a matrix leaves nothing for the next
    probe.start<T>(c.r.view()[0], c.scale());
    for (index_t row = 0; row < m; row += rows) {
      const index_t count = std::min(rows, m - row);
      const MatrixView<T> q = q_cols > 0 ? c.q.view()[0].row_block(row, count) : MatrixView<T>{};
      probe.add_rows<T>(c.view_a().row_block(row, count), q);
    }
    if (repeat == 0) probe.finish();
  }
  return probe.finish();
}

TYPED_TEST(ErrorProbeTest, EstimatesDoNotDependOnTheRowsOfACall) {
  for (const Mode mode : {Mode::reduced, Mode::r}) {
    const Case<TypeParam> c(1000, 200, mode);
    const Errors whole = c.estimate();
    for (const index_t rows : {256, 512, 1024}) {
      const Errors found = estimate_by_rows(c, rows);
      EXPECT_EQ(found.residual, whole.residual) << rows;
      EXPECT_EQ(found.norm, whole.norm) << rows;
      EXPECT_EQ(found.diagonal_ratio, whole.diagonal_ratio) << rows;
      EXPECT_TRUE(mode == Mode::r || found.orthogonality == whole.orthogonality) << rows;
    }
    // Other numbers of rows change the rounding alone.
    EXPECT_NEAR(estimate_by_rows(c, 100).norm, whole.norm, 1e-14 * whole.norm);
  }
}

TEST(ErrorProbe, PaysForManyColumns) {
  EXPECT_FALSE(ErrorProbe::pays(100000, 64, 64));
  EXPECT_FALSE(ErrorProbe::pays(64, 100000, 64));
  EXPECT_TRUE(ErrorProbe::pays(512, 512, 512));
  EXPECT_TRUE(ErrorProbe::pays(512, 512, 0));
}

}  // namespace
}  // namespace qrtool::error_probe_test
