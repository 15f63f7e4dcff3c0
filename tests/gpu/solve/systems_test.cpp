// SPDX-License-Identifier: Apache-2.0
// systems_test.cpp: hard systems through a device: what it accepts is within its bar and agrees
// with a reference, and what it refuses is named.
#include "gpu/solve/systems.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/backward_error.hpp"
#include "core/solve/system_engine.hpp"
#include "gpu/host/session.hpp"
#include "gpu/solve/resident_systems.hpp"
#include "tests/gpu/opencl_fixture.hpp"
#include "tests/support/solution_error.hpp"
#include "tests/support/uneven_systems.hpp"

namespace qrtool::test {
namespace {

template <class T>
class Systems : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Systems, Types);

template <class T>
SolveProblem problem_of(index_t m, index_t n) {
  return {.type = element_type<T>,
          .m = m,
          .n = n,
          .rank = {.tolerance = default_rank_tolerance(element_type<T>, n)},
          .wants_se = m > n};
}

/// R by the same variant, however many systems there are.
Plan plan_of_r(const SolveProblem& p) {
  return plan_for({.count = 100, .m = p.m, .n = p.n, .type = p.type, .mode = Mode::r}, "");
}

/// What a device says of some systems. Places that it must fill hold a number that no solution has.
template <class T>
struct Answer {
  static constexpr T unset = T(-12345.5);

  Answer(index_t systems, index_t sides, index_t n)
      : x(systems * sides * n, unset),
        se(x.size(), unset),
        reports(systems * sides),
        findings(reports.size()) {}

  std::vector<T> x, se;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
  std::vector<index_t> refused;

  bool accepts(index_t system) const {
    return !std::binary_search(refused.begin(), refused.end(), system);
  }
};

template <class T>
Answer<T> ask(const SolveProblem& problem, const std::vector<T>& a, const std::vector<T>& b,
              bool as_rows = true, SystemRoute route = SystemRoute::normal_equations) {
  const index_t m = problem.m, n = problem.n, systems = std::ssize(a) / (m * n);
  const index_t sides = std::ssize(b) / (m * systems);
  Answer<T> answer(systems, sides, n);
  const auto places = [&](index_t length) {
    return as_rows ? VectorPlaces::rows(length) : VectorPlaces::columns(length, sides);
  };
  const Plan plan = plan_of_r(problem);
  const auto device = make_system_device<T>(backend(), problem, plan, route);
  answer.refused = device->run(packed(a.data(), systems, m, n),
                               {.count = systems * sides,
                                .b = b.data(),
                                .b_places = places(m),
                                .x = answer.x.data(),
                                .se = problem.wants_se ? answer.se.data() : nullptr,
                                .x_places = places(n),
                                .reports = answer.reports,
                                .findings = answer.findings});
  return answer;
}

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

struct Shape {
  index_t m, n;
};
// Around the sizes of teams and tiles: 4, 16, 64, 128 and 256 columns, 32 rows. Building the
// kernels for each number of columns takes most of the time.
const Shape shapes[] = {{1, 1},   {4, 1},   {300, 1},  {3, 3},     {16, 4},   {33, 16},
                        {40, 17}, {65, 64}, {200, 17}, {130, 129}, {260, 257}};

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
  for (const Shape& shape : {Shape{1, 1}, Shape{9, 2}, Shape{16, 3}, Shape{16, 4}, Shape{19, 4},
                             Shape{5, 5}, Shape{30, 9}, Shape{16, 16}, Shape{64, 33},
                             // Sums over slabs by groups, in several arrangements of the columns.
                             Shape{4097, 3}, Shape{6200, 33}, Shape{4097, 64}, Shape{4200, 100}})
    expect_normal_equations_solve<TypeParam>(shape);
}

/// The same by a warp for each system: one to five blocks of columns, the last one full or partly,
/// slabs with and without rows past the last.
TYPED_TEST(Systems, NormalTilesSolveOrdinarySystems) {
  for (const Shape& shape : {Shape{19, 4}, Shape{97, 33}, Shape{64, 64}, Shape{81, 79}})
    expect_normal_equations_solve<TypeParam>(shape, "normal_tile");
}

/// The same by a group of warps: six to eight blocks of columns, copies of one entry to four, rows
/// that do not fill a stage.
TYPED_TEST(Systems, NormalGroupsSolveOrdinarySystems) {
  for (const Shape& shape : {Shape{92, 90}, Shape{121, 97}, Shape{130, 128}})
    expect_normal_equations_solve<TypeParam>(shape, "normal_group");
}

/// Of float64 data a condition of 10^4 leaves an error of about 10^4 u without a correction.
TYPED_TEST(Systems, TallNormalEquationsAreCorrected) {
  using T = TypeParam;
  const index_t m = 4200, n = 4, count = 2;
  HardSystems<T> s = make_hard_systems<T>(m, n, count, 28);
  for (index_t row = 0; row < count * m; ++row) {
    T* a = &s.a[row * n];
    a[1] = a[0] + static_cast<T>(1e-4) * a[1];
    s.b[row] = a[0] + a[1] + a[2] + a[3];
  }
  const SolveProblem problem = problem_of<T>(m, n);
  const Plan plan =
      plan_for({.count = count, .m = m, .n = n, .type = problem.type, .mode = Mode::r}, "");
  ResidentSystems<T> systems(backend(), problem, plan, packed(s.a.data(), count, m, n),
                             std::span(s.b).first(static_cast<std::size_t>(count * m)));
  ASSERT_EQ(systems.run().factor, 0) << "R by a variant";
  const std::vector<T> x = systems.solutions();
  for (const T& entry : x) EXPECT_NEAR(entry, 1, sizeof(T) == 4 ? 1e-2 : 1e-10);
  for (const SolutionErrors& errors : systems.errors())
    EXPECT_LE(errors.residual_norm,
              (sizeof(T) == 4 ? 1e-6 : 1e-15) * 2 *
                  norm_of(std::vector<double>(s.b.begin(), s.b.begin() + m).data(), m));
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
  for (const Shape& shape : {Shape{30, 4}, Shape{4200, 4}}) {
    const HardSystems<T> s = make_hard_systems<T>(shape.m, shape.n, 1, 24);
    const index_t m = s.m, n = s.n, sides = 3;
    const std::vector<T> a(s.a.begin(), s.a.begin() + 2 * m * n),
        rows(s.b.begin(), s.b.begin() + 2 * sides * m);
    std::vector<T> columns(rows.size());
    for (index_t v = 0; v < 2 * sides; ++v)
      for (index_t i = 0; i < m; ++i)
        columns[v / sides * sides * m + i * sides + v % sides] = rows[v * m + i];
    const SolveProblem problem = problem_of<T>(m, n);
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
      const std::vector<T> one(rows.begin() + v * m, rows.begin() + (v + 1) * m),
          its_a(a.begin() + v / sides * m * n, a.begin() + (v / sides + 1) * m * n);
      const Answer<T> alone = ask(problem, its_a, one, true, SystemRoute::factors);
      for (index_t j = 0; j < n; ++j) EXPECT_EQ(by_rows.x[v * n + j], alone.x[j]);
    }
  }
}

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
            .se = answer.se.data(),
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
    EXPECT_NEAR(of_device.se[j], of_cpu.se[j], u_of_x * of_cpu.se[j]);
  }
}

/// A row of more entries than work-items; a last group that is not full; tall systems.
const Shape weighted_shapes[] = {{30, 4}, {41, 1}, {70, 33}, {4200, 4}};

TYPED_TEST(Systems, TakeWeightsAndLeaveMissingRowsOut) {
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

TYPED_TEST(Systems, OneAServesSidesWithWeightsAndGapsOfTheirOwn) {
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

/// The scale of the weights of a right side changes no bit of its x, and residuals by its root. A
/// right side gets the bits that it gets in other company.
TYPED_TEST(Systems, ScalesOfWeightsAndCompanyChangeNoBit) {
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
TYPED_TEST(Systems, CoreAcceptsWhatADeviceAcceptsOfOneA) {
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
TYPED_TEST(Systems, WeightsThatAreOutOfRangeAreLeftToTheHost) {
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
TYPED_TEST(Systems, WeightsOfZeroHideNumbersThatAreNotFinite) {
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

/// What a device accepts, core accepts too: also where the sums of b - A x have rounding errors of
/// a part of the bar, as in float64 systems with a condition of 1e13.
TYPED_TEST(Systems, CoreAcceptsWhatADeviceAccepts) {
  using T = TypeParam;
  const HardSystems<T> hard = make_hard_systems<T>(16, 16, 4, 1);
  index_t accepted = 0;
  for (const RowRule& rule : row_rules) {
    SCOPED_TRACE(name_of(rule));
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
    }
  }
  EXPECT_GT(accepted, hard.count);
}

}  // namespace
}  // namespace qrtool::test
