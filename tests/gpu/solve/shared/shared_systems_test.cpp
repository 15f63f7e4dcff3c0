// SPDX-License-Identifier: Apache-2.0
// shared_systems_test.cpp: many right sides of one matrix on a device. What it accepts passes the
// CPU's check with the same residual norm, in both layouts, with weights, a ridge and gaps.
#include "gpu/solve/shared/shared_systems.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <random>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/engines/shared_engine.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "gpu/solve/shared/masked.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::shared_systems_test {
namespace {

template <class T>
class SharedSystems : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(SharedSystems, Types);

struct Case {
  index_t m, n, sides;
  bool has_weights = false, has_gaps = false;
  double ridge = 0;
};

/// Gaussian A and right sides in rows; every second right side is consistent. With gaps, a quarter
/// of b is missing from the third right side on.
template <class T>
struct Data {
  explicit Data(const Case& c) : a(c.m * c.n), b(c.sides * c.m), w(c.has_weights ? c.m : 0) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    for (T& x : a) x = static_cast<T>(normal(random));
    for (index_t s = 0; s < c.sides; ++s)
      for (index_t i = 0; i < c.m; ++i) {
        double sum = 0;
        for (index_t j = 0; j < c.n; ++j)
          sum += static_cast<double>(a[i * c.n + j]) * static_cast<double>(j + 1 + s % 5);
        b[s * c.m + i] = static_cast<T>(s % 2 == 0 ? sum : normal(random));
        if (c.has_gaps && s > 2 && random() % 4 == 0)
          b[s * c.m + i] = std::numeric_limits<T>::quiet_NaN();
      }
    for (index_t i = 0; i < std::ssize(w); ++i) w[i] = i % 7 == 3 ? T(0) : T(1 + i % 3);
  }
  std::vector<T> a, b, w;
};

template <class T>
SolveProblem problem_of(const Case& c) {
  return {.type = element_type<T>,
          .m = c.m,
          .n = c.n,
          .rank = {.tolerance = default_rank_tolerance(element_type<T>, c.n)},
          .ridge = c.ridge,
          .skips_missing = c.has_gaps,
          .wants_se = c.ridge == 0 && c.m > c.n,
          .takes_few_rows = true};
}

template <class T>
struct Answer {
  Answer(index_t sides, index_t n)
      : x(sides * n, T(-12345.5)), se(x.size()), reports(sides), findings(sides) {}
  std::vector<T> x, se;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
  std::vector<index_t> refused;
};

template <class T>
std::vector<T> transposed(const std::vector<T>& from, index_t rows, index_t cols) {
  std::vector<T> to(from.size());
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < cols; ++j) to[j * rows + i] = from[i * cols + j];
  return to;
}

template <class T>
RightSideBlock<T> block_of(const SolveProblem& problem, const Data<T>& data,
                           const std::vector<T>& b, Answer<T>& answer, SidesLayout layout) {
  const index_t sides = std::ssize(answer.reports);
  const auto places = [&](index_t length) {
    return layout == SidesLayout::rows ? VectorPlaces::rows(length)
                                       : VectorPlaces::columns(length, sides);
  };
  return {.count = sides,
          .b = b.data(),
          .b_places = places(problem.m),
          .w = data.w.empty() ? nullptr : data.w.data(),
          .w_places = {1, 0, 0, 1},
          .x = answer.x.data(),
          .se = problem.wants_se ? answer.se.data() : nullptr,
          .x_places = places(problem.n),
          .reports = answer.reports,
          .findings = answer.findings};
}

const Limits host{.host_bytes = std::size_t{1} << 30, .threads = 2};

template <class T>
Answer<T> ask(const Case& c, const Data<T>& data, SidesLayout layout) {
  const SolveProblem problem = problem_of<T>(c);
  Answer<T> answer(c.sides, c.n);
  const bool in_rows = layout == SidesLayout::rows;
  const std::vector<T> b = in_rows ? data.b : transposed(data.b, c.sides, c.m);
  SharedEngine<T> engine(problem, host);
  const MatrixView<const T> a{data.a.data(), c.m, c.n, c.n};
  engine.take_matrix(a, data.w.empty() ? nullptr : data.w.data(), 1);
  const auto factors = engine.factors();
  EXPECT_TRUE(factors.has_value());
  if (!factors) return answer;
  const auto device = make_shared_device<T>(backend(), problem, a, *factors, layout);
  answer.refused = device->run(block_of(problem, data, b, answer, layout));
  if (!in_rows) {
    answer.x = transposed(answer.x, c.n, c.sides);
    answer.se = transposed(answer.se, c.n, c.sides);
  }
  return answer;
}

/// The CPU's own answer, or its check of given solutions.
template <class T>
Answer<T> ask_cpu(const Case& c, const Data<T>& data, const std::vector<T>* given = nullptr) {
  SolveProblem problem = problem_of<T>(c);
  problem.only_checks = given != nullptr;
  Answer<T> answer(c.sides, c.n);
  if (given != nullptr) answer.x = *given;
  CpuBackend cpu(host);
  const Plan plan =
      make_plan(SystemEngine<T>::factored_problem(problem, c.sides, 1), cpu.variants(), host);
  std::vector<SystemRef<T>> systems;
  for (index_t s = 0; s < c.sides; ++s) systems.push_back({data.a.data(), s});
  SystemEngine<T>(problem, cpu, plan, 2)
      .run(systems, block_of(problem, data, data.b, answer, SidesLayout::rows));
  return answer;
}

template <class T>
void expect_as_cpu(const Case& c, SidesLayout layout) {
  SCOPED_TRACE(testing::Message() << c.m << "x" << c.n << ", " << c.sides << " right sides"
                                  << (c.has_weights ? ", weights" : "")
                                  << (c.has_gaps ? ", gaps" : "") << ", ridge " << c.ridge
                                  << (layout == SidesLayout::rows ? ", rows" : ", columns"));
  const Data<T> data(c);
  const Answer<T> answer = ask(c, data, layout);
  const Answer<T> checked = ask_cpu(c, data, &answer.x), own = ask_cpu<T>(c, data);
  const bool is_masked = masks_on_device(problem_of<T>(c));
  for (index_t s = 0; s < c.sides; ++s) {
    const bool has_nan =
        std::any_of(&data.b[s * c.m], &data.b[s * c.m] + c.m, [](T x) { return std::isnan(x); });
    const bool is_refused = std::binary_search(answer.refused.begin(), answer.refused.end(), s);
    if (has_nan && !is_masked) {
      EXPECT_TRUE(is_refused) << s;
      continue;
    }
    // Gaps may leave too few rows, or nearly.
    if (own.findings[s].rank < c.n || !(own.findings[s].scaled_condition < 1e3)) continue;
    EXPECT_FALSE(is_refused) << s << ": " << answer.reports[s].backward_error;
    EXPECT_EQ(checked.reports[s].status, Status::ok) << s;
    const double norm = checked.reports[s].residual_norm;
    // The CPU's rows with weights are rounded to their type.
    EXPECT_NEAR(answer.reports[s].residual_norm, norm,
                1e-6 * norm + (sizeof(T) == 4 ? 2e-5 : 1e-12))
        << s;
    for (index_t j = 0; j < c.n; ++j) {
      const double u = sizeof(T) == 4 ? 1e-4 : 1e-10;
      EXPECT_NEAR(answer.x[s * c.n + j], own.x[s * c.n + j], 10 * u) << s;
      const double se = own.se[s * c.n + j];
      if (problem_of<T>(c).wants_se && s % 2 == 1 && !std::isnan(se)) {
        EXPECT_NEAR(answer.se[s * c.n + j], se, 1e-4 * se) << s;
      }
    }
    if (!is_masked) continue;
    EXPECT_EQ(answer.findings[s].rank, c.n);
    EXPECT_NEAR(answer.findings[s].scaled_condition, own.findings[s].scaled_condition,
                0.5 * own.findings[s].scaled_condition);
  }
}

/// Building the kernels takes most of the time: the first `of_columns` cases are also taken as
/// columns.
template <class T>
void expect_all_as_cpu(std::initializer_list<Case> cases, int of_columns) {
  for (const Case& c : cases) {
    expect_as_cpu<T>(c, SidesLayout::rows);
    if (of_columns-- > 0) expect_as_cpu<T>(c, SidesLayout::columns);
  }
}

// Around the sizes of blocks, slabs and groups; the last group is not full.
TYPED_TEST(SharedSystems, AgreeWithTheCpu) {
  expect_all_as_cpu<TypeParam>(
      {{120, 4, 150}, {40, 17, 65}, {1, 1, 3}, {600, 3, 40}, {20, 16, 70}, {90, 40, 10}}, 2);
}

TYPED_TEST(SharedSystems, TakeWeightsAndARidge) {
  expect_all_as_cpu<TypeParam>({{.m = 30, .n = 4, .sides = 20, .has_weights = true},
                                {.m = 60, .n = 17, .sides = 20, .has_weights = true},
                                {.m = 30, .n = 4, .sides = 20, .ridge = 0.5},
                                {.m = 3, .n = 5, .sides = 20, .ridge = 0.5},
                                {.m = 30, .n = 18, .sides = 20, .has_weights = true, .ridge = 2}},
                               1);
}

TYPED_TEST(SharedSystems, LeaveMissingRowsOut) {
  expect_all_as_cpu<TypeParam>(
      {{.m = 120, .n = 4, .sides = 70, .has_gaps = true},
       {.m = 40, .n = 1, .sides = 70, .has_gaps = true},
       {.m = 40, .n = 5, .sides = 20, .has_weights = true, .has_gaps = true},
       {.m = 12, .n = 8, .sides = 40, .has_gaps = true, .ridge = 0.1},
       {.m = 60, .n = 9, .sides = 10, .has_gaps = true}},
      1);
}

/// A weight of zero leaves a row out, whatever it holds.
TYPED_TEST(SharedSystems, ZeroWeightsHideNan) {
  using T = TypeParam;
  const Case c{.m = 30, .n = 4, .sides = 20, .has_weights = true};
  Data<T> data(c);
  const Answer<T> before = ask(c, data, SidesLayout::rows);
  data.b[3] = std::numeric_limits<T>::quiet_NaN();  // the weight of row 3 is zero
  const Answer<T> after = ask(c, data, SidesLayout::rows);
  EXPECT_TRUE(after.refused.empty());
  EXPECT_EQ(before.x, after.x);
}

/// Infinity and overflow are left to the host, and nothing else is touched by them.
TYPED_TEST(SharedSystems, WhatIsOutOfRangeIsRefused) {
  using T = TypeParam;
  const Case c{.m = 30, .n = 4, .sides = 20};
  Data<T> data(c);
  const Answer<T> before = ask(c, data, SidesLayout::columns);
  data.b[5 * c.m + 2] = std::numeric_limits<T>::infinity();
  data.b[7 * c.m + 2] = std::numeric_limits<T>::quiet_NaN();
  const Answer<T> after = ask(c, data, SidesLayout::columns);
  EXPECT_EQ(after.refused, (std::vector<index_t>{5, 7}));
  for (index_t s = 0; s < c.sides; ++s)
    for (index_t j = 0; j < c.n && s != 5 && s != 7; ++j)
      EXPECT_EQ(before.x[s * c.n + j], after.x[s * c.n + j]);
}

}  // namespace
}  // namespace qrtool::test::shared_systems_test
