// SPDX-License-Identifier: Apache-2.0
// few_rows_test.cpp: the matrices whose bar is closest to the rounding errors, a short part of what
// qrtool_few_rows runs.
#include "tests/support/few_rows.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace qrtool::test {
namespace {

template <class T>
void expect_within_bar(const FewRows& run) {
  const WorstErrors worst = factor_few_rows<T>(run);
  EXPECT_EQ(worst.matrices, run.matrices);
  EXPECT_EQ(worst.above, 0) << run.variant << " " << run.shape.m << "x" << run.shape.n << " of "
                            << sizeof(T) << " bytes: residual " << worst.residual
                            << ", orthogonality " << worst.orthogonality << " of the bar";
  EXPECT_GT(worst.orthogonality, 0.01);
}

TEST(FewRows, EveryVariantMeetsTheBarAtEveryShape) {
  for (const char* variant : {"cpu/batched", "cpu/blocked", "cpu/eigen", ""}) {
    for (const AttackShape shape : few_rows_shapes()) {
      const FewRows run{.variant = variant, .shape = shape, .matrices = 200};
      expect_within_bar<float>(run);
      expect_within_bar<double>(run);
    }
  }
}

TEST(FewRows, StripsOfColumnsMeetTheBarInManyMatrices) {
  const FewRows run{.variant = "cpu/blocked", .shape = {16, 17}, .matrices = 200000};
  expect_within_bar<float>(run);
  expect_within_bar<double>(run);
}

}  // namespace
}  // namespace qrtool::test
