// SPDX-License-Identifier: Apache-2.0
// gap_sides_test.cpp: right sides of one A that leave rows of their own out, or have weights of
// their own, on a device.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "app/engine/group_engine.hpp"
#include "app/engine/opencl.hpp"
#include "core/error.hpp"
#include "gpu/host/device.hpp"
#include "gpu/pipeline/opencl_backend.hpp"

namespace qrtool::test::gap_sides_test {
namespace {

constexpr index_t m = 50, n = 12, sides = 2100;

/// One A, and right sides as rows: each third has gaps of its own, and one has too few rows.
struct Data {
  Data() : a(m * n), b(sides * m) {
    std::mt19937_64 random(4);
    std::normal_distribution<double> normal;
    for (double& e : a) e = normal(random);
    for (double& e : b) e = normal(random);
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (index_t s = 0; s < sides; s += 3)
      for (index_t i = 0; i < 1 + s % 7; ++i) b[s * m + (s + 3 * i) % m] = nan;
    for (index_t i = n - 1; i < m; ++i) b[few * m + i] = nan;
  }
  static constexpr index_t few = 9;
  std::vector<double> a, b;
};

SolveProblem problem_with_gaps() {
  return {.type = ElementType::float64,
          .m = m,
          .n = n,
          .rank = {.tolerance = default_rank_tolerance(ElementType::float64, n)},
          .skips_missing = true,
          .wants_se = true};
}

/// What an engine says of some right sides of the data.
struct Answer {
  explicit Answer(index_t count) : x(count * n), se(count * n), reports(count), findings(count) {}
  RightSideBlock<double> block(const std::vector<double>& b) {
    return {.count = std::ssize(reports),
            .b = b.data(),
            .b_places = VectorPlaces::rows(m),
            .x = x.data(),
            .se = se.data(),
            .x_places = VectorPlaces::rows(n),
            .reports = reports,
            .findings = findings};
  }
  std::vector<double> x, se;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
};

/// Solves as `solve` does: on the CPU, or on a device.
Answer solve(const Data& data, const std::vector<double>& b, std::shared_ptr<Backend> backend) {
  const index_t count = std::ssize(b) / m;
  const SolveProblem problem = problem_with_gaps();
  const Limits limits{.host_bytes = std::size_t{1} << 30, .threads = 2};
  const SystemsShape shape{.sides = {.p = 1,
                                     .as_rows = true,
                                     .x_dims = {sides, n},
                                     .solution_dims = {sides},
                                     .b_leading = {sides}}};
  SystemsShape all = shape;
  all.sides.batch = {sides};
  SolvePlan plan = plan_solve(all, problem, limits, "");
  SolveDevice device{.backend = backend};
  if (backend) {
    EXPECT_EQ(plan_on_device(all, problem, plan, "", device), "");
    EXPECT_TRUE(device.is_shared && device.takes_gaps);
    take_device(all, problem, limits, plan);
  }
  Answer answer(count);
  GroupEngine<double> engine(
      {.problem = problem, .plan = plan, .limits = limits, .device = backend ? &device : nullptr},
      {data.a.data(), m, n, n}, nullptr);
  engine.run({}, answer.block(b));
  return answer;
}

/// Null where there is no device.
std::shared_ptr<Backend> device_backend() {
  try {
    const Limits host{.host_bytes = std::size_t{1} << 30, .threads = 2};
    return std::make_shared<OpenclBackend>(choose_device(""), OpenclOptions{.host = host});
  } catch (const DeviceError&) {
    return nullptr;
  }
}

TEST(GapSides, ADeviceSolvesThemAndTheCpuWhatItRefuses) {
  const std::shared_ptr<Backend> backend = device_backend();
  if (!backend) GTEST_SKIP() << "no device";
  const Data data;
  const Answer of_cpu = solve(data, data.b, nullptr), of_device = solve(data, data.b, backend);
  EXPECT_EQ(of_device.reports[Data::few].status, Status::too_few_rows);
  index_t others = 0;
  for (index_t s = 0; s < sides; ++s) {
    SCOPED_TRACE(testing::Message() << "right side " << s);
    EXPECT_EQ(of_device.reports[s].status, of_cpu.reports[s].status);
    if (of_cpu.reports[s].status != Status::ok) continue;
    EXPECT_EQ(of_device.reports[s].freedom, of_cpu.reports[s].freedom);
    EXPECT_EQ(of_device.findings[s].rank, n);
    EXPECT_NEAR(of_device.reports[s].residual_norm, of_cpu.reports[s].residual_norm,
                1e-12 * of_cpu.reports[s].residual_norm);
    for (index_t j = s * n; j < (s + 1) * n; ++j) {
      EXPECT_NEAR(of_device.x[j], of_cpu.x[j], 1e-12);
      EXPECT_NEAR(of_device.se[j], of_cpu.se[j], 1e-12);
      if (s % 3 == 0) others += of_device.x[j] != of_cpu.x[j];
    }
  }
  // The sums of a device have another order.
  EXPECT_GT(others, sides * n / 20) << "the CPU has solved for the right sides with gaps";
}

TEST(GapSides, GetTheSameBitsInAnyCompany) {
  const std::shared_ptr<Backend> backend = device_backend();
  if (!backend) GTEST_SKIP() << "no device";
  const Data data;
  const Answer all = solve(data, data.b, backend);
  const index_t first = 300, count = 7;
  const std::vector<double> some(data.b.begin() + first * m, data.b.begin() + (first + count) * m);
  const Answer few = solve(data, some, backend);
  for (index_t e = 0; e < count * n; ++e) EXPECT_EQ(few.x[e], all.x[first * n + e]) << e;
}

/// x of right sides with weights of their own on a device: rows, or columns of m x sides.
std::vector<double> solve_weighed(const Data& data, const std::vector<double>& w, bool as_rows,
                                  std::shared_ptr<Backend> backend) {
  SolveProblem problem = problem_with_gaps();
  problem.has_weights = problem.weighs_each = true;
  const auto places = [&](index_t length) {
    return as_rows ? VectorPlaces::rows(length) : VectorPlaces::columns(length, sides);
  };
  std::vector<double> b(data.b.size()), weights(b.size());
  for (index_t s = 0; s < sides; ++s)
    for (index_t i = 0; i < m; ++i) {
      const auto to = static_cast<std::size_t>(places(m).start(s) + i * places(m).step);
      b[to] = data.b[s * m + i];
      weights[to] = w[s * m + i];
    }
  const Limits limits{.host_bytes = std::size_t{1} << 30, .threads = 2};
  SystemsShape shape{.sides = {.p = sides, .as_rows = as_rows, .solution_dims = {sides}},
                     .has_weights = true};
  SolvePlan plan = plan_solve(shape, problem, limits, "");
  SolveDevice device{.backend = backend};
  EXPECT_EQ(objection_to_devices(shape, problem, plan), "");
  EXPECT_EQ(plan_on_device(shape, problem, plan, "", device), "");
  take_device(shape, problem, limits, plan);
  EXPECT_EQ(plan.group_size, as_rows ? 1 : sides);
  Answer answer(sides);
  RightSideBlock<double> block = answer.block(b);
  block.b_places = block.w_places = places(m);
  block.w = weights.data();
  block.x_places = places(n);
  GroupEngine<double>({.problem = problem, .plan = plan, .limits = limits, .device = &device},
                      {data.a.data(), m, n, n}, nullptr)
      .run({}, block);
  std::vector<double> x;
  for (index_t s = 0; s < sides; ++s)
    for (index_t j = 0; j < n; ++j) x.push_back(answer.x[places(n).start(s) + j * places(n).step]);
  return x;
}

TEST(WeighedSides, GetTheSameBitsAsRowsAndAsColumns) {
  const std::shared_ptr<Backend> backend = device_backend();
  if (!backend) GTEST_SKIP() << "no device";
  const Data data;
  std::vector<double> w(data.b.size());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<double>(i * 7 % 11);
  const std::vector<double> rows = solve_weighed(data, w, true, backend);
  const std::vector<double> columns = solve_weighed(data, w, false, backend);
  for (index_t e = 0; e < sides * n; ++e) {
    if (e / n == Data::few) continue;  // NaN
    ASSERT_EQ(rows[e], columns[e]) << "right side " << e / n;
  }
}

}  // namespace
}  // namespace qrtool::test::gap_sides_test
