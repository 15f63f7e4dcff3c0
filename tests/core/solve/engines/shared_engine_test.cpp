// SPDX-License-Identifier: Apache-2.0
// shared_engine_test.cpp: many right sides of one matrix, with and without gaps, against systems
// that are solved one by one.
#include "core/solve/engines/shared_engine.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/solve/system.hpp"

namespace qrtool::test::shared_engine_test {
namespace {

template <class T>
class Shared : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Shared, Types);

const Limits limits{.host_bytes = std::size_t{1} << 30, .threads = 2};
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// One A and `count` right sides in the places that VectorPlaces names.
template <class T>
struct Run {
  Run(index_t m, index_t n, index_t right_sides)
      : problem{.type = element_type<T>,
                .m = m,
                .n = n,
                .rank = {.tolerance = default_rank_tolerance(element_type<T>, n)},
                .wants_se = true},
        count(right_sides),
        a(m * n),
        b(m * count),
        x(n * count, T(7)),
        se(x.size(), T(7)),
        reports(count),
        findings(count) {
    std::mt19937_64 random(static_cast<std::uint64_t>(m * 100 + n));
    std::normal_distribution<double> normal;
    for (T& each : a) each = static_cast<T>(normal(random));
    for (T& each : b) each = static_cast<T>(100 * normal(random));
    b_places = VectorPlaces::rows(m);
    x_places = VectorPlaces::rows(n);
  }
  /// Stores the right sides as columns of matrices that have `group` columns.
  void use_columns(index_t group) {
    std::vector<T> old = b;
    b_places = VectorPlaces::columns(problem.m, group);
    x_places = VectorPlaces::columns(problem.n, group);
    for (index_t s = 0; s < count; ++s)
      for (index_t i = 0; i < problem.m; ++i) at(s, i) = old[s * problem.m + i];
  }
  T& at(index_t s, index_t i) { return b[b_places.start(s) + i * b_places.step]; }
  T x_at(index_t s, index_t j) const { return x[x_places.start(s) + j * x_places.step]; }
  T se_at(index_t s, index_t j) const { return se[x_places.start(s) + j * x_places.step]; }

  RightSideBlock<T> block() {
    return {.count = count,
            .b = b.data(),
            .b_places = b_places,
            .w = each_w.empty() ? nullptr : each_w.data(),
            .w_places = b_places,
            .x = x.data(),
            .se = problem.wants_se ? se.data() : nullptr,
            .x_places = x_places,
            .reports = reports,
            .findings = findings};
  }
  const T* weights() const { return w.empty() ? nullptr : w.data(); }
  /// Returns the right sides that are left.
  std::vector<index_t> solve() {
    SharedEngine<T> engine(problem, limits);
    engine.take_matrix({a.data(), problem.m, problem.n, problem.n}, weights(), 1);
    return engine.run(block());
  }
  /// R of the rows that count by Eigen, for each right side.
  void solve_one_by_one() {
    const index_t m = problem.packed_rows(), n = problem.n;
    RowFactors rows(problem.m);
    SystemSolver<T> solver(problem.rules());
    const Batch<T> ab(1, m, n + 1);
    const Batch<double> r(1, n, n), z(1, n, 1);
    RightSideBlock<T> places = block();
    if (each_w.empty()) {
      places.w = weights();
      places.w_places = {1, 0, 0, 1};
    }
    for (index_t s = 0; s < count; ++s) {
      const MatrixView<T> all = ab.view()[0];
      PackedSystem packed;
      const SystemRef<T> system{a.data(), s};
      pack_system(problem, system, places, rows, all, packed);
      PackedRows<T> data(problem, {all.data, m, n, all.ld}, {all.data + n, m, 1, all.ld});
      data.factor_again(0, r.view()[0], z.view().data);
      solver.take_factor(MatrixView<const double>(r.view()[0]), packed.scale_a);
      solve_packed<T>(problem, system, in_one<T>(problem, all, packed, z.view()[0]), solver,
                      places);
    }
  }

  SolveProblem problem;
  index_t count;
  VectorPlaces b_places, x_places;
  std::vector<T> a, b, x, se, w;
  std::vector<T> each_w;  // in the places of b
  double unit = 1;        // of residual norms: the root of the scale of weights
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
};

/// Compares the right sides of `found` and `expected`, except those whose numbers are in `left`.
template <class T>
void expect_same(const Run<T>& found, const Run<T>& expected, const std::vector<index_t>& left) {
  const double u = sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
  for (index_t s = 0; s < found.count; ++s) {
    if (std::find(left.begin(), left.end(), s) != left.end()) continue;
    SCOPED_TRACE(testing::Message() << "right side " << s);
    const SolutionReport &one = found.reports[s], &other = expected.reports[s];
    ASSERT_EQ(one.status, other.status);
    if (one.status != Status::ok) continue;
    EXPECT_LE(one.backward_error, one.bar);
    EXPECT_EQ(one.bar, other.bar);
    const double kappa = expected.findings[s].condition;
    EXPECT_NEAR(one.residual_norm, other.residual_norm,
                1e-3 * (other.residual_norm + expected.unit));
    EXPECT_EQ(found.findings[s].rank, expected.findings[s].rank);
    if (std::isinf(kappa)) {
      EXPECT_EQ(found.findings[s].condition, kappa);
      continue;
    }
    EXPECT_NEAR(found.findings[s].condition, kappa, 0.05 * kappa);
    double size = 0;
    for (index_t j = 0; j < found.problem.n; ++j)
      size = std::max(size, std::abs(static_cast<double>(expected.x_at(s, j))));
    for (index_t j = 0; j < found.problem.n; ++j) {
      EXPECT_NEAR(found.x_at(s, j), expected.x_at(s, j), 20 * u * kappa * kappa * (size + 100));
      const double error = expected.se_at(s, j);
      if (std::isnan(error)) {
        EXPECT_TRUE(std::isnan(found.se_at(s, j)));
      } else {
        EXPECT_NEAR(found.se_at(s, j), error, 1e-3 * error + 1e-3);
      }
    }
  }
}

struct Shape {
  index_t m, n;
};
const Shape shapes[] = {{1, 1}, {6, 3}, {9, 4}, {120, 4}, {40, 5}, {50, 8}, {90, 33}};

TYPED_TEST(Shared, RightSidesLieInRowsOrColumns) {
  using T = TypeParam;
  for (const Shape& shape : shapes) {
    Run<T> expected(shape.m, shape.n, 75);
    expected.solve_one_by_one();
    for (const index_t group : {0, 75, 25, 3}) {
      SCOPED_TRACE(testing::Message() << shape.m << "x" << shape.n << " group " << group);
      Run<T> found(shape.m, shape.n, 75);
      if (group > 0) found.use_columns(group);
      EXPECT_TRUE(found.solve().empty());
      expect_same(found, expected, {});
    }
  }
}

/// The kernel solves several vectors of right sides side by side. Where one comes to lie depends on
/// the others, and on how many fit the memory.
TYPED_TEST(Shared, RightSidesHaveTheSameBitsInEveryPlace) {
  using T = TypeParam;
  for (const double ridge : {0.0, 0.5}) {
    Run<T> run(84, 7, 200);
    run.problem.ridge = ridge;
    for (index_t s = 0; s < run.count; ++s)
      for (index_t i = 0; i < 84; ++i) run.at(s, i) = run.at(s % 20, i);
    EXPECT_TRUE(run.solve().empty());
    for (index_t s = 20; s < run.count; ++s) {
      EXPECT_EQ(run.reports[s].residual_norm, run.reports[s % 20].residual_norm) << s;
      EXPECT_EQ(run.reports[s].backward_error, run.reports[s % 20].backward_error) << s;
      for (index_t j = 0; j < 7; ++j) {
        EXPECT_EQ(run.x_at(s, j), run.x_at(s % 20, j)) << s;
        EXPECT_EQ(run.se_at(s, j), run.se_at(s % 20, j)) << s;
      }
    }
  }
}

TYPED_TEST(Shared, GapsAreSolvedWithTheRowsThatCount) {
  using T = TypeParam;
  for (const Shape& shape : shapes) {
    for (const bool has_weights : {false, true}) {
      SCOPED_TRACE(testing::Message() << shape.m << "x" << shape.n << " weights " << has_weights);
      Run<T> found(shape.m, shape.n, 60);
      found.problem.skips_missing = true;
      found.problem.takes_few_rows = true;
      std::mt19937_64 random(5);
      for (T& each : found.b)
        if (random() % 10 < 2) each = static_cast<T>(nan);
      for (index_t i = 0; i < shape.m; ++i) found.at(7, i) = T(1);  // no gap
      if (has_weights) {
        for (index_t i = 0; i < shape.m; ++i) found.w.push_back(static_cast<T>(i % 7));
        if (shape.m > 5) found.a[5 * shape.n] = static_cast<T>(nan);
      }
      Run<T> expected = found;
      expected.solve_one_by_one();
      const std::vector<index_t> left = found.solve();
      // Only what is ill-conditioned or deficient is left.
      for (const index_t s : left) {
        EXPECT_TRUE(expected.findings[s].rank < shape.n ||
                    expected.findings[s].scaled_condition > 50)
            << s << " " << expected.findings[s].scaled_condition;
      }
      EXPECT_LT(std::ssize(left), shape.m > 3 * shape.n ? 3 : 61);
      expect_same(found, expected, left);
    }
  }
}

/// Gives every right side weights of its own, some of them 0.
template <class T>
void weigh_each(Run<T>& run, double scale) {
  run.problem.has_weights = run.problem.weighs_each = true;
  run.unit = std::sqrt(scale);
  std::mt19937_64 random(11);
  for (index_t e = 0; e < std::ssize(run.b); ++e)
    run.each_w.push_back(static_cast<T>(scale * static_cast<double>(random() % 9)));
}

TYPED_TEST(Shared, EachRightSideHasWeights) {
  using T = TypeParam;
  const double far = sizeof(T) == 4 ? 1e30 : 1e290;
  for (const Shape& shape : shapes)
    for (const bool skips : {false, true})
      for (const double scale : {1.0, far, 1 / far}) {
        SCOPED_TRACE(testing::Message()
                     << shape.m << "x" << shape.n << " skips " << skips << " scale " << scale);
        Run<T> found(shape.m, shape.n, 60);
        found.problem.skips_missing = skips;
        found.problem.ridge = shape.m == 40 && scale == 1 ? 0.5 : 0.0;
        found.problem.wants_se = found.problem.ridge == 0;
        if (shape.m == 50) found.use_columns(60);
        weigh_each(found, scale);
        const auto weight = [&](index_t s, index_t i) -> T& {
          return found.each_w[found.b_places.start(s) + i * found.b_places.step];
        };
        for (index_t i = 0; i < shape.m; ++i) weight(3, i) = T(0);
        found.at(5, 0) = static_cast<T>(nan);
        weight(5, 0) = static_cast<T>(scale);
        found.at(6, 0) = static_cast<T>(INFINITY);
        weight(6, 0) = T(0);
        Run<T> expected = found;
        expected.solve_one_by_one();
        const std::vector<index_t> left = found.solve();
        for (const index_t s : left) {
          const double scaled_condition = expected.findings[s].scaled_condition;
          EXPECT_TRUE(s == 3 || (s == 5 && !skips) || expected.findings[s].rank < shape.n ||
                      scaled_condition > 50)
              << s << " " << scaled_condition;
        }
        EXPECT_LT(std::ssize(left), shape.m > 3 * shape.n ? 4 : 61);
        expect_same(found, expected, left);
      }
}

/// In what company a right side is solved depends on how many fit the memory.
TYPED_TEST(Shared, OwnWeightsGiveTheSameBitsInEveryPlace) {
  using T = TypeParam;
  Run<T> found(40, 5, 50);
  weigh_each(found, 1);
  Run<T> expected = found;
  EXPECT_TRUE(found.solve().empty());
  for (index_t s = 0; s < 50; ++s) {
    Run<T> one(40, 5, 1);
    one.problem.has_weights = one.problem.weighs_each = true;
    one.a = expected.a;
    one.b.assign(expected.b.begin() + s * 40, expected.b.begin() + (s + 1) * 40);
    one.each_w.assign(expected.each_w.begin() + s * 40, expected.each_w.begin() + (s + 1) * 40);
    EXPECT_TRUE(one.solve().empty());
    EXPECT_EQ(found.reports[s].residual_norm, one.reports[0].residual_norm);
    EXPECT_EQ(found.reports[s].backward_error, one.reports[0].backward_error);
    for (index_t j = 0; j < 5; ++j) EXPECT_EQ(found.x_at(s, j), one.x_at(0, j));
  }
}

/// Right sides with one mask share R, and get the bits that they get alone.
TYPED_TEST(Shared, EqualGapsGiveTheSameBits) {
  using T = TypeParam;
  for (const Shape& shape : {Shape{40, 5}, Shape{120, 4}, Shape{90, 33}}) {
    Run<T> found(shape.m, shape.n, 300);
    found.problem.skips_missing = true;
    for (index_t s = 0; s < 300; ++s)
      for (index_t i = 0; i < shape.m; ++i) {
        // One mask for most, another one for some, and one of its own for each of the others.
        const index_t which = s % 3 > 0 ? 1 : s % 6 == 0 ? 2 : 3 + s;
        if ((i * 7 + which * which) % 11 == 0) found.at(s, i) = static_cast<T>(nan);
      }
    found.at(4, 1) = static_cast<T>(INFINITY);
    Run<T> expected = found;
    EXPECT_EQ(found.solve(), std::vector<index_t>{4});
    for (index_t s = 0; s < 300; ++s) {
      if (s == 4) continue;
      Run<T> one(shape.m, shape.n, 1);
      one.problem.skips_missing = true;
      one.a = expected.a;
      one.b.assign(expected.b.begin() + s * shape.m, expected.b.begin() + (s + 1) * shape.m);
      EXPECT_TRUE(one.solve().empty());
      EXPECT_EQ(found.reports[s].status, Status::ok) << s;
      EXPECT_EQ(found.reports[s].backward_error, one.reports[0].backward_error) << s;
      EXPECT_EQ(found.findings[s].condition, one.findings[0].condition) << s;
      for (index_t j = 0; j < shape.n; ++j) {
        EXPECT_EQ(found.x_at(s, j), one.x_at(0, j)) << s;
        EXPECT_EQ(found.se_at(s, j), one.se_at(0, j)) << s;
      }
    }
  }
}

TYPED_TEST(Shared, AGapThatMakesColumnsDependentIsLeft) {
  using T = TypeParam;
  Run<T> run(12, 2, 20);
  run.problem.skips_missing = true;
  for (index_t i = 0; i < 12; ++i) {
    run.a[i * 2] = T(1);
    run.a[i * 2 + 1] = i < 6 ? T(1) : T(2);
  }
  for (index_t i = 6; i < 12; ++i) run.at(4, i) = static_cast<T>(nan);
  run.at(9, 0) = static_cast<T>(nan);
  run.at(11, 3) = static_cast<T>(nan);
  run.at(11, 4) = std::numeric_limits<T>::infinity();
  EXPECT_EQ(run.solve(), (std::vector<index_t>{4, 11}));
  EXPECT_EQ(run.reports[9].status, Status::ok);
}

}  // namespace
}  // namespace qrtool::test::shared_engine_test
