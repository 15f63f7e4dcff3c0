// SPDX-License-Identifier: Apache-2.0
// bench_test.cpp: tests cases, predictions and the command, but never how long a run took.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "app/bench/cases.hpp"
#include "app/bench/data.hpp"
#include "app/bench/floor.hpp"
#include "app/bench/lapack.hpp"
#include "app/bench/lapack_systems.hpp"
#include "app/bench/timing.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/operations.hpp"
#include "tests/support/run_tool.hpp"

namespace qrtool {
namespace {

using test::read_text;
using test::run_tool;
using test::TemporaryDirectory;
using test::ToolResult;

constexpr std::size_t gib = std::size_t{1} << 30;

TEST(BenchCases, StandardSweepIsThePublishedTable) {
  std::vector<BenchCase> expected;
  for (const auto& [m, n] : {std::pair{64, 64}, {128, 64}, {256, 128}, {512, 256}})
    for (const int batch : {100, 500, 1000, 5000, 10000, 15000}) expected.push_back({m, n, batch});
  for (const auto& [m, n] : {std::pair{512, 512}, {1024, 512}, {5000, 5000}})
    for (const int batch : {1, 8, 16, 32}) expected.push_back({m, n, batch});
  EXPECT_EQ(expected.size(), 36u);
  EXPECT_EQ(standard_sweep(), expected);
}

TEST(BenchCases, QuickIsAPartOfIt) {
  const std::vector<BenchCase> all = standard_sweep(), quick = quick_sweep();
  EXPECT_LT(quick.size(), all.size() / 2);
  for (const BenchCase& size : quick)
    EXPECT_NE(std::find(all.begin(), all.end(), size), all.end()) << size.m << "x" << size.n;
}

TEST(BenchCases, WhatARequestMeans) {
  BenchOptions o;
  EXPECT_EQ(schedule_of(o).cases, quick_sweep()) << "without a request";
  EXPECT_TRUE(schedule_of(o).total_seconds.has_value());

  o.sweep = true;
  EXPECT_EQ(schedule_of(o).cases, standard_sweep());
  o.sweep_kind = SweepKind::shapes;
  EXPECT_EQ(schedule_of(o).cases, shapes_sweep());
  o.sweep_kind = SweepKind::tall;
  EXPECT_EQ(schedule_of(o).cases, tall_sweep());
  EXPECT_EQ(tall_sweep().front(), (BenchCase{1600, 2, 1, 1}));
  EXPECT_EQ(tall_sweep()[5], (BenchCase{1600, 2, 1, 32}));
  std::vector<BenchCase> of_a_device = tall_sweep();
  forget_threads(of_a_device);
  EXPECT_EQ(of_a_device.size(), tall_sweep().size() - 25);
  EXPECT_EQ(of_a_device[1], (BenchCase{1600, 4, 1}));
  EXPECT_EQ(tall_sweep().back(), (BenchCase{1'000'000, 128, 1}));
  o.sweep_kind = SweepKind::standard;
  EXPECT_EQ(schedule_of(o).repeats.warm_up, 2);
  EXPECT_EQ(schedule_of(o).repeats.timed, 5);
  EXPECT_EQ(schedule_of(o).total_seconds, std::nullopt);

  o.quick = true;
  o.kinds = {"gauss", "band"};
  EXPECT_EQ(schedule_of(o).cases.size(), 2 * quick_sweep().size());
  EXPECT_EQ(schedule_of(o).cases[1].kind, "band");
  o.kinds = {"gauss"};
  EXPECT_EQ(schedule_of(o).cases, quick_sweep());
  EXPECT_LT(schedule_of(o).total_seconds, 60);

  o = {};
  o.shapes = {{30, 20}, {7, 9}};
  EXPECT_EQ(schedule_of(o).cases, (std::vector<BenchCase>{{30, 20, 1}, {7, 9, 1}}));
  o.batches = {5, 6};
  o.limit_seconds = 3;
  EXPECT_EQ(schedule_of(o).cases,
            (std::vector<BenchCase>{{30, 20, 5}, {30, 20, 6}, {7, 9, 5}, {7, 9, 6}}));
  EXPECT_EQ(schedule_of(o).cell_seconds, 3);
}

TEST(BenchCases, OperationsAreLapacksCount) {
  const auto flops = [](index_t m, index_t n, Mode mode) {
    return lapack_operations(problem_of({m, n, 10}, ElementType::float32, mode));
  };
  EXPECT_DOUBLE_EQ(flops(6, 3, Mode::r), 10 * (2.0 * 6 * 9 - 2.0 / 3 * 27));
  EXPECT_DOUBLE_EQ(flops(6, 3, Mode::reduced), 2 * flops(6, 3, Mode::r));
  EXPECT_DOUBLE_EQ(flops(3, 6, Mode::r), flops(6, 3, Mode::r)) << "m < n: R of the transposed";
  EXPECT_DOUBLE_EQ(flops(3, 6, Mode::reduced), flops(6, 3, Mode::r) + flops(3, 3, Mode::r))
      << "m < n: Q is m x m";
}

TEST(BenchCases, AComplexOperationIsFourRealOnes) {
  for (const BenchTask task : {BenchTask::factor, BenchTask::solve}) {
    const auto flops = [&](ElementType type) {
      return case_flops({6, 3, 10}, type, Mode::reduced, task);
    };
    EXPECT_DOUBLE_EQ(flops(ElementType::complex64), 4 * flops(ElementType::float32));
    EXPECT_DOUBLE_EQ(flops(ElementType::complex128), 4 * flops(ElementType::float64));
  }
}

TEST(Floor, ComplexDataAreTwiceAsLarge) {
  const auto seconds = [](ElementType type, Mode mode) {
    BenchHeader header;
    header.type = type;
    header.mode = mode;
    return floor_seconds(header, {6, 3, 10}, 1e9);
  };
  for (const Mode mode : {Mode::reduced, Mode::r, Mode::raw}) {
    EXPECT_DOUBLE_EQ(seconds(ElementType::complex64, mode),
                     2 * seconds(ElementType::float32, mode));
    EXPECT_DOUBLE_EQ(seconds(ElementType::complex128, mode),
                     2 * seconds(ElementType::float64, mode));
  }
  EXPECT_DOUBLE_EQ(seconds(ElementType::complex128, Mode::r), 16 * 10 * (18 + 9) * 1e-9);
}

TEST(BenchCases, OperationsOfLeastSquaresAreThoseOfGels) {
  const BenchCase size{6, 3, 10};
  const double of_r = 2.0 * 6 * 9 - 2.0 / 3 * 27, of_x = 4.0 * 6 * 3 - 9;
  const auto flops = [&](BenchTask task) {
    return case_flops(size, ElementType::float32, Mode::r, task);
  };
  EXPECT_DOUBLE_EQ(flops(BenchTask::solve), 10 * (of_r + of_x));
  EXPECT_DOUBLE_EQ(flops(BenchTask::solve_shared), of_r + 10 * of_x) << "A is factored once";
  EXPECT_DOUBLE_EQ(flops(BenchTask::solve_weighed), 10 * (of_r + of_x)) << "weights make others";
  EXPECT_DOUBLE_EQ(flops(BenchTask::factor),
                   lapack_operations(problem_of(size, ElementType::float32, Mode::r)));
  const auto with_ridge = [](const BenchCase& of, double ridge) {
    return case_flops(of, ElementType::float32, Mode::r, BenchTask::solve, ridge);
  };
  EXPECT_DOUBLE_EQ(with_ridge(size, 0.5), with_ridge({9, 3, 10}, 0)) << "three rows more";
  EXPECT_DOUBLE_EQ(with_ridge({3, 60, 10}, 0),
                   10 * (2.0 * 60 * 9 - 2.0 / 3 * 27 + 4.0 * 60 * 3 - 9))
      << "wide: R is that of A'";
}

TEST(BenchCases, LeastSquaresHaveCasesOfTheirOwn) {
  BenchOptions o;
  o.solve = true;
  EXPECT_EQ(schedule_of(o).cases, solve_sweep(BenchTask::solve, true));
  o.shared = true;
  EXPECT_EQ(schedule_of(o).cases, solve_sweep(BenchTask::solve_shared, true));
  o.sweep = true;
  EXPECT_EQ(schedule_of(o).cases, solve_sweep(BenchTask::solve_shared, false));
  o.weighed = true;
  EXPECT_EQ(schedule_of(o).cases, solve_sweep(BenchTask::solve_weighed, false));
  for (const BenchTask task :
       {BenchTask::solve, BenchTask::solve_shared, BenchTask::solve_weighed}) {
    const std::vector<BenchCase> all = solve_sweep(task, false), quick = solve_sweep(task, true);
    EXPECT_TRUE(std::equal(quick.begin(), quick.end(), all.begin()));
    EXPECT_LT(quick.size(), all.size());
  }
}

TEST(BenchCases, SystemsGoInChunksThatFit) {
  const Problem p = problem_of({288, 97, 262'144}, ElementType::float64, Mode::r);
  const Limits limits{.host_bytes = gib, .threads = 2};
  const index_t chunk = systems_at_once(p, BenchTask::solve, limits);
  EXPECT_GT(chunk, 50);
  EXPECT_LT(chunk * 3 * static_cast<index_t>(p.input_bytes()), 65 << 20);
  EXPECT_GT(systems_at_once(p, BenchTask::solve_shared, limits), 20 * chunk) << "only b and x";
  EXPECT_LT(systems_at_once(p, BenchTask::solve_weighed, limits),
            systems_at_once(p, BenchTask::solve_shared, limits));
  EXPECT_EQ(systems_at_once(problem_of({16, 4, 7}, p.type, p.mode), BenchTask::solve, limits), 7);
  EXPECT_THROW(systems_at_once(p, BenchTask::solve, {.host_bytes = 1 << 16}), LimitError);
}

TEST(BenchCases, ABatchThatDoesNotFitSaysWhy) {
  const Problem p = problem_of({512, 256, 15000}, ElementType::float32, Mode::reduced);
  Limits limits{.host_bytes = 64 * gib,
                .device_bytes = 64 * gib,
                .max_allocation_bytes = 16 * gib,
                .is_cpu = false};
  const std::size_t bytes = p.input_bytes() + p.output_bytes();
  EXPECT_EQ(objection_to_residence(p, bytes, limits), "");
  limits.max_allocation_bytes = 4 * gib;
  EXPECT_EQ(objection_to_residence(p, bytes, limits),
            "the batch needs 7.3 GiB in one piece; the device gives 4.0 GiB");
  limits.device_bytes = 8 * gib;
  EXPECT_EQ(objection_to_residence(p, bytes, limits),
            "the batch needs 18 GiB of device memory; the device gives 8.0 GiB");
  limits.host_bytes = 2 * gib;
  EXPECT_EQ(objection_to_residence(p, bytes, limits),
            "the batch needs 7.3 GiB of host memory; the limit is 2.0 GiB");
  limits = {.host_bytes = 16 * gib,
            .device_bytes = 64 * gib,
            .max_allocation_bytes = 64 * gib,
            .is_cpu = true};
  EXPECT_EQ(objection_to_residence(p, bytes, limits),
            "the batch needs 26 GiB of host memory; the limit is 16 GiB")
      << "a device that is the CPU takes its memory from the host's";
}

TEST(CostHistory, PredictsFromTheSameShapeElseFromTheBestRate) {
  CostHistory history;
  EXPECT_GT(history.predict({64, 64, 1}, 1e9), 0);
  EXPECT_LT(history.predict({64, 64, 1}, 1e9), 1) << "knows nothing: is not afraid";
  EXPECT_LT(CostHistory(false).predict({16384, 16384, 1}, 11.7e12), 60) << "a GPU's first case";
  EXPECT_GT(history.predict({16384, 16384, 1}, 11.7e12), 60);
  history.add({8, 8, 1}, 1e3, 1);
  EXPECT_LT(history.predict({64, 64, 1}, 1e9), 1) << "a tiny case tells nothing about rates";
  history.add({64, 64, 100}, 1e9, 2);
  EXPECT_DOUBLE_EQ(history.predict({64, 64, 300}, 3e9), 6);
  history.add({128, 64, 100}, 4e9, 4);
  EXPECT_DOUBLE_EQ(history.predict({64, 64, 300}, 3e9), 6);
  EXPECT_DOUBLE_EQ(history.predict({512, 512, 1}, 1e10), 10) << "1 GFLOP/s is the best so far";
}

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

const std::vector<std::string> tiny{"bench", "--shape", "8x8", "--batch", "4", "--backend", "cpu"};

std::vector<std::string> tiny_with(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = tiny;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Bench, ATinyRunAsAUserMakesIt) {
  const ToolResult done = run_tool(tiny);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_NE(done.out.find("\n8x8             4  cpu/"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("eigen ms"), std::string::npos) << done.out;
  EXPECT_EQ(done.out.find("above their bar"), std::string::npos) << done.out;
}

TEST(Bench, RawFactorsAndLapacksSignsOfAnyKindAreMeasured) {
  for (const std::string mode : {"raw", "reduced"}) {
    const ToolResult done = run_tool(tiny_with({"--mode", mode, "--sign", "lapack", "--kind",
                                                "clustered", "--against", "none", "--json"}));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const auto json = nlohmann::json::parse(done.out);
    EXPECT_EQ(json["mode"], mode);
    EXPECT_EQ(json["sign"], "lapack");
    EXPECT_EQ(json["kind"], "clustered");
  }
}

TEST(Bench, ComplexMatricesOfBothTypesInEveryMode) {
  for (const std::string precision : {"single", "double"})
    for (const std::string mode : {"reduced", "r", "raw"}) {
      const ToolResult done =
          run_tool(tiny_with({"--complex", "--precision", precision, "--mode", mode, "--kind",
                              "gauss,clustered", "--seeds", "2", "--json"}));
      ASSERT_EQ(done.exit_code, 0) << done.err;
      const auto json = nlohmann::json::parse(done.out);
      EXPECT_EQ(json["precision"], precision == "single" ? "complex64" : "complex128");
      for (const auto& one : json["cases"]) {
        EXPECT_EQ(one["variant"], "cpu/complex");
        EXPECT_EQ(one["failed"], 0);
        EXPECT_GT(one["baselines"]["eigen"]["speed_up"], 0);
        if (mode == "r") continue;
        EXPECT_GT(one["error_worst"], 0);
        EXPECT_LT(one["error_worst"], precision == "single" ? 1e-4 : 1e-13) << one;
      }
    }
}

TEST(Bench, ComplexVariantsHaveColumnsAndRealOnesNone) {
  const ToolResult done = run_tool(tiny_with({"--complex", "--against", "variants,cpu"}));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("complex64, mode reduced"), std::string::npos) << done.out;
  for (const char* name : {"  cpu/complex ms", "  cpu/eigen ms", "  cpu ms"})
    EXPECT_NE(done.out.find(name), std::string::npos) << name << done.out;
  EXPECT_EQ(done.out.find("cpu/batched"), std::string::npos) << done.out;
}

TEST(Bench, AComplexBatchStaysOnADevice) {
  for (const std::string mode : {"reduced", "r", "raw"}) {
    const ToolResult done =
        run_tool({"bench", "--complex", "--json", "--backend", "opencl", "--shape", "20x7",
                  "--batch", "5", "--mode", mode, "--against", "from-host"});
    if (done.exit_code == 4) GTEST_SKIP() << done.err;
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const auto json = nlohmann::json::parse(done.out);
    const auto& one = json["cases"][0];
    EXPECT_EQ(json["precision"], "complex64");
    EXPECT_TRUE(one["variant"].get<std::string>().starts_with("opencl/")) << one["variant"];
    EXPECT_EQ(one["failed"], 0);
    EXPECT_GT(one["check_seconds"], 0);
    EXPECT_GT(one["baselines"]["from-host"]["speed_up"], 0);
    if (mode == "r") continue;
    EXPECT_LT(one["error_worst"], 1e-4) << one;
    EXPECT_GT(one["error_worst"], 0) << one;
  }
}

TEST(Bench, AsManyRunsAreTimedAsAreAskedFor) {
  for (const std::size_t runs : {1, 37}) {
    const ToolResult done = run_tool(tiny_with({"--runs", std::to_string(runs), "--json"}));
    ASSERT_EQ(done.exit_code, 0) << done.err;
    for (const auto& one : nlohmann::json::parse(done.out)["cases"])
      EXPECT_EQ(one["seconds"]["all"].size(), runs) << one;
  }
}

TEST(Bench, EveryVariantHasAColumn) {
  const ToolResult done = run_tool(tiny_with({"--against", "variants"}));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  for (const char* name : {"cpu/batched ms", "cpu/tall ms", "cpu/blocked ms", "cpu/eigen ms"})
    EXPECT_NE(done.out.find(name), std::string::npos) << name << done.out;
  for (const char* name : {"  eigen ms", "cpu/complex"})
    EXPECT_EQ(done.out.find(name), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("] cpu/tall: at most one block of"), std::string::npos) << done.out;
}

TEST(Bench, ExportsHoldWhatWasPrinted) {
  const TemporaryDirectory directory;
  const std::string json = directory / "b.json", csv = directory / "b.csv",
                    markdown = directory / "b.md";
  const std::vector<std::string> arguments =
      tiny_with({"--shape", "5x9,9x5", "--quiet", "--export-json", json, "--export-csv", csv,
                 "--export-markdown", markdown, "--precision", "double"});
  const ToolResult done = run_tool(arguments);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(directory.names(), (std::vector<std::string>{"b.csv", "b.json", "b.md"}));
  const auto document = nlohmann::json::parse(read_text(json));
  EXPECT_EQ(document["cases"].size(), 3u) << "an option that is repeated adds";
  EXPECT_LT(document["cases"][0]["error_worst"], 1e-12);
  EXPECT_GT(document["cases"][0]["error_mean"], 0);
  const std::string lines = read_text(csv);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4);
  EXPECT_NE(lines.find(",double,reduced,gauss,5,9,4,"), std::string::npos) << lines;
  EXPECT_NE(read_text(markdown).find("| 9x5 | 4 | cpu/"), std::string::npos);

  const ToolResult again = run_tool(arguments);
  EXPECT_EQ(again.exit_code, 5) << "an existing file is kept";
  EXPECT_NE(again.err.find("b.json"), std::string::npos) << again.err;
}

TEST(Bench, JsonOnStandardOutput) {
  const ToolResult done = run_tool(tiny_with({"--json", "--mode", "r", "--against", "none"}));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const auto document = nlohmann::json::parse(done.out);
  EXPECT_EQ(document["mode"], "r");
  EXPECT_EQ(document["cases"][0]["error_worst"], nullptr);
  EXPECT_EQ(document["cases"][0]["baselines"].size(), 0u);
}

/// The cases of a run of `bench --solve --json`.
nlohmann::json solved(std::vector<std::string> more) {
  std::vector<std::string> arguments{"bench", "--solve", "--json", "--quick", "--backend", "cpu"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ToolResult done = run_tool(arguments);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  return nlohmann::json::parse(done.out)["cases"];
}

TEST(BenchSolve, EveryRouteOfTheToolSolvesAndChecks) {
  const std::pair<std::vector<std::string>, std::string> routes[] = {
      {{"--shape", "16x4", "--batch", "100"}, "cpu/batched"},
      {{"--shape", "100000x16", "--batch", "2"}, "cpu/tall"},
      {{"--shape", "300x200", "--batch", "2"}, "cpu/"},
      {{"--shape", "5x9", "--batch", "3"}, "cpu/"},
      {{"--shape", "40x3", "--batch", "1000", "--shared"}, "one QR for all"},
      {{"--shape", "40x30", "--batch", "3", "--shared"}, "cpu/"},
  };
  for (const char* precision : {"single", "double"}) {
    for (auto [arguments, variant] : routes) {
      arguments.insert(arguments.end(), {"--precision", precision, "--against", "none"});
      const nlohmann::json cases = solved(arguments);
      ASSERT_EQ(cases.size(), 1u);
      const nlohmann::json& one = cases[0];
      EXPECT_EQ(one["variant"].get<std::string>().find(variant), 0u) << one["variant"];
      EXPECT_GT(one["error_worst"], 0) << one;
      EXPECT_LT(one["error_worst"], precision == std::string("double") ? 1e-14 : 1e-5) << one;
      EXPECT_EQ(one["failed"], 0);
    }
  }
}

TEST(BenchSolve, ARidgeIsThatOfEveryRouteAndOfLapack) {
  const std::vector<std::string> routes[] = {
      {"--shape", "16x4,4x16", "--batch", "100", "--ridge", "0.5"},
      // Rows so large that R has a scale.
      {"--shape", "100000x16", "--batch", "2", "--precision", "double", "--ridge", "1e200"},
      {"--shape", "300x200,30x50", "--batch", "2", "--complex", "--ridge", "2"},
      {"--shape", "40x3", "--batch", "1000", "--shared", "--ridge", "2"},
      {"--shape", "40x3", "--batch", "100", "--shared", "--weights", "--ridge", "2"}};
  for (const std::vector<std::string>& arguments : routes) {
    for (const nlohmann::json& one : solved(arguments)) {
      EXPECT_GT(one["error_worst"], 0) << one;
      EXPECT_LT(one["error_worst"], 1e-5) << one;
      EXPECT_EQ(one["failed"], 0) << one;
      for (const auto& [name, cell] : one["baselines"].items())
        EXPECT_TRUE(cell["speed_up"].is_null() || cell["speed_up"] > 0) << name;
    }
  }
}

TEST(BenchSolve, ADeviceSolvesWhatSolveGivesIt) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--shape", "16x4,4x16"},
        {"--shape", "16x4,4x16", "--ridge", "2"},
        {"--shape", "40x3", "--shared", "--ridge", "2"},
        {"--shape", "40x3", "--shared", "--weights", "--ridge", "2"}}) {
    std::vector<std::string> arguments{"bench",     "--solve", "--json",      "--quick",
                                       "--batch",   "50",      "--precision", "double",
                                       "--against", "none",    "--backend",   "opencl"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ToolResult done = run_tool(arguments);
    if (done.exit_code == 4) GTEST_SKIP() << done.err;
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const auto document = nlohmann::json::parse(done.out);
    EXPECT_EQ(document["ridge"], more.back() == "2" ? 2 : 0);
    EXPECT_EQ(document["notes"].dump().find("left to the CPU"), std::string::npos);
    for (const auto& one : document["cases"]) {
      EXPECT_GT(one["error_worst"], 0) << one;
      EXPECT_LT(one["error_worst"], 1e-14) << one;
      EXPECT_GT(one["seconds"]["median"], 0) << one;
      EXPECT_GT(one["check_seconds"], 0) << "by the device's clock";
    }
  }
}

TEST(BenchSolve, ADeviceLeavesComplexSystemsToTheCpu) {
  for (const char* shared : {"", "--shared"}) {
    std::vector<std::string> arguments{"bench",     "--solve", "--complex", "--json",
                                       "--shape",   "16x4",    "--batch",   "50",
                                       "--against", "none",    "--backend", "opencl"};
    if (*shared != 0) arguments.push_back(shared);
    const ToolResult done = run_tool(arguments);
    if (done.exit_code == 4) GTEST_SKIP() << done.err;
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const auto document = nlohmann::json::parse(done.out);
    EXPECT_EQ(document["cases"][0]["seconds"], nullptr);
    EXPECT_EQ(document["notes"][0], "device: solve takes such systems to the CPU: A is complex");
  }
}

TEST(BenchSolve, TheVariantOfADeviceIsThatOfItsRoute) {
  const std::pair<std::vector<std::string>, std::string> routes[] = {
      {{"--shape", "16x4"}, "normal equations"},
      {{"--shape", "4100x3"}, "normal equations"},
      {{"--shape", "140x130"}, "opencl/"},
      {{"--shape", "16x4", "--variant", "opencl/vector"}, "opencl/vector"},
      {{"--shape", "40x3", "--shared"}, "one QR for all"},
  };
  for (const auto& [more, variant] : routes) {
    std::vector<std::string> arguments{"bench",     "--solve", "--json",      "--quick",
                                       "--batch",   "20",      "--precision", "double",
                                       "--against", "none",    "--backend",   "opencl"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ToolResult done = run_tool(arguments);
    if (done.exit_code == 4) GTEST_SKIP() << done.err;
    ASSERT_EQ(done.exit_code, 0) << done.err;
    const auto one = nlohmann::json::parse(done.out)["cases"][0];
    EXPECT_EQ(one["variant"].get<std::string>().find(variant), 0u) << one["variant"] << more[1];
  }
}

TEST(BenchSolve, LapackIsNamedAndTimed) {
  CpuBackend backend(Limits{});
  const BenchSetup setup{.backend = backend, .variant = {}, .limits = {}};
  if (make_lapack_solver(LapackMethod::gels, setup)->text() == "not found")
    GTEST_SKIP() << "no LAPACK";
  for (const char* shared : {"", "--shared"}) {
    std::vector<std::string> arguments{"--shape", "30x5,64x4", "--batch",
                                       "3,500",   "--against", "gels,gelsy,normal-equations"};
    if (*shared != 0) arguments.push_back(shared);
    for (const nlohmann::json& one : solved(arguments)) {
      ASSERT_EQ(one["baselines"].size(), 3u);
      for (const auto& [name, cell] : one["baselines"].items())
        EXPECT_GT(cell["speed_up"], 0) << name;
    }
  }
}

TEST(BenchSolve, ComplexSystemsAreSolvedOnTheCpu) {
  for (const std::string precision : {"single", "double"})
    for (const char* shared : {"", "--shared"}) {
      std::vector<std::string> arguments{"--complex", "--shape",     "16x4,30x20", "--batch",
                                         "100",       "--precision", precision};
      if (*shared != 0) arguments.push_back(shared);
      for (const nlohmann::json& one : solved(arguments)) {
        EXPECT_GT(one["error_worst"], 0) << one;
        EXPECT_LT(one["error_worst"], precision == "double" ? 1e-14 : 1e-5) << one;
        EXPECT_EQ(one["failed"], 0);
        EXPECT_TRUE(one["baselines"]["gels"].contains("speed_up"));
      }
    }
}

/// Expects that a method finds x of a system with a known solution. `w` is its workspace.
template <class T>
void expect_known_solution(typename LapackSolver<T>::Workspace w, const LapackSolver<T>& solver,
                           bool (LapackSolver<T>::*solve)(const SystemSize&, T*, T*,
                                                          typename LapackSolver<T>::Workspace&)
                               const) {
  // Columns (1 1 1 1) and (0 1 2 3); b = 1 + 2 t and 3 - t, with residuals that A'r does not see.
  std::vector<T> a{1, 1, 1, 1, 0, 1, 2, 3};
  std::vector<T> b{2, 2, 4, 8, 3, 2, 1, 0};
  ASSERT_TRUE((solver.*solve)({.m = 4, .n = 2, .p = 2}, a.data(), b.data(), w));
  EXPECT_NEAR(b[0], 1, 1e-5);
  EXPECT_NEAR(b[1], 2, 1e-5);
  EXPECT_NEAR(b[4], 3, 1e-5);
  EXPECT_NEAR(b[5], -1, 1e-5);
}

TEST(LapackSolver, EveryMethodFindsAKnownSolution) {
  const LapackLibrary library = load_lapack("", {"gels", "gelsy", "syrk", "potrf"});
  if (library.file.empty()) GTEST_SKIP() << "no LAPACK";
  const auto check = [&]<class T>(const LapackSolver<T>& solver) {
    const auto workspace = solver.workspace({.m = 4, .n = 2, .p = 2});
    for (const auto solve :
         {&LapackSolver<T>::gels, &LapackSolver<T>::gelsy, &LapackSolver<T>::normal_equations})
      expect_known_solution<T>(workspace, solver, solve);
    std::vector<T> a{1, 1, 1, 1, 1, 1, 1, 1}, b{1, 2, 3, 4};
    auto w = workspace;
    EXPECT_FALSE(solver.normal_equations({.m = 4, .n = 2, .p = 1}, a.data(), b.data(), w))
        << "equal columns";
  };
  const LapackSolver<std::complex<double>> solver(library);
  auto workspace = solver.workspace({.m = 3, .n = 1, .p = 1});
  using C = std::complex<double>;
  std::vector<C> a{{0, 1}, {1, 0}, {1, 1}}, b{{-3, 2}, {2, 3}, {-1, 5}};  // b = (2 + 3i) a
  ASSERT_TRUE(solver.gels({.m = 3, .n = 1, .p = 1}, a.data(), b.data(), workspace));
  EXPECT_NEAR(std::abs(b[0] - C(2, 3)), 0, 1e-14);
  check(LapackSolver<float>(library));
  check(LapackSolver<double>(library));
}

TEST(Bench, ACellThatCannotBeMeasuredSaysWhyAndTheRestGoesOn) {
  const ToolResult done = run_tool({"bench", "--shape", "3000x3000,8x8", "--backend", "cpu",
                                    "--memory", "1MiB", "--against", "eigen,lapack,textbook"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("\n3000x3000       1  --   "), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("] cpu: one 3000x3000 matrix of float32 needs "), std::string::npos)
      << done.out;
  EXPECT_NE(done.out.find("] textbook: "), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("\n8x8             1  cpu/"), std::string::npos) << done.out;
}

TEST(Bench, WhatContradictsIsAUsageError) {
  const std::pair<std::vector<std::string>, std::string> wrong[] = {
      {{"bench", "--against", "eigne"}, "did you mean 'eigen'?"},
      {{"bench", "--shape", "8"}, "is not a shape"},
      {{"bench", "--shape", "0x8"}, "nothing to measure"},
      {{"bench", "--shape", "10x8x8"}, "hint: --shape 8x8 --batch 10"},
      {{"bench", "--batch", "8"}, "--batch needs --shape"},
      {{"bench", "--shape", "8x8", "--batch", "0"}, "is not a whole number"},
      {{"bench", "--sweep", "--shape", "8x8"}, "--sweep contradicts --shape"},
      {{"bench", "--gemm", "--sweep"}, "--gemm measures products on an OpenCL device"},
      {{"bench", "--shared"}, "--shared needs --solve"},
      {{"bench", "--ridge", "1"}, "--ridge needs --solve"},
      {{"bench", "--solve", "--ridge", "-1"}, "--ridge"},
      {{"bench", "--solve", "--mode", "r"}, "hint: leave these away"},
      {{"bench", "--arithmetic", "mixed", "--precision", "double"},
       "--arithmetic mixed contradicts --precision double"},
      {{"bench", "--mode", "raw", "--sign", "positive"}, "--sign positive contradicts --mode raw"},
      {{"bench", "--kind", "gaus"}, "did you mean 'gauss'?"},
      {{"bench", "--kind", "band,upper+gaus"}, "did you mean 'gauss'?"},
      {{"bench", "--complex", "--gemm"}, "bench --gemm is for real matrices"},
      {{"bench", "--complex", "--rates"}, "--rates measures all variants of a backend"},
      {{"bench", "--complex", "--against", "textbook"}, "it takes no complex matrices"},
      {{"bench", "--complex", "--against", "gels"}, "it solves least squares"},
      {{"bench", "--seeds", "0"}, "is not a whole number"},
      {{"bench", "--runs", "0"}, "is not a whole number"},
      {{"bench", "--tolerance", "0.1"}, "--tolerance needs --compare"},
      {{"bench", "--portable"}, "need --backend opencl"},
      {{"bench", "--first-run", "--backend", "opencl"}, "--first-run measures one case"},
      {{"bench", "--gemm", "--cold"}, "take no --seeds, --runs, --cold"},
      {{"bench", "--solve", "--kind", "zero"}, "--solve measures solutions"},
      {{"bench", "--against", "eigen,none"}, "none stands alone"},
      {{"bench", "--solve", "--against", "eigen"}, "hint: with --solve: gels"},
      {{"bench", "--against", "gels"}, "--against gels: it solves least squares"},
      {{"bench", "--solve", "--mode", "r"}, "--solve measures solutions"},
      {{"bench", "--solve", "--gemm"}, "--solve measures solutions"},
      {{"bench", "--export-json", "-"}, "cannot be standard output"},
      {{"bench", "--export-json", "x", "--export-csv", "x"}, "cannot both be 'x'"},
      {{"bench", "--shape", "8x8", "--variant", "cpu/eigne"}, "did you mean 'cpu/eigen'?"},
  };
  for (const auto& [arguments, words] : wrong) {
    const ToolResult done = run_tool(arguments);
    EXPECT_EQ(done.exit_code, 2) << words << "\n" << done.err;
    EXPECT_NE(done.err.find(words), std::string::npos) << words << "\n" << done.err;
  }
}

TEST(Lapack, TheReferenceIsNamedAsUnoptimised) {
  const Limits limits{.host_bytes = std::size_t{1} << 28, .threads = 1};
  const std::string text = make_lapack(limits, "liblapack.so.3")->text();
  if (text == "not found") GTEST_SKIP() << "no liblapack.so.3";
  EXPECT_NE(text.find("liblapack.so.3"), std::string::npos) << text;
  const bool is_reference = text.starts_with("LAPACK ");
  EXPECT_TRUE(is_reference || text.starts_with("OpenBLAS ") || text.starts_with("MKL ")) << text;
  EXPECT_EQ(text.find("reference, unoptimised") != std::string::npos, is_reference) << text;
}

TEST(Lapack, TakesEveryType) {
  const auto lapack = make_lapack({.host_bytes = std::size_t{1} << 28, .threads = 2});
  if (lapack->text() == "not found") GTEST_SKIP() << "no LAPACK";
  for (const ElementType type : {ElementType::float32, ElementType::float64, ElementType::complex64,
                                 ElementType::complex128})
    for (const Mode mode : {Mode::reduced, Mode::r}) {
      const Problem p = problem_of({.m = 20, .n = 7, .batch = 5}, type, mode);
      EXPECT_GT(lapack->prepare(p, {}, 1)->run().factor, 0) << name_of(type);
    }
}

TEST(Lapack, AMissingLibraryIsNamed) {
  const Limits limits{.host_bytes = std::size_t{1} << 28, .threads = 1};
  const auto lapack = make_lapack(limits, "/nowhere/liblapack.so");
  EXPECT_EQ(lapack->text(), "not found");
  try {
    lapack->prepare({.count = 1, .m = 2, .n = 2}, {}, 1);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/liblapack.so"), std::string::npos);
  }
}

}  // namespace
}  // namespace qrtool
