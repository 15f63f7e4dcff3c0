// SPDX-License-Identifier: Apache-2.0
#include "core/matrix/matrices.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.hpp"
#include "core/measure/magnitude.hpp"

namespace qrtool::matrices_test {
namespace {

std::vector<double> matrix(std::string_view kind, index_t b, index_t m, index_t n,
                           std::uint64_t seed = 1) {
  std::vector<double> a(static_cast<std::size_t>(m * n), NAN);
  fill_matrix<double>({kind, 1e6, seed}, b, {a.data(), m, n, n});
  return a;
}

TEST(Matrices, AreFiniteAndFullyWrittenForEveryKindAndShape) {
  for (const MatrixKind& kind : matrix_kinds()) {
    for (const auto& [m, n] : {std::pair<index_t, index_t>{7, 5}, {5, 7}, {1, 1}, {1, 4}, {4, 1}}) {
      const std::vector<double> a = matrix(kind.name, 3, m, n);
      EXPECT_TRUE(magnitude_of<double>({a.data(), m, n, n}).finite) << kind.name << m << n;
    }
  }
}

TEST(Matrices, DependOnSeedAndNumberAlone) {
  EXPECT_EQ(matrix("gauss", 2, 4, 4), matrix("gauss", 2, 4, 4));
  EXPECT_NE(matrix("gauss", 2, 4, 4), matrix("gauss", 3, 4, 4));
  EXPECT_NE(matrix("gauss", 2, 4, 4, 1), matrix("gauss", 2, 4, 4, 2));
}

TEST(Matrices, GaussHasMeanZeroAndVarianceOne) {
  const std::vector<double> a = matrix("gauss", 0, 300, 300);
  double sum = 0, squares = 0;
  for (const double x : a) {
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 90000, 0, 0.02);
  EXPECT_NEAR(squares / 90000, 1, 0.03);
}

TEST(Matrices, CondHasTheNormOfItsSpectrum) {
  // Reflectors keep the Frobenius norm, which is that of the singular values 1, 1e-2, 1e-4, 1e-6.
  std::vector<double> a(24);
  fill_matrix<double>({"cond", 1e6, 5}, 0, {a.data(), 6, 4, 4});
  double squares = 0;
  for (const double x : a) squares += x * x;
  EXPECT_NEAR(squares, 1 + 1e-4 + 1e-8 + 1e-12, 1e-12);
}

TEST(Matrices, OffsetIsOneWithNoiseOfOneOverCond) {
  std::vector<double> a(10000);
  fill_matrix<double>({"offset", 1e3, 5}, 0, {a.data(), 100, 100, 100});
  double sum = 0, squares = 0;
  for (const double x : a) {
    sum += x - 1;
    squares += (x - 1) * (x - 1);
  }
  EXPECT_NEAR(sum / 10000, 0, 5e-5);
  EXPECT_NEAR(std::sqrt(squares / 10000), 1e-3, 5e-5);
}

TEST(Matrices, NearDuplicatesAgreeWithinGroupsOfTwoThreeAndFour) {
  constexpr index_t m = 50, n = 20;
  std::vector<double> a(m * n);
  fill_matrix<double>({"near-duplicates", 1e4, 5}, 0, {a.data(), m, n, n});
  const index_t group_of[n] = {0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5, 5, 6, 6};
  for (index_t j = 0; j + 1 < n; ++j) {
    double squares = 0;
    for (index_t i = 0; i < m; ++i) squares += std::pow(a[i * n + j] - a[i * n + j + 1], 2);
    const double distance = std::sqrt(squares / m);
    if (group_of[j] == group_of[j + 1]) {
      EXPECT_GT(distance, 2e-5) << j;
      EXPECT_LT(distance, 5e-4) << j;
    } else {
      EXPECT_GT(distance, 0.5) << j;
    }
  }
}

TEST(Matrices, CountsAreWholeNumbers) {
  for (const double x : matrix("counts", 2, 40, 40)) {
    EXPECT_EQ(x, std::round(x));
    EXPECT_NEAR(x, 30000, 500);
  }
}

/// The root of the mean square of columns first .. last - 1.
double size_of_columns(const std::vector<double>& a, index_t n, index_t first, index_t last) {
  double squares = 0;
  const index_t m = std::ssize(a) / n;
  for (index_t i = 0; i < m; ++i)
    for (index_t j = first; j < last; ++j) squares += a[i * n + j] * a[i * n + j];
  return std::sqrt(squares / static_cast<double>(m * (last - first)));
}

TEST(Matrices, KindsOfTheContestHaveTheirSizes) {
  const std::vector<double> zero = matrix("zero-quarter", 0, 100, 40),
                            noise = matrix("noise-quarter", 0, 100, 40),
                            half = matrix("small-half", 0, 100, 40);
  for (const auto& a : {zero, noise}) EXPECT_NEAR(size_of_columns(a, 40, 0, 30), 1, 0.1);
  EXPECT_EQ(size_of_columns(zero, 40, 30, 40), 0);
  EXPECT_NEAR(size_of_columns(noise, 40, 30, 40), 1e-5, 1e-6);
  EXPECT_NEAR(size_of_columns(half, 40, 0, 20), 1, 0.1);
  EXPECT_NEAR(size_of_columns(half, 40, 20, 40), 0x1p-21, 0x1p-24);
  std::vector<double> collinear = matrix("near-collinear", 0, 100, 40);
  for (index_t i = 0; i < 100; ++i) collinear[i * 40 + 1] -= collinear[i * 40];
  EXPECT_NEAR(size_of_columns(collinear, 40, 1, 2), 1.4e-4, 3e-5);
}

TEST(Matrices, ABatchOfTheContestHasAllOfItsKinds) {
  for (const char* kind : {"graded-columns", "zero-quarter", "noise-quarter", "small-half", "band",
                           "graded-rows", "near-collinear", "upper"}) {
    index_t equal = 0;
    for (index_t b = 0; b < 100; ++b) equal += matrix("contest", b, 6, 6) == matrix(kind, b, 6, 6);
    EXPECT_GE(equal, 4) << kind;
    EXPECT_LE(equal, 30) << kind;
  }
}

TEST(Matrices, JoinedKindsAreTakenInTurn) {
  for (const auto& [b, kind] : {std::pair{0, "band"}, {1, "cond"}, {2, "upper"}, {3, "band"}})
    EXPECT_EQ(matrix("band+cond+upper", b, 5, 5), matrix(kind, b, 5, 5)) << b;
}

TEST(Matrices, UnknownKindNamesANearOne) {
  try {
    matrix("gaus", 0, 2, 2);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "unknown kind of matrix 'gaus'; did you mean 'gauss'?");
  }
}

}  // namespace
}  // namespace qrtool::matrices_test
