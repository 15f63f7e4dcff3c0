// SPDX-License-Identifier: Apache-2.0
// ranked_factor_test.cpp: the rank of dependent, graded and ordinary columns, and the solutions of
// least norm.
#include "core/solve/ranked/ranked_factor.hpp"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <cmath>
#include <random>
#include <tuple>

#include "core/eigen/eigen_qr.hpp"
#include "tests/support/solution_error.hpp"

namespace qrtool::test::ranked_factor_test {
namespace {

Batch<double> gaussian(index_t m, index_t n, unsigned seed) {
  Batch<double> a(1, m, n);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (index_t i = 0; i < m * n; ++i) a.view().data[i] = normal(random);
  return a;
}

/// R of [A b], cut into R of A and z.
struct Factored {
  Batch<double> r, z;
};
Factored factored(MatrixView<const double> a, const std::vector<double>& b) {
  const index_t m = a.rows, n = a.cols, k = std::min(m, n);
  const Batch<double> both(1, m, n + 1), all(1, std::min(m, n + 1), n + 1);
  for (index_t i = 0; i < m; ++i) {
    for (index_t j = 0; j < n; ++j) both.view()[0](i, j) = a(i, j);
    both.view()[0](i, n) = b[i];
  }
  const Problem problem{
      .count = 1, .m = m, .n = n + 1, .type = ElementType::float64, .mode = Mode::r};
  EigenQr<double>(problem).factor(both.view()[0],
                                  {.q = {}, .r = all.view()[0], .v = {}, .tau = {}});
  Factored out{Batch<double>(1, k, n), Batch<double>(1, k, 1)};
  for (index_t i = 0; i < k; ++i) {
    for (index_t j = 0; j < n; ++j) out.r.view()[0](i, j) = all.view()[0](i, j);
    out.z.view()[0](i, 0) = all.view()[0](i, n);
  }
  return out;
}

std::vector<double> solve(const RankedFactor<double>& factor, const Factored& f) {
  std::vector<double> x(static_cast<std::size_t>(f.r.view().cols));
  factor.solve(f.z.view()[0], {x.data(), f.r.view().cols, 1, 1});
  return x;
}

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return std::sqrt(sum);
}

const double tolerance = default_rank_tolerance(ElementType::float64, 6);

TEST(RankedFactor, AStraightLineOverManyFloat32RowsHasRankTwo) {
  // This is R of the columns 1 and t in [0, 1] over 4,000,000 rows.
  const double rows = 4e6, r[] = {std::sqrt(rows), std::sqrt(rows) / 2, 0, std::sqrt(rows / 12)};
  RankedFactor<double> factor;
  factor.set({r, 2, 2, 2}, {.tolerance = default_rank_tolerance(ElementType::float32, 2)});
  EXPECT_EQ(factor.rank(), 2);
  EXPECT_NEAR(factor.condition(), 4.4, 0.1);
}

TEST(RankedFactor, UnitsOfColumnsDoNotMatter) {
  const Batch<double> a = gaussian(20, 6, 1);
  for (index_t i = 0; i < 20; ++i)
    for (index_t j = 0; j < 6; ++j) a.view()[0](i, j) *= std::pow(1000.0, -j);
  RankedFactor<double> factor;
  const Factored f = factored(a.view()[0], std::vector<double>(20, 1.0));
  factor.set(f.r.view()[0], {.tolerance = tolerance});
  EXPECT_EQ(factor.rank(), 6);
  EXPECT_GT(factor.condition(), 1e14);
  EXPECT_LT(factor.scaled_condition(), 20);
}

TEST(RankedFactor, FindsTheRankAndTheLeastNormOfDependentColumns) {
  for (index_t rank = 1; rank < 6; ++rank) {
    for (const index_t m : {3, 6, 40}) {
      const Batch<double> left = gaussian(m, rank, 5), right = gaussian(rank, 6, 6);
      const Batch<double> a(1, m, 6);
      for (index_t i = 0; i < m; ++i)
        for (index_t j = 0; j < 6; ++j) {
          double sum = 0;
          for (index_t l = 0; l < rank; ++l) sum += left.view()[0](i, l) * right.view()[0](l, j);
          a.view()[0](i, j) = sum;
        }
      std::vector<double> b;
      for (index_t i = 0; i < m; ++i) b.push_back(std::sin(static_cast<double>(i)));
      const Factored f = factored(a.view()[0], b);
      RankedFactor<double> factor;
      factor.set(f.r.view()[0], {.tolerance = tolerance});
      const Reference reference = solve_by_svd(a.view()[0], b.data(), tolerance);
      EXPECT_EQ(factor.rank(), std::min(rank, m));
      EXPECT_EQ(factor.rank(), reference.rank);
      const std::vector<double> x = solve(factor, f);
      EXPECT_LE(distance(x, reference.x),
                1e-14 * reference.condition * norm_of(reference.x.data(), 6) + 1e-14);
      EXPECT_LE(factor.least_norm_error(x.data()), 4 * 0x1p-52);
      EXPECT_LE(factor.dropped_norm(), 1e-14 * factor.norm());
      // A part outside of the rows of A is seen.
      std::vector<double> longer = x;
      longer[0] += 1e-3;
      EXPECT_GT(factor.least_norm_error(longer.data()), 1e-7);
    }
  }
}

TEST(RankedFactor, WideMatricesLoseNothingByTheirCondition) {
  const index_t m = 20, n = 40;
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Batch<double> a = gaussian(m, n, seed), b = gaussian(1, m, seed + 100);
    // A profile that all rows of every second matrix share makes a condition of 10^6.
    for (index_t j = 0; j < n && seed % 2 == 1; ++j)
      for (index_t i = 1; i < m; ++i)
        a.view()[0](i, j) = a.view()[0](0, j) + 1e-6 * a.view()[0](i, j);
    const Factored f = factored(a.view()[0], {b.view().data, b.view().data + m});
    RankedFactor<double> factor;
    factor.set(f.r.view()[0], {.tolerance = default_rank_tolerance(ElementType::float64, n)});
    const std::vector<double> x = solve(factor, f);
    EXPECT_LE(factor.least_norm_error(x.data()), 0x1p-52);
    double squares = 0;
    for (index_t i = 0; i < m; ++i) {
      double r = f.z.view()[0](i, 0);
      for (index_t j = i; j < n; ++j) r -= f.r.view()[0](i, j) * x[j];
      squares += r * r;
    }
    const double size =
        std::hypot(factor.norm() * norm_of(x.data(), n), norm_of(f.z.view().data, m));
    EXPECT_LE(std::sqrt(squares), 0x1p-52 * m * size) << seed;  // the bar of 20 rows
  }
}

/// Columns that depend on others by powers of two, and are multiplied by powers of two: A x stays
/// that of the columns as they were, and x is orthogonal to all y with A y = 0.
TEST(RankedFactor, ColumnsOfAnySizeHaveTheFitOfTheBasicSolutionAndTheLeastNorm) {
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    const index_t rank = 1 + trial % 5, n = rank + 1 + trial % 4, m = 12;
    const Batch<double> a = gaussian(m, n, static_cast<unsigned>(trial));
    const MatrixView<double> view = a.view()[0];
    const auto whole = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    Batch<double> null(1, n, n - rank);  // its columns span the null space
    std::fill_n(null.view().data, n * (n - rank), 0.0);
    for (index_t j = rank; j < n; ++j) {
      const int of_first = whole(-3, 3);
      for (index_t i = 0; i < m; ++i) view(i, j) = std::ldexp(view(i, j % rank), of_first);
      null.view()[0](j, j - rank) = -1;
      null.view()[0](j % rank, j - rank) = std::ldexp(1.0, of_first);
    }
    std::vector<double> b;
    for (index_t i = 0; i < m; ++i) b.push_back(std::cos(static_cast<double>(i)));
    const Factored plain = factored(view, b);
    RankedFactor<double> factor;
    factor.set(plain.r.view()[0], {.tolerance = tolerance, .is_basic = true});
    const std::vector<double> basic = solve(factor, plain);
    std::vector<int> sizes;
    for (index_t j = 0; j < n; ++j) {
      sizes.push_back(whole(-120, 120));
      for (index_t i = 0; i < m; ++i) view(i, j) = std::ldexp(view(i, j), sizes[j]);
      for (index_t c = 0; c < n - rank; ++c)
        null.view()[0](j, c) = std::ldexp(null.view()[0](j, c), -sizes[j]);
    }
    const Factored f = factored(view, b);
    factor.set(f.r.view()[0], {.tolerance = tolerance});
    EXPECT_EQ(factor.rank(), rank);
    const std::vector<double> x = solve(factor, f);
    double off = 0, size = 0;
    for (index_t i = 0; i < m; ++i) {
      double of_x = 0, of_basic = 0;
      for (index_t j = 0; j < n; ++j) {
        of_x += view(i, j) * x[j];
        of_basic += std::ldexp(view(i, j), -sizes[j]) * basic[j];
      }
      off = std::max(off, std::abs(of_x - of_basic));
      size = std::max(size, std::abs(of_basic));
    }
    EXPECT_LE(off, 1e-13 * size) << trial;
    for (index_t c = 0; c < n - rank; ++c) {
      double product = 0, of_null = 0;
      for (index_t j = 0; j < n; ++j) {
        product += null.view()[0](j, c) * x[j];
        of_null = std::hypot(of_null, null.view()[0](j, c));
      }
      EXPECT_LE(std::abs(product), 1e-13 * of_null * norm_of(x.data(), n)) << trial;
    }
    EXPECT_LE(factor.least_norm_error(x.data()), 0x1p-50);
  }
}

/// So many columns that they are chosen by blocks, beside Eigen's complete orthogonal decomposition
/// of single columns.
TEST(RankedFactor, TheLeastNormOfManyColumnsIsThatOfAnotherProgram) {
  for (const auto& [m, n, dependent] : {std::tuple(500, 400, 1), {500, 400, 130}, {260, 400, 0}}) {
    const Batch<double> a = gaussian(m, n, 8);
    const MatrixView<double> view = a.view()[0];
    for (index_t d = 0; d < dependent; ++d)
      for (index_t i = 0; i < m; ++i) view(i, 2 * d) = view(i, 2 * d + 1) - view(i, n - 1 - d);
    std::vector<double> b;
    for (index_t i = 0; i < m; ++i) b.push_back(std::sin(static_cast<double>(i)));
    const Factored f = factored(view, b);
    RankedFactor<double> factor;
    factor.set(f.r.view()[0], {.tolerance = 1e-12});
    EXPECT_EQ(factor.rank(), std::min(m, n - dependent));
    using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const Rows> whole(view.data, m, n);
    Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> other;
    other.setThreshold(1e-12);
    other.compute(whole);
    EXPECT_EQ(other.rank(), factor.rank());
    const Eigen::VectorXd expected =
        other.solve(Eigen::Map<const Eigen::VectorXd>(b.data(), std::ssize(b)));
    std::vector<double> x = solve(factor, f);
    EXPECT_LE(distance(x, std::vector<double>(expected.begin(), expected.end())),
              1e-11 * expected.norm());
    EXPECT_LE(factor.least_norm_error(x.data()), 0x1p-46);
    // A'A d = A'(b - A x) has no part that is left.
    Eigen::Map<Eigen::VectorXd> of_x(x.data(), n);
    const Eigen::VectorXd r = Eigen::Map<const Eigen::VectorXd>(b.data(), m) - whole * of_x;
    const Eigen::VectorXd g = whole.transpose() * r;
    std::vector<double> d(g.begin(), g.end());
    factor.correct(d);
    EXPECT_LE(norm_of(d.data(), n), 1e-11 * expected.norm());
  }
}

TEST(RankedFactor, BasicSolutionsHaveAsManyEntriesAsTheRank) {
  const Batch<double> a = gaussian(10, 4, 2);
  for (index_t i = 0; i < 10; ++i) a.view()[0](i, 2) = a.view()[0](i, 0) - a.view()[0](i, 1);
  const std::vector<double> b(10, 1.0);
  const Factored f = factored(a.view()[0], b);
  RankedFactor<double> factor;
  factor.set(f.r.view()[0], {.tolerance = tolerance, .is_basic = true});
  const std::vector<double> x = solve(factor, f);
  EXPECT_EQ(factor.rank(), 3);
  EXPECT_EQ(std::count(x.begin(), x.end(), 0.0), 1);
  EXPECT_FALSE(factor.has_least_norm());
  EXPECT_LT(exact_backward_error(a.view()[0], b.data(), x.data()), 1e-14);
}

TEST(RankedFactor, OfNothingHasRankZero) {
  RankedFactor<double> factor;
  const Batch<double> zeros(1, 4, 4);
  std::fill_n(zeros.view().data, 16, 0.0);
  factor.set(zeros.view()[0], {.tolerance = tolerance});
  EXPECT_EQ(factor.rank(), 0);
  double z[4] = {1, 2, 3, 4}, x[4] = {9, 9, 9, 9};
  factor.solve({z, 4, 1, 1}, {x, 4, 1, 1});
  for (const double xi : x) EXPECT_EQ(xi, 0);
  factor.set({nullptr, 0, 3, 3}, {.tolerance = tolerance});
  EXPECT_EQ(factor.rank(), 0);
}

TEST(Triangular, RowNormsOfTheInverseAndTheConditionAreThoseOfASmallMatrix) {
  const double r[] = {2, 1, 0, 4};  // inverse: 1/2, -1/8; 0, 1/4
  const std::vector<double> norms = inverse_row_norms<double>({r, 2, 2, 2});
  EXPECT_DOUBLE_EQ(norms[0], std::hypot(0.5, 0.125));
  EXPECT_DOUBLE_EQ(norms[1], 0.25);
  const SingularValues values = estimate_singular_values<double>({r, 2, 2, 2});
  EXPECT_NEAR(values.condition(), 2.1647, 0.01);
}

TEST(Triangular, EstimatesOfTheConditionAreCloseAndNeverTooLarge) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const index_t n = 2 + seed % 40;
    const Batch<double> a = gaussian(n, n, seed);
    const Factored f = factored(a.view()[0], std::vector<double>(n, 1.0));
    const double exact =
        solve_by_svd(f.r.view()[0], std::vector<double>(n, 0.0).data(), 0).condition;
    // The columns of the reference are scaled by powers of two, and so are these.
    RankedFactor<double> factor;
    factor.set(f.r.view()[0], {.tolerance = 1e-300});
    EXPECT_LE(factor.scaled_condition(), exact * (1 + 1e-8));
    EXPECT_GE(factor.scaled_condition(), exact / 3);
  }
}

}  // namespace
}  // namespace qrtool::test::ranked_factor_test
