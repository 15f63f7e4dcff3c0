// SPDX-License-Identifier: Apache-2.0
// system_engine_test.cpp: hard problems through each way of solving: every solution is within its
// bar, and agrees with a reference to what the condition allows.
#include "core/solve/engines/system_engine.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/engines/shared_engine.hpp"
#include "core/solve/engines/tall_system.hpp"
#include "tests/support/hard_systems.hpp"
#include "tests/support/solution_error.hpp"

namespace qrtool::test::system_engine_test {
namespace {

template <class T>
class Engines : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Engines, Types);

const Limits limits{.host_bytes = std::size_t{1} << 30, .threads = 2};

/// All results for some right sides.
template <class T>
struct Results {
  Results(index_t count, index_t n)
      : x(count * n, T(7)), se(count * n, T(7)), reports(count), findings(count) {}
  RightSideBlock<T> block(const std::vector<T>& b, index_t m, index_t n) {
    return {.count = std::ssize(reports),
            .b = b.data(),
            .b_places = VectorPlaces::rows(m),
            .x = x.data(),
            .se = se.data(),
            .x_places = VectorPlaces::rows(n),
            .reports = reports,
            .findings = findings};
  }
  std::vector<T> x, se;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
};

template <class T>
SolveProblem problem_of(index_t m, index_t n) {
  return {.type = element_type<T>,
          .m = m,
          .n = n,
          .rank = {.tolerance = default_rank_tolerance(element_type<T>, n)},
          .wants_se = true};
}

template <class T>
Results<T> solve_each(const HardSystems<T>& s, const SolveProblem& problem, const char* variant) {
  CpuBackend backend(limits);
  const Plan plan = make_plan(SystemEngine<T>::factored_problem(problem, s.count, 1),
                              backend.variants(), limits, variant);
  SystemEngine<T> engine(problem, backend, plan, 2);
  std::vector<SystemRef<T>> refs;
  for (index_t i = 0; i < s.count; ++i) refs.push_back({s.a.data() + i * s.m * s.n, i});
  Results<T> results(s.count, s.n);
  engine.run(refs, results.block(s.b, s.m, s.n));
  return results;
}

/// Tests a solution against the reference. Where a singular value is within ten times of the
/// tolerance, the rank may differ, and the backward error alone decides.
template <class T>
void expect_good(const HardSystems<T>& s, const Results<T>& results, index_t i,
                 const SolveProblem& problem) {
  SCOPED_TRACE(testing::Message() << s.names[i] << " " << s.m << "x" << s.n << " number " << i);
  const SolutionReport& report = results.reports[i];
  ASSERT_EQ(report.status, Status::ok)
      << report.backward_error << " " << report.least_norm_error << " tries " << +report.tries;
  // A bound that is near the bar is not reported: the estimate is.
  EXPECT_LE(report.backward_error, 0.5 * report.bar);
  const Batch<double> wide(1, s.m, s.n);
  std::vector<double> b, x;
  for (index_t e = 0; e < s.m * s.n; ++e) wide.view().data[e] = s.a[i * s.m * s.n + e];
  for (index_t e = 0; e < s.m; ++e) b.push_back(s.b[i * s.m + e]);
  for (index_t e = 0; e < s.n; ++e) x.push_back(results.x[i * s.n + e]);
  const double tau = problem.rank.tolerance;
  const Reference reference = solve_by_svd(wide.view()[0], b.data(), tau);
  const bool is_clear = reference.last_ratio > 10 * tau && reference.next_ratio < tau / 10;
  if (!is_clear) return;
  EXPECT_EQ(results.findings[i].rank, reference.rank);
  // The error of least squares grows with kappa, and with kappa^2 times the residual; the reference
  // has the same error in float64. Without column scaling the bound would not hold for graded
  // columns.
  const double u = problem.type == ElementType::float32 ? 0x1p-23 : 0x1p-52;
  if (s.is_graded[i]) return;
  const double norm_x = norm_of(reference.x.data(), s.n);
  const double norm_a = norm_of(wide.view().data, s.m * s.n);
  const double kappa = reference.condition * std::sqrt(static_cast<double>(s.n));
  const double bound =
      40 * u * kappa *
      (norm_x + kappa * report.residual_norm / norm_a + norm_of(b.data(), s.m) / norm_a);
  for (index_t j = 0; j < s.n; ++j) EXPECT_NEAR(x[j], reference.x[j], bound);
}

struct Shape {
  index_t m, n;
};
const Shape shapes[] = {{1, 1},   {1, 4},  {4, 1},   {3, 3},   {4, 9},
                        {16, 16}, {40, 7}, {97, 33}, {20, 40}, {200, 12}};

TYPED_TEST(Engines, SolveHardProblemsWithinTheirBars) {
  using T = TypeParam;
  for (const Shape& shape : shapes) {
    const HardSystems<T> s = make_hard_systems<T>(shape.m, shape.n, 3, 11);
    const SolveProblem problem = problem_of<T>(shape.m, shape.n);
    const Results<T> results = solve_each(s, problem, "");
    for (index_t i = 0; i < s.count; ++i) expect_good(s, results, i, problem);
  }
}

/// Multiplies each b by a power of two that brings it to the size of its A, so that no solution is
/// beyond the range of float32.
template <class T>
void bring_to_one_size(HardSystems<T>& s) {
  const auto largest_of = [](const T* first, index_t count) {
    T largest = 0;
    for (index_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(first[i]));
    return largest;
  };
  for (index_t i = 0; i < s.count; ++i) {
    T* b = &s.b[i * s.m];
    const T of_a = largest_of(&s.a[i * s.m * s.n], s.m * s.n), of_b = largest_of(b, s.m);
    if (of_a == 0 || of_b == 0) continue;
    const int shift = std::ilogb(of_a) - std::ilogb(of_b);
    for (index_t r = 0; r < s.m; ++r) b[r] = std::ldexp(b[r], shift);
  }
}

TYPED_TEST(Engines, OneMatrixWithManyRightSidesGivesTheSame) {
  using T = TypeParam;
  for (const Shape& shape : shapes) {
    const HardSystems<T> s = make_hard_systems<T>(shape.m, shape.n, 1, 12);
    const SolveProblem problem = problem_of<T>(shape.m, shape.n);
    // Over all shapes, each family has its turn.
    const index_t first = (&shape - shapes) % 5;
    for (index_t i = first; i < s.count; i += 5) {
      // All right sides are solved with matrix i.
      HardSystems<T> shared = s;
      for (index_t c = 0; c < s.count; ++c)
        std::copy_n(&s.a[i * s.m * s.n], s.m * s.n, &shared.a[c * s.m * s.n]);
      bring_to_one_size(shared);
      for (index_t c = 0; c < s.count; ++c)
        shared.names[c] = s.names[i] + " with b of " + s.names[c];
      shared.is_graded.assign(s.count, true);  // b belongs to another matrix: no reference
      SharedEngine<T> engine(problem, limits);
      engine.take_matrix({&s.a[i * s.m * s.n], s.m, s.n, s.n}, nullptr, 0);
      Results<T> results(s.count, s.n);
      EXPECT_TRUE(engine.run(results.block(shared.b, s.m, s.n)).empty());
      for (index_t c = 0; c < s.count; ++c) expect_good(shared, results, c, problem);
    }
  }
}

/// Returns a sweep over rows in memory, whose visits bring some leaves each.
template <class T>
SweepRows<T> sweep_of(MatrixView<const T> ab, index_t n, index_t rows_at_once) {
  return [=](const RowScales& scales, const VisitRows<T>& visit) {
    for (index_t i = 0; i < ab.rows; i += rows_at_once) {
      const index_t rows = std::min(rows_at_once, ab.rows - i);
      const Batch<T> copy(1, rows, ab.cols);
      for (index_t r = 0; r < rows; ++r)
        for (index_t j = 0; j < ab.cols; ++j) {
          const bool is_zero = j >= n && scales.is_zero[j - n];
          const int scale = j < n ? scales.a : scales.b[j - n];
          copy.view()[0](r, j) = is_zero ? T(0) : static_cast<T>(std::ldexp(ab(i + r, j), -scale));
        }
      visit(i, copy.view()[0]);
    }
  };
}

TYPED_TEST(Engines, TallSystemsDoNotDependOnHowTheirRowsCome) {
  using T = TypeParam;
  const index_t m = 30000, n = 6;
  const HardSystems<T> s = make_hard_systems<T>(m, n, 1, 13);
  const SolveProblem problem = problem_of<T>(m, n);
  for (index_t i = 0; i < s.count; ++i) {
    const Batch<T> ab(1, m, n + 1);
    for (index_t r = 0; r < m; ++r) {
      std::copy_n(&s.a[(i * m + r) * n], n, &ab.view()[0](r, 0));
      ab.view()[0](r, n) = s.b[i * m + r];
    }
    const SweepFindings found{.a_is_finite = true, .b_is_finite = {1}, .rows_used = m};
    std::vector<std::vector<T>> solutions;
    for (const index_t leaves : {1, 100}) {
      const index_t at_once = leaves * TallShape(m, n + 1).leaf_rows();
      Results<T> results(1, n);
      TallSystem<T> system(problem, 1, leaves == 1 ? 1 : 3, sweep_of<T>(ab.view()[0], n, at_once),
                           found);
      system.run(results.block(s.b, m, n));
      SCOPED_TRACE(s.names[i]);
      EXPECT_EQ(results.reports[0].status, Status::ok)
          << results.reports[0].backward_error << " tries " << +results.reports[0].tries;
      solutions.push_back(results.x);
    }
    EXPECT_EQ(solutions[0], solutions[1]);
  }
}

TYPED_TEST(Engines, BadNumbersStayAlone) {
  using T = TypeParam;
  const index_t m = 12, n = 3;
  HardSystems<T> s = make_hard_systems<T>(m, n, 2, 14);
  const SolveProblem problem = problem_of<T>(m, n);
  const Results<T> good = solve_each(s, problem, "");
  s.a[0] = std::numeric_limits<T>::quiet_NaN();
  s.b[2 * m + 1] = std::numeric_limits<T>::infinity();
  const Results<T> results = solve_each(s, problem, "");
  for (index_t i = 0; i < s.count; ++i) {
    const bool is_bad = i == 0 || i == 2;
    EXPECT_EQ(results.reports[i].status, is_bad ? Status::non_finite : Status::ok);
    for (index_t j = 0; j < n; ++j) {
      const T x = results.x[i * n + j];
      EXPECT_TRUE(is_bad ? std::isnan(x) : x == good.x[i * n + j]);
    }
  }
}

TYPED_TEST(Engines, SkippedRowsAreAsIfTheyWereNotThere) {
  using T = TypeParam;
  const index_t m = 12, n = 3;
  HardSystems<T> s = make_hard_systems<T>(m, n, 1, 15);
  SolveProblem problem = problem_of<T>(m, n);
  problem.skips_missing = true;
  // Rows 2 and 7 of every problem are missing: one in A, one in b.
  HardSystems<T> fewer = s;
  fewer.m = m - 2;
  fewer.a.clear();
  fewer.b.clear();
  for (index_t i = 0; i < s.count; ++i) {
    for (index_t r = 0; r < m; ++r) {
      if (r == 2 || r == 7) continue;
      fewer.a.insert(fewer.a.end(), &s.a[(i * m + r) * n], &s.a[(i * m + r) * n] + n);
      fewer.b.push_back(s.b[i * m + r]);
    }
    s.a[(i * m + 2) * n + 1] = std::numeric_limits<T>::quiet_NaN();
    s.b[i * m + 7] = std::numeric_limits<T>::quiet_NaN();
  }
  const Results<T> results = solve_each(s, problem, "");
  const Results<T> expected = solve_each(fewer, problem_of<T>(m - 2, n), "");
  const double u = problem.type == ElementType::float32 ? 0x1p-23 : 0x1p-52;
  for (index_t i = 0; i < s.count; ++i) {
    SCOPED_TRACE(s.names[i]);
    EXPECT_EQ(results.reports[i].status, Status::ok);
    EXPECT_EQ(results.findings[i].rank, expected.findings[i].rank);
    if (s.is_graded[i] || !(expected.findings[i].condition < 1e4)) continue;
    for (index_t j = 0; j < n; ++j) {
      EXPECT_NEAR(results.x[i * n + j], expected.x[i * n + j],
                  1e6 * u * (1 + std::abs(expected.x[i * n + j])));
      EXPECT_NEAR(results.se[i * n + j], expected.se[i * n + j],
                  1e6 * u * (1 + std::abs(expected.se[i * n + j])));
    }
  }
}

TYPED_TEST(Engines, AZeroWeightRemovesARowAndTwoCountsItTwice) {
  using T = TypeParam;
  const T a[] = {1, 1, 1, 2, 1, 3, 1, 4}, b[] = {1, 3, 2, 5}, w[] = {1, 2, 1, 0};
  const T a2[] = {1, 1, 1, 2, 1, 2, 1, 3}, b2[] = {1, 3, 3, 2};
  const SolveProblem problem = problem_of<T>(4, 2);
  CpuBackend backend(limits);
  const Plan plan =
      make_plan(SystemEngine<T>::factored_problem(problem, 1, 1), backend.variants(), limits);
  SystemEngine<T> engine(problem, backend, plan, 1);
  Results<T> weighted(1, 2), repeated(1, 2);
  RightSideBlock<T> block = weighted.block(std::vector<T>(b, b + 4), 4, 2);
  block.b = b;
  block.w = w;
  block.w_places = VectorPlaces::rows(4);
  const SystemRef<T> one{a, 0}, two{a2, 0};
  engine.run({&one, 1}, block);
  block = repeated.block(std::vector<T>(b2, b2 + 4), 4, 2);
  block.b = b2;
  engine.run({&two, 1}, block);
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
  for (int j = 0; j < 2; ++j) EXPECT_NEAR(weighted.x[j], repeated.x[j], tolerance);
  EXPECT_NEAR(weighted.reports[0].residual_norm, repeated.reports[0].residual_norm, tolerance);
  // Three rows are used, not four.
  EXPECT_NEAR(weighted.se[0] / repeated.se[0], std::sqrt(2.0), tolerance);
}

TYPED_TEST(Engines, ARidgeIsTheSolutionOfTheLongerSystem) {
  using T = TypeParam;
  const T a[] = {1, 1, 1, 2, 1, 3, 0, 0, 0, 0}, b[] = {1, 3, 2, 0, 0};
  T longer[10];
  std::copy_n(a, 10, longer);
  longer[6] = longer[9] = T(0.5);
  SolveProblem ridge = problem_of<T>(3, 2);
  ridge.ridge = 0.25;
  const auto solve = [&](const SolveProblem& problem, const T* matrix) {
    CpuBackend backend(limits);
    const Plan plan =
        make_plan(SystemEngine<T>::factored_problem(problem, 1, 1), backend.variants(), limits);
    SystemEngine<T> engine(problem, backend, plan, 1);
    Results<T> results(1, 2);
    RightSideBlock<T> block = results.block({}, problem.m, 2);
    block.b = b;
    const SystemRef<T> one{matrix, 0};
    engine.run({&one, 1}, block);
    return results;
  };
  const Results<T> with_ridge = solve(ridge, a), with_rows = solve(problem_of<T>(5, 2), longer);
  EXPECT_EQ(with_ridge.x, with_rows.x);
  // The residual is that of the data.
  EXPECT_LT(with_ridge.reports[0].residual_norm, with_rows.reports[0].residual_norm);
}

}  // namespace
}  // namespace qrtool::test::system_engine_test
