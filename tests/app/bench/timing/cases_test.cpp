// SPDX-License-Identifier: Apache-2.0
// cases_test.cpp: tests which cases a request means, their operations and bytes, and predictions.
#include "app/bench/timing/cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/bench/table/floor.hpp"
#include "core/error.hpp"
#include "core/problem/operations.hpp"

namespace qrtool::cases_test {
namespace {

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

}  // namespace
}  // namespace qrtool::cases_test
