// SPDX-License-Identifier: Apache-2.0
// weighed_systems_test.cpp: systems with weights and missing rows through a device, with a matrix
// each or with one for all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "tests/gpu/solve/system_answer.hpp"
#include "tests/support/solution_error.hpp"
#include "tests/support/uneven_systems.hpp"

namespace qrtool::test::weighed_systems_test {
namespace {

template <class T>
class WeighedSystems : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(WeighedSystems, Types);

/// Some systems with a right side each. w: weights of all systems, of each one, or none.
template <class T>
struct Weighted {
  static constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  static constexpr index_t count = 9;

  Weighted(const SolveProblem& of, bool shares_weights, bool one_a_serves_all = false)
      : problem(of),
        shares_a(one_a_serves_all),
        w_places(shares_weights ? VectorPlaces{1, 0, 0, 1} : VectorPlaces::rows(of.m)) {
    std::mt19937_64 random(27);
    std::normal_distribution<double> normal;
    for (index_t e = 0; e < (shares_a ? 1 : count) * problem.m * problem.n; ++e)
      a.push_back(static_cast<T>(normal(random)));
    for (index_t e = 0; e < count * problem.m; ++e) b.push_back(static_cast<T>(normal(random)));
    const index_t weights = (shares_weights ? 1 : count) * problem.m;
    for (index_t i = 0; i < weights && problem.has_weights; ++i)
      w.push_back(i % 7 == 3 ? T(0) : T(1) + T(i % 5) / 4);
  }
  /// Leaves rows out, each system in a way of its own. System 1 has few rows, 2 an infinity.
  void make_gaps() {
    const index_t m = problem.m, n = problem.n;
    for (index_t s = 3; s < count; ++s) {
      b[s * m + s] = nan;
      a[(s * m + s + 2) * n + s % n] = nan;
    }
    for (index_t i = n - 1; i < m; ++i) b[m + i] = nan;
    a[(2 * m + 4) * n] = std::numeric_limits<T>::infinity();
  }
  /// The same where one A serves all: one of its rows has a gap.
  void make_gaps_of_one() {
    const index_t m = problem.m, n = problem.n;
    for (index_t s = 3; s < count; ++s) b[s * m + s] = b[s * m + s + 1] = nan;
    a[4 * n + n / 2] = nan;
    for (index_t i = n - 1; i < m; ++i) b[m + i] = nan;
  }
  index_t first_of_a(index_t system) const { return shares_a ? 0 : system * problem.m * problem.n; }
  RightSideBlock<T> block(Answer<T>& answer) const {
    return {.count = count,
            .b = b.data(),
            .b_places = VectorPlaces::rows(problem.m),
            .w = w.empty() ? nullptr : w.data(),
            .w_places = w_places,
            .x = answer.x.data(),
            .se = problem.wants_se ? answer.se.data() : nullptr,
            .x_places = VectorPlaces::rows(problem.n),
            .reports = answer.reports,
            .findings = answer.findings};
  }
  Answer<T> ask_device(SystemRoute route) const {
    Answer<T> answer(count, 1, problem.n);
    const Plan plan = plan_of_r(problem);
    const BatchView<const T> matrices{a.data(),  count,     problem.m,
                                      problem.n, problem.n, first_of_a(1)};
    answer.refused =
        make_system_device<T>(backend(), problem, plan, route)->run(matrices, block(answer));
    return answer;
  }
  Answer<T> ask_cpu() const {
    const Limits host{.host_bytes = std::size_t{1} << 30, .threads = 2};
    Answer<T> answer(count, 1, problem.n);
    CpuBackend cpu(host);
    const Plan plan =
        make_plan(SystemEngine<T>::factored_problem(problem, count, 1), cpu.variants(), host);
    std::vector<SystemRef<T>> systems;
    for (index_t i = 0; i < count; ++i) systems.push_back({a.data() + first_of_a(i), i});
    SystemEngine<T>(problem, cpu, plan, host.threads).run(systems, block(answer));
    return answer;
  }

  SolveProblem problem;
  bool shares_a;
  VectorPlaces w_places;
  std::vector<T> a, b, w;
};

template <class T>
void expect_same_answer(const Answer<T>& of_device, const Answer<T>& of_cpu, index_t i,
                        double u_of_x) {
  SCOPED_TRACE(testing::Message() << "system " << i);
  EXPECT_EQ(of_device.reports[i].status, Status::ok);
  EXPECT_EQ(of_cpu.reports[i].status, Status::ok);
  EXPECT_EQ(of_device.findings[i].rank, of_cpu.findings[i].rank);
  EXPECT_NEAR(of_device.reports[i].residual_norm, of_cpu.reports[i].residual_norm,
              u_of_x * of_cpu.reports[i].residual_norm);
  const index_t n = std::ssize(of_cpu.x) / std::ssize(of_cpu.reports);
  const double size =
      norm_of(std::vector<double>(&of_cpu.x[i * n], &of_cpu.x[i * n] + n).data(), n);
  for (index_t j = i * n; j < (i + 1) * n; ++j) {
    EXPECT_NEAR(of_device.x[j], of_cpu.x[j], u_of_x * size);
    EXPECT_NEAR(of_device.se[j], of_cpu.se[j], u_of_x * std::abs(of_cpu.se[j]));
  }
}

/// A row of more entries than work-items; a last group that is not full; tall systems.
const Shape weighted_shapes[] = {{30, 4}, {41, 1}, {70, 33}, {4200, 4}};

TYPED_TEST(WeighedSystems, TakeWeightsAndLeaveMissingRowsOut) {
  using T = TypeParam;
  const double u_of_x = sizeof(T) == 4 ? 1e-3 : 1e-11;
  for (const Shape& shape : weighted_shapes) {
    for (const bool shares_weights : {true, false}) {
      for (const auto& [has_weights, skips] :
           {std::pair(true, true), {true, false}, {false, true}}) {
        SCOPED_TRACE(testing::Message() << shape.m << "x" << shape.n << " weights " << has_weights
                                        << " of all " << shares_weights << " gaps " << skips);
        SolveProblem problem = problem_of<T>(shape.m, shape.n);
        problem.has_weights = has_weights;
        problem.skips_missing = skips;
        problem.takes_few_rows = true;
        Weighted<T> systems(problem, shares_weights);
        if (skips) systems.make_gaps();
        const std::vector<T> a = systems.a, b = systems.b;
        const Answer<T> of_cpu = systems.ask_cpu();
        for (const SystemRoute route : {SystemRoute::normal_equations, SystemRoute::factors}) {
          const Answer<T> answer = systems.ask_device(route);
          EXPECT_EQ(answer.refused, skips ? std::vector<index_t>({1, 2}) : std::vector<index_t>());
          for (index_t i = 0; i < systems.count; ++i)
            if (answer.accepts(i)) expect_same_answer(answer, of_cpu, i, u_of_x);
        }
        EXPECT_EQ(std::memcmp(a.data(), systems.a.data(), a.size() * sizeof(T)), 0);
        EXPECT_EQ(std::memcmp(b.data(), systems.b.data(), b.size() * sizeof(T)), 0);
      }
    }
  }
}

/// One and four blocks of 16 columns, the last of them with one column; a shape for which the
/// device makes a copy of A for each right side. Only with takes_all(): more blocks, full ones,
/// many rows.
const Shape one_a_shapes[] = {{30, 4}, {80, 49}, {70, 33}, {41, 1}, {90, 64}, {150, 97}, {4200, 4}};
constexpr std::size_t everyday_one_a_shapes = 3;

TYPED_TEST(WeighedSystems, OneAServesSidesWithWeightsAndGapsOfTheirOwn) {
  using T = TypeParam;
  const double u_of_x = sizeof(T) == 4 ? 1e-3 : 1e-11;
  for (const Shape& shape :
       std::span(one_a_shapes)
           .first(takes_all() ? std::size(one_a_shapes) : everyday_one_a_shapes)) {
    for (const auto& [has_weights, skips, shares_weights] : {std::tuple(true, true, false),
                                                             {true, false, false},
                                                             {false, true, false},
                                                             {true, true, true}}) {
      SCOPED_TRACE(testing::Message() << shape.m << "x" << shape.n << " weights " << has_weights
                                      << " of all " << shares_weights << " gaps " << skips);
      SolveProblem problem = problem_of<T>(shape.m, shape.n);
      problem.has_weights = has_weights;
      problem.weighs_each = has_weights && !shares_weights;
      problem.skips_missing = skips;
      problem.takes_few_rows = true;
      Weighted<T> systems(problem, shares_weights, /*one_a_serves_all=*/true);
      if (skips) systems.make_gaps_of_one();
      const std::vector<T> a = systems.a, b = systems.b;
      const Answer<T> of_cpu = systems.ask_cpu();
      for (const SystemRoute route : {SystemRoute::normal_equations, SystemRoute::factors}) {
        const Answer<T> answer = systems.ask_device(route);
        EXPECT_EQ(answer.refused, skips ? std::vector<index_t>({1}) : std::vector<index_t>());
        for (index_t i = 0; i < systems.count; ++i)
          if (answer.accepts(i)) expect_same_answer(answer, of_cpu, i, u_of_x);
      }
      EXPECT_EQ(std::memcmp(a.data(), systems.a.data(), a.size() * sizeof(T)), 0);
      EXPECT_EQ(std::memcmp(b.data(), systems.b.data(), b.size() * sizeof(T)), 0);
    }
  }
}

/// x, its residual norm without the rows of the ridge, and the degrees of freedom are the CPU's:
/// with a matrix each or one for all, with fewer rows than columns, with tall ones, with an
/// intercept, which is left alone, for a matrix of zeros, and for a consistent system. Nothing
/// hides behind the second try: it would give normal equations the bits of the other route.
TYPED_TEST(WeighedSystems, ARidgeAddsRows) {
  using T = TypeParam;
  const double u_of_x = sizeof(T) == 4 ? 1e-3 : 1e-11;
  for (const Shape& shape : {Shape{30, 4}, Shape{3, 4}, Shape{4200, 4}}) {
    for (const auto& [has_weights, skips, shares_a] :
         {std::tuple(false, false, false), {true, true, false}, {true, true, true}}) {
      if (shape.m == 4200 && shares_a) continue;
      SCOPED_TRACE(testing::Message() << shape.m << "x" << shape.n << " weights and gaps "
                                      << has_weights << " one A " << shares_a);
      SolveProblem problem = problem_of<T>(shape.m, shape.n);
      problem.wants_se = false;
      problem.ridge = 6e-4 * static_cast<double>(shape.m);
      problem.has_intercept = true;
      problem.has_weights = has_weights;
      problem.weighs_each = has_weights;
      problem.skips_missing = skips;
      Weighted<T> systems(problem, /*shares_weights=*/false, shares_a);
      const index_t m = shape.m, n = shape.n, consistent = 4, zero = 5;
      for (index_t i = 0; i < std::ssize(systems.a); i += n) systems.a[i] = T(1);
      for (index_t i = 0; i < m; ++i) {
        const T* row = &systems.a[systems.first_of_a(consistent) + i * n];
        systems.b[consistent * m + i] = row[0] + row[1] - row[2];
      }
      if (!shares_a)
        for (index_t i = 0; i < m; ++i)
          std::fill_n(&systems.a[systems.first_of_a(zero) + i * n + 1], n - 1, T(0));
      if (skips) systems.b[6 * m + 1] = Weighted<T>::nan;
      for (index_t i = 0; skips && i < m; ++i) systems.b[7 * m + i] = Weighted<T>::nan;
      const Answer<T> of_cpu = systems.ask_cpu();
      std::vector<T> x;
      for (const SystemRoute route : {SystemRoute::normal_equations, SystemRoute::factors}) {
        const Answer<T> answer = systems.ask_device(route);
        EXPECT_EQ(answer.refused, skips ? std::vector<index_t>({7}) : std::vector<index_t>());
        const std::vector<T> some(answer.x.begin(), answer.x.begin() + 4 * n);
        if (sizeof(T) == 8) {
          EXPECT_NE(some, x);
        }
        x = some;
        for (index_t i = 0; i < systems.count; ++i) {
          if (!answer.accepts(i)) continue;
          expect_same_answer(answer, of_cpu, i, u_of_x);
          EXPECT_EQ(answer.reports[i].freedom, of_cpu.reports[i].freedom);
          EXPECT_EQ(answer.reports[i].bar, of_cpu.reports[i].bar);
        }
      }
    }
  }
}

/// The scale of the weights of a right side changes no bit of its x, and residuals by its root. A
/// right side gets the bits that it gets in other company.
TYPED_TEST(WeighedSystems, ScalesOfWeightsAndCompanyChangeNoBit) {
  using T = TypeParam;
  SolveProblem problem = problem_of<T>(50, 16);
  problem.has_weights = problem.weighs_each = true;
  Weighted<T> systems(problem, false, /*one_a_serves_all=*/true);
  const Answer<T> plain = systems.ask_device(SystemRoute::normal_equations);
  ASSERT_TRUE(plain.refused.empty());
  const index_t m = problem.m, n = problem.n;
  const int far = sizeof(T) == 4 ? 30 : 250;
  for (index_t s = 1; s < systems.count; ++s)
    for (index_t i = 0; i < m; ++i)
      systems.w[s * m + i] = std::ldexp(systems.w[s * m + i], s % 2 == 0 ? 4 * far : -4 * far);
  std::rotate(systems.b.begin(), systems.b.begin() + m, systems.b.end());
  std::rotate(systems.w.begin(), systems.w.begin() + m, systems.w.end());
  const Answer<T> scaled = systems.ask_device(SystemRoute::normal_equations);
  ASSERT_TRUE(scaled.refused.empty());
  for (index_t s = 1; s < systems.count; ++s) {
    for (index_t j = 0; j < n; ++j) {
      EXPECT_EQ(scaled.x[(s - 1) * n + j], plain.x[s * n + j]);
      EXPECT_EQ(scaled.se[(s - 1) * n + j], plain.se[s * n + j]);
    }
    EXPECT_EQ(scaled.reports[s - 1].residual_norm,
              std::ldexp(plain.reports[s].residual_norm, s % 2 == 0 ? 2 * far : -2 * far));
  }
}

/// Some right sides of one hard A, each with weights from 1e-12 to 1e12 of its own, or 0 where b
/// may hold anything.
template <class T>
UnevenSystems<T> make_sides_of_one(const HardSystems<T>& hard, index_t system, index_t sides) {
  HardSystems<T> of_one{
      .m = hard.m, .n = hard.n, .count = sides, .a = {}, .b = {}, .names = {}, .is_graded = {}};
  const index_t entries = hard.m * hard.n;
  for (index_t s = 0; s < sides; ++s) {
    const T* b = &hard.b[(system + s) % hard.count * hard.m];
    of_one.a.insert(of_one.a.end(), &hard.a[system * entries], &hard.a[system * entries] + entries);
    of_one.b.insert(of_one.b.end(), b, b + hard.m);
    of_one.names.push_back(hard.names[system]);
    of_one.is_graded.push_back(hard.is_graded[system]);
  }
  UnevenSystems<T> uneven = make_uneven_systems(of_one, {Weights::of_each, false}, 5 + system);
  uneven.systems.a = of_one.a;  // a row of weight 0 counts for other right sides
  return uneven;
}

/// What pairs_check.cl accepts, core accepts too; and it is most of what is not dependent.
TYPED_TEST(WeighedSystems, CoreAcceptsWhatADeviceAcceptsOfOneA) {
  using T = TypeParam;
  constexpr index_t sides = 5;
  const HardSystems<T> hard = make_hard_systems<T>(40, 16, takes_all() ? 4 : 1, 3);
  index_t accepted = 0;
  for (index_t k = 0; k < hard.count; ++k) {
    const UnevenSystems<T> s = make_sides_of_one(hard, k, sides);
    const SolveProblem problem = s.problem();
    const Plan plan = plan_of_r(problem);
    Answer<T> answer(sides, 1, hard.n);
    answer.refused = make_system_device<T>(backend(), problem, plan)
                         ->run({s.systems.a.data(), sides, hard.m, hard.n, hard.n, 0},
                               s.block(answer.x, answer.reports, answer.findings));
    const SystemAnswers<T> checked = check_on_cpu(s, answer.x);
    for (index_t i = 0; i < sides; ++i) {
      if (!answer.accepts(i)) continue;
      ++accepted;
      const SolutionReport& of_core = checked.reports[i];
      EXPECT_EQ(of_core.status, Status::ok) << hard.names[k] << " " << k << " side " << i << ": "
                                            << of_core.backward_error / of_core.bar;
    }
  }
  EXPECT_GT(accepted, hard.count * sides / 4) << "of " << hard.count * sides;
}

/// Weights that no factor of the Gram matrix can have are left to the host, and one that 4^-e
/// brings out of range to the route by factors.
TYPED_TEST(WeighedSystems, WeightsThatAreOutOfRangeAreLeftToTheHost) {
  using T = TypeParam;
  SolveProblem problem = problem_of<T>(30, 16);
  problem.has_weights = problem.weighs_each = true;
  Weighted<T> systems(problem, false, /*one_a_serves_all=*/true);
  const index_t m = problem.m;
  systems.w[m + 9] = std::numeric_limits<T>::infinity();
  systems.w[2 * m + 9] = Weighted<T>::nan;
  systems.w[3 * m + 9] = -1;
  systems.w[4 * m + 8] = 8;
  systems.w[4 * m + 9] = std::numeric_limits<T>::min();
  systems.w[5 * m + 9] = 0;
  systems.b[5 * m + 9] = std::numeric_limits<T>::infinity();
  systems.b[6 * m + 9] = Weighted<T>::nan;
  for (index_t i = 0; i < m; ++i) systems.w[7 * m + i] = 0;
  const Answer<T> answer = systems.ask_device(SystemRoute::normal_equations);
  EXPECT_EQ(answer.refused, std::vector<index_t>({1, 2, 3, 6, 7}));
  expect_same_answer(answer, systems.ask_cpu(), 4, sizeof(T) == 4 ? 1e-3 : 1e-11);
}

/// A row of weight 0 may hold anything; a gap elsewhere is an error unless it is skipped. A product
/// with digits that are lost, or one out of range, is left to the host.
TYPED_TEST(WeighedSystems, WeightsOfZeroHideNumbersThatAreNotFinite) {
  using T = TypeParam;
  SolveProblem problem = problem_of<T>(30, 4);
  problem.has_weights = true;
  Weighted<T> systems(problem, false);
  const index_t m = problem.m, n = problem.n;
  const Answer<T> clean = systems.ask_device(SystemRoute::normal_equations);
  for (const index_t s : {0, 2}) systems.w[s * m + 9] = 0;
  const Answer<T> zero = systems.ask_device(SystemRoute::normal_equations);
  systems.b[9] = std::numeric_limits<T>::quiet_NaN();
  systems.a[(2 * m + 9) * n + 1] = std::numeric_limits<T>::infinity();
  systems.b[4 * m + 10] = std::numeric_limits<T>::quiet_NaN();
  systems.w[5 * m + 9] = std::numeric_limits<T>::min();
  systems.a[(5 * m + 9) * n] = sizeof(T) == 4 ? T(1e-30) : T(1e-300);
  systems.w[6 * m + 9] = std::numeric_limits<T>::max();
  const Answer<T> hidden = systems.ask_device(SystemRoute::normal_equations);
  ASSERT_TRUE(zero.refused.empty());
  EXPECT_EQ(hidden.refused, std::vector<index_t>({4, 5, 6}));
  for (const index_t s : {0, 2}) {
    EXPECT_NE(zero.x[s * n], clean.x[s * n]);
    for (index_t j = s * n; j < (s + 1) * n; ++j) EXPECT_EQ(hidden.x[j], zero.x[j]);
  }
}

}  // namespace
}  // namespace qrtool::test::weighed_systems_test
