// SPDX-License-Identifier: Apache-2.0
// systems_test.cpp: hard systems through a device: what it accepts is within its bar and agrees
// with a reference, and what it refuses is named.
#include "gpu/solve/systems.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <span>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/backward_error.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "gpu/host/session.hpp"
#include "gpu/solve/resident/resident_systems.hpp"
#include "tests/gpu/opencl_fixture.hpp"
#include "tests/gpu/solve/system_answer.hpp"
#include "tests/support/solution_error.hpp"
#include "tests/support/uneven_systems.hpp"

namespace qrtool::test::systems_test {
namespace {

template <class T>
class Systems : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Systems, Types);

/// ||b - A x||, the norm of A, and the reference of one system.
template <class T>
struct Judged {
  Judged(const std::vector<T>& a, const std::vector<T>& b, index_t system, index_t m, index_t n)
      : wide(1, m, n) {
    for (index_t e = 0; e < m * n; ++e) wide.view().data[e] = a[system * m * n + e];
    for (index_t i = 0; i < m; ++i) right.push_back(b[system * m + i]);
  }
  double residual_norm(const T* x) const {
    std::vector<double> r = right;
    const MatrixView<double> a = wide.view()[0];
    for (index_t i = 0; i < a.rows; ++i)
      for (index_t j = 0; j < a.cols; ++j) r[i] -= a(i, j) * static_cast<double>(x[j]);
    return norm_of(r.data(), std::ssize(r));
  }
  double norm() const { return norm_of(wide.view().data, wide.view().rows * wide.view().cols); }

  Batch<double> wide;
  std::vector<double> right;
};

/// Singular value decompositions of more entries take long.
constexpr index_t largest_reference = 2500;

template <class T>
void expect_good(const HardSystems<T>& s, const Answer<T>& answer, index_t i, double tolerance) {
  SCOPED_TRACE(testing::Message() << s.names[i] << " " << s.m << "x" << s.n << " number " << i);
  const SolutionReport& report = answer.reports[i];
  EXPECT_EQ(report.status, Status::ok);
  EXPECT_LE(report.backward_error, report.bar);
  const Judged<T> judged(s.a, s.b, i, s.m, s.n);
  const T* x = &answer.x[i * s.n];
  const double size = judged.norm() * norm_of(std::vector<double>(x, x + s.n).data(), s.n) +
                      norm_of(judged.right.data(), s.m);
  EXPECT_NEAR(report.residual_norm, judged.residual_norm(x), 1e-12 * size);
  if (s.m * s.n > largest_reference) return;
  const Reference reference = solve_by_svd(judged.wide.view()[0], judged.right.data(), tolerance);
  EXPECT_EQ(answer.findings[i].rank, reference.rank);
  EXPECT_LE(answer.findings[i].scaled_condition, 1.01 * reference.condition);
  EXPECT_GE(answer.findings[i].scaled_condition, 0.2 * reference.condition);
  if (s.is_graded[i]) return;
  const double u = sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
  const double kappa = reference.condition * std::sqrt(static_cast<double>(s.n));
  const double bound =
      40 * u * kappa *
      (norm_of(reference.x.data(), s.n) + kappa * report.residual_norm / judged.norm() +
       norm_of(judged.right.data(), s.m) / judged.norm());
  for (index_t j = 0; j < s.n; ++j) EXPECT_NEAR(x[j], reference.x[j], bound);
}

/// Everyday tests take every second of these shapes in each type.
template <class T>
std::vector<Shape> in_turn(std::initializer_list<Shape> shapes) {
  std::vector<Shape> taken;
  bool is_of_type = sizeof(T) == 4;
  for (const Shape& shape : shapes) {
    if (is_of_type || takes_all()) taken.push_back(shape);
    is_of_type = !is_of_type;
  }
  return taken;
}

// Around the sizes of teams and tiles: 4, 16, 64, 128 and 256 columns, 32 rows. Building the
// kernels for each number of columns takes most of the time.
const Shape shapes[] = {{1, 1},   {4, 1},   {300, 1},  {3, 3},     {16, 4},   {33, 16},
                        {40, 17}, {65, 64}, {200, 17}, {202, 201}, {260, 257}};

TYPED_TEST(Systems, HardSystemsAreWithinTheirBarOrRefused) {
  using T = TypeParam;
  index_t accepted = 0, all = 0;
  for (const Shape& shape : shapes) {
    const HardSystems<T> s = make_hard_systems<T>(shape.m, shape.n, 1, 21);
    const SolveProblem problem = problem_of<T>(shape.m, shape.n);
    const Answer<T> answer = ask(problem, s.a, s.b);
    for (index_t i = 0; i < s.count; ++i) {
      ++all;
      if (!answer.accepts(i)) continue;
      ++accepted;
      expect_good(s, answer, i, problem.rank.tolerance);
    }
  }
  // Four of nine kinds of matrices have columns that are dependent, or nearly so.
  EXPECT_GT(accepted, all / 3) << "of " << all;
}

TYPED_TEST(Systems, OrdinarySystemsAreAccepted) {
  using T = TypeParam;
  for (const Shape& shape : shapes) {
    const HardSystems<T> s = make_hard_systems<T>(shape.m, shape.n, 1, 22);
    const Answer<T> answer = ask(problem_of<T>(shape.m, shape.n), s.a, s.b);
    for (index_t i = 0; i < s.count; ++i) {
      if (s.names[i].starts_with("gauss")) {
        EXPECT_TRUE(answer.accepts(i)) << s.names[i] << " " << s.m << "x" << s.n;
      }
    }
  }
}

/// What normal equations give for ordinary systems is good alone: nothing hides behind the second
/// try.
template <class T>
void expect_normal_equations_solve(const Shape& shape, std::string_view body = {}) {
  const HardSystems<T> s = make_hard_systems<T>(shape.m, shape.n, 2, 26);
  const index_t m = s.m, n = s.n, count = 5;
  ASSERT_TRUE(s.names[count - 1].starts_with("gauss"));
  const SolveProblem problem = problem_of<T>(m, n);
  const Plan plan =
      plan_for({.count = count, .m = m, .n = n, .type = problem.type, .mode = Mode::r}, "");
  ResidentSystems<T> systems(backend(), problem, plan, packed(s.a.data(), count, m, n),
                             std::span(s.b).first(static_cast<std::size_t>(count * m)),
                             SystemRoute::normal_equations, body);
  // Sums of float64 by NVIDIA's products take at most 64 columns.
  const bool by_variant =
      sizeof(T) == 8 && m > 4096 && n > 64 && backend().limits().float64_products;
  EXPECT_EQ(systems.run().factor > 0, by_variant) << "R by a variant";
  const std::vector<SolutionErrors> errors = systems.errors();
  for (index_t i = 0; i < count; ++i)
    EXPECT_LE(errors[i].error, solution_bar(problem.type, m, n)) << m << "x" << n << " " << i;
}

TYPED_TEST(Systems, NormalEquationsSolveOrdinarySystems) {
  // A work-item for a system, which keeps A or reads it again; teams of 3, 6 and more; groups whose
  // last team has no system; rows that do not fill a tile; one block of four and of eight columns
  // more than needed.
  for (const Shape& shape :
       in_turn<TypeParam>({{1, 1},
                           {9, 2},
                           {16, 3},
                           {16, 4},
                           {19, 4},
                           {5, 5},
                           {30, 9},
                           {16, 16},
                           {64, 33},
                           // Sums over slabs by groups, in several arrangements of the columns.
                           {4097, 3},
                           {6200, 33},
                           {4097, 64},
                           {4200, 100}}))
    expect_normal_equations_solve<TypeParam>(shape);
}

/// The same by a warp for each system: one to five blocks of columns, the last one full or partly,
/// slabs with and without rows past the last.
TYPED_TEST(Systems, NormalTilesSolveOrdinarySystems) {
  for (const Shape& shape : in_turn<TypeParam>({{19, 4}, {300, 12}, {97, 33}, {64, 64}, {81, 79}}))
    expect_normal_equations_solve<TypeParam>(shape, "normal_tile");
}

/// The same by a group of warps: six to ten blocks of columns, copies of one entry to four, rows
/// that do not fill a stage.
TYPED_TEST(Systems, NormalGroupsSolveOrdinarySystems) {
  for (const Shape& shape : in_turn<TypeParam>({{92, 90}, {121, 97}, {130, 128}, {171, 150}}))
    expect_normal_equations_solve<TypeParam>(shape, "normal_group");
}

/// Normal equations square the norms of columns, and pivots of NVIDIA's bodies multiply three
/// squares, which is good to about 2^170. Beyond, R of a variant takes over.
TEST(SystemsOfAnyScale, AreSolved) {
  SKIP_WITHOUT_OPENCL();
  if (!backend().limits().has_float64) GTEST_SKIP() << "the device has no float64";
  const index_t m = 92, n = 90, count = 2;
  HardSystems<double> s = make_hard_systems<double>(m, n, count, 26);
  s.a.resize(count * m * n);
  s.b.resize(count * m);
  const SolveProblem problem = problem_of<double>(m, n);
  const Answer<double> ordinary = ask(problem, s.a, s.b);
  for (const int power : {160, -160, 300, -300}) {
    SCOPED_TRACE(power);
    std::vector<double> a = s.a;
    for (double& x : a) x = std::ldexp(x, power);
    const Answer<double> scaled = ask(problem, a, s.b);
    EXPECT_TRUE(scaled.refused.empty());
    for (index_t i = 0; i < count; ++i) {
      EXPECT_EQ(scaled.reports[i].status, Status::ok);
      EXPECT_LE(scaled.reports[i].backward_error, scaled.reports[i].bar);
    }
    for (index_t e = 0; e < count * n; ++e) {
      const double x = ordinary.x[e], other = std::ldexp(scaled.x[e], power);
      EXPECT_NEAR(other, x, std::abs(power) == 160 ? 0 : 1e-10 * (1 + std::abs(x)));
    }
  }
}

/// Of float64 data a condition of 10^4 leaves an error of about 10^4 u without a correction. With
/// 115 columns a team reads R where it is.
template <class T>
void expect_correction(index_t n) {
  const index_t m = 4200, count = 2;
  HardSystems<T> s = make_hard_systems<T>(m, n, count, 28);
  for (index_t row = 0; row < count * m; ++row) {
    T* a = &s.a[row * n];
    a[1] = a[0] + static_cast<T>(1e-4) * a[1];
    s.b[row] = std::accumulate(a, a + n, T(0));
  }
  const SolveProblem problem = problem_of<T>(m, n);
  const Plan plan =
      plan_for({.count = count, .m = m, .n = n, .type = problem.type, .mode = Mode::r}, "");
  ResidentSystems<T> systems(backend(), problem, plan, packed(s.a.data(), count, m, n),
                             std::span(s.b).first(static_cast<std::size_t>(count * m)));
  const bool by_variant = n > 64 && sizeof(T) == 8 && backend().limits().float64_products;
  ASSERT_EQ(systems.run().factor > 0, by_variant) << "R by a variant";
  const std::vector<T> x = systems.solutions();
  for (const T& entry : x) EXPECT_NEAR(entry, 1, sizeof(T) == 4 ? 1e-2 : 1e-10);
  for (const SolutionErrors& errors : systems.errors())
    EXPECT_LE(errors.residual_norm,
              (sizeof(T) == 4 ? 1e-6 : 1e-15) * 2 *
                  norm_of(std::vector<double>(s.b.begin(), s.b.begin() + m).data(), m));
}

TYPED_TEST(Systems, TallNormalEquationsAreCorrected) {
  expect_correction<TypeParam>(4);
  // Other devices have one body for both, and build it for a minute.
  if (backend().limits().float64_products) expect_correction<TypeParam>(115);
}

/// A run builds the kernels that it launches, and no whole file; their results have the same bits.
TYPED_TEST(Systems, KernelsBuiltInPartsGiveTheSameBits) {
  using T = TypeParam;
  const DeviceInfo info = device_under_test();
  ProgramCache& programs = session_for(info).programs;
  const bool had_parts = programs.has_parts();
  for (const Shape& shape : {Shape{26, 13}, Shape{4111, 7}}) {
    const HardSystems<T> s = make_hard_systems<T>(shape.m, shape.n, 1, 31);
    const index_t m = s.m, n = s.n;
    const SolveProblem problem = problem_of<T>(m, n);
    const Plan plan =
        plan_for({.count = 2, .m = m, .n = n, .type = problem.type, .mode = Mode::r}, "");
    for (const SystemRoute route : {SystemRoute::normal_equations, SystemRoute::factors}) {
      if (m > 1000 && route == SystemRoute::factors) continue;  // `tall` takes long to build
      const auto solve = [&](bool has_parts) {
        programs.set_builders(has_parts, {});
        OpenclBackend own(info);
        ResidentSystems<T> systems(own, problem, plan, packed(s.a.data(), 2, m, n),
                                   std::span(s.b).first(static_cast<std::size_t>(2 * m)), route);
        systems.run();
        return systems.solutions();
      };
      const std::size_t whole = programs.size();
      const std::vector<T> in_parts = solve(true);
      EXPECT_EQ(programs.size(), whole) << m << "x" << n;
      EXPECT_EQ(solve(false), in_parts) << m << "x" << n;
    }
  }
  programs.set_builders(had_parts, {});
}

TYPED_TEST(Systems, TallSystemsAreSharedByGroups) {
  using T = TypeParam;
  for (const Shape& shape : {Shape{4096, 3}, Shape{4097, 3}, Shape{4097, 17}}) {
    const HardSystems<T> s = make_hard_systems<T>(shape.m, shape.n, 1, 23);
    const SolveProblem problem = problem_of<T>(shape.m, shape.n);
    const Answer<T> answer = ask(problem, s.a, s.b);
    for (index_t i = 0; i < s.count; ++i) {
      if (answer.accepts(i)) expect_good(s, answer, i, problem.rank.tolerance);
      if (s.names[i].starts_with("gauss")) {
        EXPECT_TRUE(answer.accepts(i)) << s.names[i];
      }
    }
  }
}

/// R'R x = A'b alone leaves a residual of about the condition times u where b is in the range of A;
/// corrections bring it to u.
TYPED_TEST(Systems, CorrectionsBringIllConditionedSystemsToTheirBar) {
  using T = TypeParam;
  const T noise = static_cast<T>(sizeof(T) == 4 ? 3e-4 : 1e-9);
  for (const Shape& shape : {Shape{30, 4}, Shape{4200, 4}}) {
    HardSystems<T> s = make_hard_systems<T>(shape.m, shape.n, 2, 25);
    // The first systems are Gaussian. Column 1 comes near to column 0; x = (1, .., 1).
    const index_t count = 8, m = s.m, n = s.n;
    s.a.resize(static_cast<std::size_t>(count * m * n));
    s.b.assign(static_cast<std::size_t>(count * m), T(0));
    for (index_t row = 0; row < count * m; ++row) {
      T* a = &s.a[row * n];
      a[1] = a[0] + noise * a[1];
      for (index_t j = 0; j < n; ++j) s.b[row] += a[j];
    }
    const Answer<T> answer = ask(problem_of<T>(m, n), s.a, s.b);
    for (index_t i = 0; i < count; ++i) {
      EXPECT_TRUE(answer.accepts(i))
          << m << "x" << n << ": " << answer.reports[i].backward_error / answer.reports[i].bar;
    }
  }
}

/// Right sides as rows and as columns give the same bits, and so does each alone, by R.
TYPED_TEST(Systems, RightSidesMayLieInRowsOrColumns) {
  using T = TypeParam;
  for (const auto& [shape, ridge] : {std::pair(Shape{30, 4}, 0.0),
                                     {Shape{30, 4}, 0.5},
                                     {Shape{4200, 4}, 0.0},
                                     {Shape{5, 12}, 0.0}}) {
    SCOPED_TRACE(testing::Message() << shape.m << "x" << shape.n << " ridge " << ridge);
    const HardSystems<T> s = make_hard_systems<T>(shape.m, shape.n, 1, 24);
    const index_t m = s.m, n = s.n, sides = 3;
    const std::vector<T> a(s.a.begin(), s.a.begin() + 2 * m * n),
        rows(s.b.begin(), s.b.begin() + 2 * sides * m);
    std::vector<T> columns(rows.size());
    for (index_t v = 0; v < 2 * sides; ++v)
      for (index_t i = 0; i < m; ++i)
        columns[v / sides * sides * m + i * sides + v % sides] = rows[v * m + i];
    SolveProblem problem = problem_of<T>(m, n);
    problem.ridge = ridge;
    problem.wants_se = ridge == 0 && m > n;
    const Answer<T> by_rows = ask(problem, a, rows), by_columns = ask(problem, a, columns, false);
    ASSERT_TRUE(by_rows.refused.empty());
    ASSERT_TRUE(by_columns.refused.empty());
    for (index_t v = 0; v < 2 * sides; ++v) {
      for (index_t j = 0; j < n; ++j) {
        const index_t at = v / sides * sides * n + j * sides + v % sides;
        EXPECT_EQ(by_rows.x[v * n + j], by_columns.x[at]);
        EXPECT_EQ(by_rows.se[v * n + j], by_columns.se[at]);
      }
      EXPECT_EQ(by_rows.reports[v].backward_error, by_columns.reports[v].backward_error);
      EXPECT_EQ(by_rows.reports[v].residual_norm, by_columns.reports[v].residual_norm);
      const std::vector<T> one(rows.begin() + v * m, rows.begin() + (v + 1) * m),
          its_a(a.begin() + v / sides * m * n, a.begin() + (v / sides + 1) * m * n);
      const Answer<T> alone = ask(problem, its_a, one, true, SystemRoute::factors);
      for (index_t j = 0; j < n; ++j) EXPECT_EQ(by_rows.x[v * n + j], alone.x[j]);
    }
  }
}

/// What the rounding errors of float64 may change in ||b - A x|| of a system, with its weights.
template <class T>
double rounding_of_residual(const UnevenSystems<T>& s, const std::vector<T>& x, index_t system) {
  const index_t m = s.systems.m, n = s.systems.n;
  double squares = 0;
  for (index_t i = 0; i < m; ++i) {
    const double factor = s.factors[system * m + i];
    if (factor == 0) continue;
    double size = std::abs(static_cast<double>(s.systems.b[system * m + i]));
    for (index_t j = 0; j < n; ++j)
      size += std::abs(static_cast<double>(s.systems.a[(system * m + i) * n + j]) *
                       static_cast<double>(x[system * n + j]));
    squares += factor * size * factor * size;
  }
  // Rows with weights are rounded.
  return (sizeof(T) == 4 && !s.w.empty() ? 1e-6 : 1e-14) * std::sqrt(squares);
}

/// Returns how many of some hard systems a device accepts: core accepts them too. The rules of rows
/// have the ridges in turn.
template <class T>
index_t expect_core_accepts(const HardSystems<T>& hard, std::span<const double> ridges) {
  index_t accepted = 0;
  std::size_t turn = 0;
  for (RowRule rule : row_rules) {
    rule.ridge = ridges[turn++ % ridges.size()];
    SCOPED_TRACE(testing::Message() << name_of(rule) << " ridge " << rule.ridge);
    const UnevenSystems<T> s = make_uneven_systems(hard, rule, 1);
    const SolveProblem problem = s.problem();
    const Plan plan = plan_of_r(problem);
    Answer<T> answer(hard.count, 1, hard.n);
    answer.refused = make_system_device<T>(backend(), problem, plan)
                         ->run(packed(s.systems.a.data(), hard.count, hard.m, hard.n),
                               s.block(answer.x, answer.reports, answer.findings));
    const SystemAnswers<T> checked = check_on_cpu(s, answer.x);
    for (index_t i = 0; i < hard.count; ++i) {
      if (!answer.accepts(i)) continue;
      ++accepted;
      EXPECT_EQ(checked.reports[i].status, Status::ok)
          << hard.names[i] << ": " << checked.reports[i].backward_error / checked.reports[i].bar;
      // With a ridge the norm is a difference of squares.
      EXPECT_NEAR(answer.reports[i].residual_norm, checked.reports[i].residual_norm,
                  1e-10 * checked.reports[i].residual_norm + rounding_of_residual(s, answer.x, i))
          << hard.names[i];
    }
  }
  return accepted;
}

/// Also where the sums of b - A x have rounding errors of a part of the bar, as in float64 systems
/// with a condition of 1e13.
TYPED_TEST(Systems, CoreAcceptsWhatADeviceAccepts) {
  const auto hard = make_hard_systems<TypeParam>(16, 16, 4, 1);
  const double no_ridge[] = {0};
  EXPECT_GT(expect_core_accepts<TypeParam>(hard, no_ridge), hard.count);
}

/// With fewer rows than columns: the rank, the least norm and the condition are the CPU's.
TYPED_TEST(Systems, WideSystemsHaveTheLeastNorm) {
  using T = TypeParam;
  const double no_ridge[] = {0};
  for (const Shape& shape : {Shape{5, 12}, Shape{1, 3}, Shape{33, 70}}) {
    if (shape.m > 5 && !takes_all()) continue;
    const auto hard = make_hard_systems<T>(shape.m, shape.n, 1, 3);
    SCOPED_TRACE(testing::Message() << shape.m << "x" << shape.n);
    EXPECT_GT(expect_core_accepts<T>(hard, no_ridge), hard.count);
    SolveProblem problem = problem_of<T>(shape.m, shape.n);
    const Answer<T> answer = ask(problem, hard.a, hard.b);
    for (index_t i = 0; i < hard.count; ++i) {
      if (!answer.accepts(i)) {
        EXPECT_FALSE(hard.names[i].starts_with("gauss")) << hard.names[i];
        continue;
      }
      EXPECT_LE(answer.reports[i].least_norm_error, answer.reports[i].bar) << hard.names[i];
      // Rounding to float32 leaves no x in the span of the rows.
      if (sizeof(T) == 4 && hard.names[i] == "gauss, random b") {
        EXPECT_GT(answer.reports[i].least_norm_error, 0);
      }
      EXPECT_EQ(answer.findings[i].rank, shape.m);
      EXPECT_EQ(answer.reports[i].freedom, 0);
      if (hard.is_graded[i]) continue;
      const Judged<T> judged(hard.a, hard.b, i, hard.m, hard.n);
      const Reference reference =
          solve_by_svd(judged.wide.view()[0], judged.right.data(), problem.rank.tolerance);
      const double size = norm_of(reference.x.data(), hard.n);
      const double bound = 40 * (sizeof(T) == 4 ? 0x1p-23 : 0x1p-52) * reference.condition * size;
      for (index_t j = 0; j < hard.n; ++j)
        EXPECT_NEAR(answer.x[i * hard.n + j], reference.x[j], bound) << hard.names[i];
    }
  }
}

/// Ridges that are tiny, ordinary and huge beside A: with these most dependent columns are none.
TYPED_TEST(Systems, CoreAcceptsWhatADeviceAcceptsWithARidge) {
  const auto hard = make_hard_systems<TypeParam>(16, 16, 1, 2);
  const double ridges[] = {0.25, 1e12, 1e-25};
  EXPECT_GT(expect_core_accepts<TypeParam>(hard, ridges), 3 * hard.count);
}

}  // namespace
}  // namespace qrtool::test::systems_test
