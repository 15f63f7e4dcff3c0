// SPDX-License-Identifier: Apache-2.0
// timing_test.cpp: tests how runs are repeated and judged, and the matrices that they get.
#include "app/bench/timing/timing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "app/bench/timing/data.hpp"

namespace qrtool::timing_test {
namespace {

/// Pretends to take the given times.
class FakeRun final : public TimedRun {
 public:
  explicit FakeRun(std::vector<double> seconds) : seconds_(std::move(seconds)) {}
  std::string variant() const override { return "fake"; }
  RunSeconds run() override { return {seconds_.at(runs++), 0}; }
  /// The number of the run.
  Accuracy accuracy() const override { return {.worst = static_cast<double>(runs)}; }
  std::size_t runs = 0;

 private:
  std::vector<double> seconds_;
};

TEST(TimeRuns, WarmUpsDoNotCount) {
  FakeRun run({90, 80, 3, 1, 2, 5, 4});
  const Timing timing = time_runs(run, {2, 5}, 1000);
  EXPECT_EQ(run.runs, 7u);
  EXPECT_EQ(timing.seconds, (std::vector<double>{3, 1, 2, 5, 4}));
  EXPECT_EQ(timing.median(), 3);
  EXPECT_EQ(timing.fastest(), 1);
  EXPECT_EQ(timing.slowest(), 5);
  EXPECT_TRUE(timing.is_warm);
  EXPECT_FALSE(timing.has_outlier());
}

TEST(TimeRuns, KeepsToTheLimit) {
  FakeRun some(std::vector<double>(10, 10));
  EXPECT_EQ(time_runs(some, {2, 5}, 45).seconds.size(), 2u);
  EXPECT_EQ(some.runs, 4u);
  FakeRun one(std::vector<double>(10, 50));
  const Timing cold = time_runs(one, {2, 5}, 45);
  EXPECT_EQ(one.runs, 1u);
  EXPECT_EQ(cold.seconds, std::vector<double>{50}) << "what was measured is not thrown away";
  EXPECT_FALSE(cold.is_warm);
}

TEST(TimeRuns, AFirstRunThatMayHaveBuiltKernelsDoesNotCountForTheLimit) {
  FakeRun built({15, 2, 2, 2, 2, 2, 2});
  const Timing warm = time_runs(built, {2, 5}, 9, {.build_seconds = 20});
  EXPECT_EQ(warm.seconds, (std::vector<double>{2, 2, 2}));
  EXPECT_TRUE(warm.is_warm);
  FakeRun slow(std::vector<double>(10, 50));
  EXPECT_FALSE(time_runs(slow, {2, 5}, 9, {.build_seconds = 20}).is_warm);
  EXPECT_EQ(slow.runs, 1u);
}

TEST(TimeRuns, RepeatsUntilTheMedianIsCertain) {
  const Repeats repeats{.warm_up = 1, .timed = 5, .most = 60};
  FakeRun steady(std::vector<double>(70, 2));
  EXPECT_EQ(time_runs(steady, repeats, 1000).seconds.size(), 5u);
  std::vector<double> wild{0};
  for (int i = 0; i < 70; ++i) wild.push_back(i % 2 == 0 ? 1 : 3);
  FakeRun unsteady(wild);
  const Timing timing = time_runs(unsteady, repeats, 1000);
  EXPECT_EQ(timing.seconds.size(), 60u);
  EXPECT_GT(timing.standard_error(), most_standard_error);
  std::vector<double> settles{0, 1, 3, 1, 3, 1};
  settles.resize(70, 2);
  FakeRun settling(settles);
  const Timing settled = time_runs(settling, repeats, 1000);
  EXPECT_GT(settled.seconds.size(), 5u);
  EXPECT_LT(settled.seconds.size(), 30u);
  EXPECT_LT(settled.standard_error(), most_standard_error);
  EXPECT_EQ(time_runs(unsteady = FakeRun(wild), repeats, 0.001).seconds.size(), 1u);
}

TEST(TimeRuns, ShortWarmUpsAreRepeated) {
  FakeRun run(std::vector<double>(70, 0.25));
  time_runs(run, {.warm_up = 2, .timed = 5, .most = 60, .warm_up_seconds = 2.5}, 1000);
  EXPECT_EQ(run.runs, 10u + 5);
}

TEST(TimeRuns, TheSeedChoosesTheRunThatIsVerified) {
  std::set<int> chosen;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    FakeRun run({90, 80, 3, 1, 2, 5, 4});
    const Timing timing = time_runs(run, {2, 5}, 1000, {.seed = seed});
    ASSERT_EQ(timing.batches.size(), 1u);
    const int verified = timing.batches[0].verified;
    EXPECT_EQ(timing.accuracy.worst, 2 + verified) << "the errors of that run";
    chosen.insert(verified);
  }
  EXPECT_EQ(chosen, (std::set<int>{1, 2, 3, 4, 5}));
}

TEST(TimeRuns, SurroundingsAreNotTimed) {
  FakeRun run({90, 80, 3, 1, 2, 5, 4});
  std::size_t flushes = 0;
  const Timing timing =
      time_runs(run, {2, 5}, 1000, {.before = [&] { ++flushes; }, .first_run = true});
  EXPECT_EQ(flushes, 7u);
  EXPECT_EQ(timing.median(), 3);
  EXPECT_GE(timing.first_seconds, 0) << "wall time";
}

TEST(TimeRuns, TheStandardErrorOfAMedianFollowsFromTheOrder) {
  EXPECT_EQ(standard_error_of_median({2, 2, 2}), 0);
  std::vector<double> values;  // uniform on [1, 3]: 1 / (2 f sqrt(n)) with the density f = 1/2
  for (int i = 0; i <= 10000; ++i) values.push_back(1 + 2e-4 * i);
  EXPECT_NEAR(standard_error_of_median(values), 1.0 / 100 / 2, 5e-4);
}

TEST(TimeRuns, MedianAndOutliers) {
  EXPECT_EQ(median_of({4, 1, 3}), 3);
  EXPECT_EQ(median_of({4, 1, 3, 2}), 2.5);
  EXPECT_TRUE((Timing{.seconds = {1, 1, 2.1}}.has_outlier()));
  EXPECT_FALSE((Timing{.seconds = {1, 1, 2}}.has_outlier()));
  std::vector<double> many(100, 1);
  std::fill_n(many.begin(), 5, 9);
  EXPECT_FALSE((Timing{.seconds = many}.has_outlier()));
  many.back() = 9;
  EXPECT_TRUE((Timing{.seconds = many}.has_outlier()));
}

TEST(Accuracy, TakesFailuresAndNaNSeriously) {
  Accuracy accuracy;
  accuracy.add({.residual = 1e-7, .status = Status::ok}, 10);
  accuracy.add({.residual = 3e-7, .status = Status::unchecked}, 10);
  EXPECT_DOUBLE_EQ(accuracy.mean(), 2e-6);
  EXPECT_DOUBLE_EQ(accuracy.worst, 3e-6);
  EXPECT_EQ(accuracy.failed, 0);
  accuracy.add({.residual = not_measured, .status = Status::above_bar}, 10);
  accuracy.add({.residual = 1e-7, .status = Status::ok}, 10);
  EXPECT_TRUE(std::isnan(accuracy.worst));
  EXPECT_EQ(accuracy.failed, 1);
  EXPECT_EQ(accuracy.matrices, 4);
}

TEST(BenchData, RepeatsWhatItDrew) {
  const BenchData<float> data(20, 1500, 1000, 3, 2);
  const auto drawn = static_cast<index_t>(data.norms().size());
  ASSERT_LT(drawn, 20);
  ASSERT_GT(drawn, 1);
  for (index_t b = 0; b < 20; ++b)
    EXPECT_EQ(data.view()[b](7, 11), data.view()[b % drawn](7, 11)) << b;
  EXPECT_NE(data.view()[0](7, 11), data.view()[1](7, 11));
  EXPECT_NEAR(data.norms()[0], std::sqrt(1.5e6), 10);
}

TEST(BenchData, DrawsEveryKindThatGenerateMakes) {
  const MatrixRequest request{.kind = "rank-deficient", .seed = 3};
  const BenchData<double> data(5, 20, 8, request, 2);
  for (index_t b = 0; b < 5; ++b) {
    Batch<double> expected(1, 20, 8);
    fill_matrix<double>(request, b, expected.view()[0]);
    for (index_t i = 0; i < 20; ++i)
      for (index_t j = 0; j < 8; ++j) EXPECT_EQ(data.view()[b](i, j), expected.view()[0](i, j));
  }
}

template <class T>
class ComplexBenchData : public testing::Test {};
using ComplexTypes = testing::Types<std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(ComplexBenchData, ComplexTypes);

TYPED_TEST(ComplexBenchData, IsWhatGenerateMakes) {
  for (const MatrixKind& kind : matrix_kinds()) {
    const MatrixRequest request{.kind = kind.name, .seed = 3};
    const BenchData<TypeParam> data(3, 20, 8, request, 2);
    for (index_t b = 0; b < 3; ++b) {
      Batch<TypeParam> expected(1, 20, 8);
      fill_matrix<TypeParam>(request, b, expected.view()[0]);
      double squares = 0;
      for (index_t i = 0; i < 20; ++i)
        for (index_t j = 0; j < 8; ++j) {
          const TypeParam x = expected.view()[0](i, j);
          EXPECT_EQ(data.view()[b](i, j), x) << kind.name;
          squares += std::norm(std::complex<double>(x));
        }
      EXPECT_NEAR(data.norms()[static_cast<std::size_t>(b)] / std::sqrt(squares + 1e-300),
                  squares > 0 ? 1 : 0, 1e-12);
    }
  }
}

TYPED_TEST(ComplexBenchData, DrawsTheFirstRowsOfALargeMatrixAsTheWholeOne) {
  constexpr index_t rows = 1'100'000, drawn = (index_t{1} << 23) / 8;
  const BenchData<TypeParam> data(1, rows, 8, 3, 2);
  const Batch<TypeParam> expected(1, rows, 8);
  fill_rows<TypeParam>({.seed = 3}, 0, expected.view()[0], 1000, 1);
  for (const index_t j : {0, 1, 7}) {
    EXPECT_EQ(data.view()[0](1000, j), expected.view()[0](1000, j)) << j;
    EXPECT_EQ(data.view()[0](1000 + drawn, j), expected.view()[0](1000, j)) << j;
  }
}

}  // namespace
}  // namespace qrtool::timing_test
