// SPDX-License-Identifier: Apache-2.0
// complex_reference_test.cpp: the reference of the tests by hand.
#include "tests/support/complex_reference.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace qrtool::test::complex_reference_test {
namespace {

using Entry = ComplexMatrix::Entry;

void expect_entry(Entry found, Entry expected) {
  EXPECT_LE(static_cast<double>(std::abs(found - expected)), 1e-17);
}

TEST(ComplexReference, ReflectsAColumnByHand) {
  // alpha = 3i, x = 4: the norm is 5, and beta = -5, since Re alpha is not negative. tau = (beta -
  // alpha) / beta = 1 + 0.6i.
  ComplexMatrix a(2, 1);
  a(0, 0) = {0, 3};
  a(1, 0) = 4;
  const ComplexReferenceQr qr = complex_reference_qr(a);
  expect_entry(qr.tau[0], {1, 0.6L});
  expect_entry(qr.r(0, 0), -5);
  expect_entry(qr.r(1, 0), 0);
  expect_entry(qr.q(0, 0), {0, -0.6L});
  expect_entry(qr.q(1, 0), -0.8L);
  const ComplexRatios ratios = complex_ratios(a, qr.q, qr.r, ElementType::float64);
  EXPECT_LE(ratios.residual, 0.01);
  EXPECT_LE(ratios.orthogonality, 0.01);
}

TEST(ComplexReference, MakesOneEntryReal) {
  ComplexMatrix a(1, 2);
  a(0, 0) = {-3, 4};
  a(0, 1) = {5, 0};
  const ComplexReferenceQr qr = complex_reference_qr(a);
  expect_entry(qr.r(0, 0), 5);
  expect_entry(qr.q(0, 0), {-0.6L, 0.8L});
  expect_entry(qr.r(0, 1), {-3, -4});
}

TEST(ComplexReference, SeesWrongFactors) {
  ComplexMatrix one(1, 1), two(1, 1), turned(1, 1);
  one(0, 0) = 1;
  two(0, 0) = {1, 1e-14L};
  turned(0, 0) = {1.00000000000001L, 0};
  EXPECT_GT(complex_ratios(one, one, two, ElementType::float64).residual, 2);
  EXPECT_GT(complex_ratios(one, turned, one, ElementType::float64).orthogonality, 2);
}

}  // namespace
}  // namespace qrtool::test::complex_reference_test
