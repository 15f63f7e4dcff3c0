// SPDX-License-Identifier: Apache-2.0
// gram_leaf_test.cpp: an R that is accepted is accurate to the last bits of float32, or nearly so
// where sums in float32 are allowed; every other matrix is refused.
#include "core/cpu/tall/gram_leaf.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/eigen/eigen_qr.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/magnitude.hpp"

namespace qrtool::gram_leaf_test {
namespace {

/// Computes R of A in float64 by reflectors.
Batch<double> reference_r(MatrixView<const float> a) {
  Batch<double> wide(1, a.rows, a.cols), r(1, a.cols, a.cols);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) wide.view()[0](i, j) = a(i, j);
  EigenQr<double> qr({.count = 1,
                      .m = a.rows,
                      .n = a.cols,
                      .type = ElementType::float64,
                      .mode = Mode::r,
                      .sign = Sign::positive});
  qr.factor(wide.view()[0], {{}, r.view()[0], {}, {}});
  return r;
}

/// Errors may be so large, relative to the column's norm, in addition to half a unit of float32
/// from rounding: with sums in float64, and with sums in float32.
constexpr double wide_error = 0x1p-28, narrow_error = 0x1p-22;

/// Whether A was accepted. The error of an accepted R is checked.
bool is_taken(MatrixView<const float> a, const std::string& name, double error = wide_error) {
  GramLeaf leaf(a.cols);
  const Batch<float> r(1, a.cols, a.cols);
  LeafOutcome outcome;
  if (!leaf.factor(a, r.view()[0], outcome)) return false;
  EXPECT_TRUE(outcome.r_fits) << name;
  EXPECT_EQ(outcome.magnitude.largest, magnitude_of(a).largest) << name;
  const Batch<double> expected = reference_r(a);
  for (index_t j = 0; j < a.cols; ++j) {
    double squares = 0;
    for (index_t i = 0; i <= j; ++i) squares += std::pow(expected.view()[0](i, j), 2);
    for (index_t i = 0; i < a.cols; ++i) {
      const double x = expected.view()[0](i, j);
      const double most = i > j ? 0 : 0x1p-24 * std::abs(x) + error * std::sqrt(squares);
      EXPECT_NEAR(r.view()[0](i, j), i > j ? 0 : x, most) << name << " " << i << " " << j;
    }
  }
  return true;
}

TEST(GramLeaf, TakesWhatIsAccurateAndRefusesTheRest) {
  for (const index_t n : {2, 5, 8, 16, 33, 128}) {
    for (const index_t m : {2 * n, 700 + n}) {
      for (const double cond : {1e1, 1e3, 1e5, 1e7, 1e9, 1e12}) {
        const Batch<float> a(1, m, n);
        fill_matrix<float>({"cond", cond, 2}, 0, a.view()[0]);
        const std::string name = std::to_string(n) + " cond " + std::to_string(cond);
        const bool may_be_narrow = n % 16 == 0 && cond < 16;
        const bool taken = is_taken(a.view()[0], name, may_be_narrow ? narrow_error : wide_error);
        EXPECT_TRUE(taken || cond > 1e5) << name;
        EXPECT_FALSE(taken && cond >= 1e9) << name;
      }
    }
  }
}

TEST(GramLeaf, EveryHardMatrixIsAccurateOrRefused) {
  for (const index_t n : {12, 16}) {
    int taken = 0;
    for (const MatrixKind& kind : matrix_kinds()) {
      const Batch<float> a(1, 900, n);
      fill_matrix<float>({kind.name, 1e6, 2}, 0, a.view()[0]);
      taken += is_taken(a.view()[0], std::string(kind.name), n == 16 ? narrow_error : wide_error);
    }
    EXPECT_GT(taken, 5);
  }
}

TEST(GramLeaf, ColumnsOfAnyScaleAreTaken) {
  const float scale[] = {1e-30F, 1, 1e30F, 1e-10F, 1e33F, 3};
  for (const index_t n : {6, 16}) {
    const Batch<float> a(1, 500, n);
    fill_matrix<float>({"gauss"}, 0, a.view()[0]);
    for (index_t i = 0; i < 500; ++i)
      for (index_t j = 0; j < n; ++j) a.view()[0](i, j) *= scale[j % 6];
    EXPECT_TRUE(is_taken(a.view()[0], "scales"));
    // All columns are too small, or too large, for squares in float32.
    for (const float factor : {1e-25F, 1e25F}) {
      fill_matrix<float>({"gauss"}, 0, a.view()[0]);
      for (index_t i = 0; i < 500; ++i)
        for (index_t j = 0; j < n; ++j) a.view()[0](i, j) *= factor;
      EXPECT_TRUE(is_taken(a.view()[0], "scale " + std::to_string(factor)));
    }
  }
}

TEST(GramLeaf, RefusesWhatIsNotFiniteAndFewRows) {
  const Batch<float> a(1, 500, 6);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    fill_matrix<float>({"gauss"}, 0, a.view()[0]);
    a.view()[0](499, 2) = bad;
    EXPECT_FALSE(is_taken(a.view()[0], "not finite"));
  }
  fill_matrix<float>({"gauss"}, 0, a.view()[0]);
  EXPECT_FALSE(is_taken(a.view()[0].row_block(0, 11), "few rows"));
}

}  // namespace
}  // namespace qrtool::gram_leaf_test
