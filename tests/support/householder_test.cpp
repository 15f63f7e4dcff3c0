// SPDX-License-Identifier: Apache-2.0
// householder_test.cpp: the reference is right on matrices that a reader can check by hand.
#include "tests/support/householder.hpp"

#include <gtest/gtest.h>

namespace qrtool::test::householder_test {
namespace {

ReferenceQr factor(std::vector<double> values, index_t m, index_t n) {
  return reference_qr<double>({values.data(), m, n, n});
}

TEST(Reference, FactorsTheThreeByThreeOfTheTextbooks) {
  // A = [12 -51 4; 6 167 -68; -4 24 -41]: R = [-14 -21 14; 0 -175 70; 0 0 35] up to signs.
  const ReferenceQr qr = factor({12, -51, 4, 6, 167, -68, -4, 24, -41}, 3, 3);
  const double r[9] = {-14, -21, 14, 0, -175, 70, 0, 0, -35};
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(std::abs(qr.r[i]), std::abs(r[i]), 1e-12) << i;
  const double q_column[3] = {-6.0 / 7, -3.0 / 7, 2.0 / 7};
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(qr.q_at(i, 0), q_column[i], 1e-15);
}

TEST(Reference, LeavesATriangleAlone) {
  const ReferenceQr qr = factor({2, 1, 0, -3}, 2, 2);
  EXPECT_EQ(qr.r, (std::vector<double>{2, 1, 0, -3}));
  EXPECT_EQ(qr.q, (std::vector<double>{1, 0, 0, 1}));
  EXPECT_EQ(qr.tau, (std::vector<double>{0, 0}));
}

TEST(Reference, ReflectsAVectorOntoTheFirstAxis) {
  const ReferenceQr qr = factor({3, 0, 4}, 3, 1);
  EXPECT_NEAR(qr.r[0], -5, 1e-15);
  EXPECT_NEAR(qr.tau[0], 1.6, 1e-15);  // (beta - alpha) / beta = (-5 - 3) / -5
  EXPECT_NEAR(qr.q_at(0, 0), -0.6, 1e-15);
  EXPECT_NEAR(qr.q_at(2, 0), -0.8, 1e-15);
}

TEST(Reference, TakesAZeroColumn) {
  const ReferenceQr qr = factor({0, 1, 0, 2}, 2, 2);
  EXPECT_EQ(qr.tau[0], 0);
  EXPECT_EQ(qr.r, (std::vector<double>{0, 1, 0, 2}));
}

}  // namespace
}  // namespace qrtool::test::householder_test
