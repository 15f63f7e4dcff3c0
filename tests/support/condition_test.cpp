// SPDX-License-Identifier: Apache-2.0
// condition_test.cpp: the estimate against triangles whose condition is known.
#include "tests/support/condition.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace qrtool::test::condition_test {
namespace {

double of(std::vector<double> r, index_t n) {
  return scaled_condition<double>({r.data(), n, n, n});
}

TEST(ScaledCondition, OfTwoColumnsIsTheirAngle) {
  EXPECT_NEAR(of({1, 0, 0, 1}, 2), 1, 1e-12);
  EXPECT_NEAR(of({1e-20, 0, 0, 1e9}, 2), 1, 1e-12) << "the size of columns does not matter";
  for (const double angle : {0.5, 1e-3, 1e-7}) {
    const double c = std::cos(angle), s = std::sin(angle);
    // The singular values of two unit columns are sqrt(1 + c) and sqrt(1 - c).
    EXPECT_NEAR(of({1, c, 0, s}, 2) * std::tan(angle / 2), 1, 1e-6) << angle;
    EXPECT_NEAR(of({7, 1e6 * c, 0, 1e6 * s}, 2) * std::tan(angle / 2), 1, 1e-6) << angle;
  }
}

TEST(ScaledCondition, OfSingularMatricesIsInfinite) {
  EXPECT_EQ(of({1, 1, 0, 0}, 2), INFINITY);
  EXPECT_EQ(of({1, NAN, 0, 1}, 2), INFINITY);
  EXPECT_EQ(of({0, 0, 0, 1}, 2), INFINITY);
}

}  // namespace
}  // namespace qrtool::test::condition_test
