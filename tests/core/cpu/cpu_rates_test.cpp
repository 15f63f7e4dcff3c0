// SPDX-License-Identifier: Apache-2.0
// cpu_rates_test.cpp: the estimated time on the CPU is near the measured ones, and grows with the
// work.
#include "core/cpu/cpu_rates.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace qrtool {
namespace {

TEST(CpuSeconds, AreThoseOfMeasuredShapes) {
  EXPECT_NEAR(cpu_seconds({15000, 64, 64, ElementType::float32}, 1), 15000 * 30.3e-6, 1e-3);
  EXPECT_NEAR(cpu_seconds({15000, 64, 64, ElementType::float64}, 2), 15000 * 52e-6 / 2, 1e-3);
  EXPECT_NEAR(cpu_seconds({1, 2048, 2048, ElementType::float64}, 2), 1.195 / 2, 1e-3);
}

TEST(CpuSeconds, AreFiniteForEveryShape) {
  for (const index_t m : {1, 7, 64, 300, 5000, 2000000}) {
    for (const index_t n : {1, 7, 64, 300, 5000}) {
      for (const ElementType type : {ElementType::float32, ElementType::float64}) {
        const double seconds = cpu_seconds({3, m, n, type}, 2);
        EXPECT_GT(seconds, 0) << m << 'x' << n;
        EXPECT_TRUE(std::isfinite(seconds)) << m << 'x' << n;
      }
    }
  }
  EXPECT_EQ(cpu_seconds({0, 5, 5}, 2), 0);
}

TEST(CpuSeconds, FallWithThreadsThatHaveWork) {
  const Problem one{1, 64, 64}, many{1000, 64, 64}, large{1, 2048, 2048};
  EXPECT_DOUBLE_EQ(cpu_seconds(one, 8), cpu_seconds(one, 1));
  EXPECT_DOUBLE_EQ(cpu_seconds(many, 8), cpu_seconds(many, 1) / 8);
  EXPECT_DOUBLE_EQ(cpu_seconds(large, 8), cpu_seconds(large, 1) / 8);
}

TEST(CpuSeconds, OfRAloneAreHalfAsMuch) {
  Problem r{1000, 64, 64};
  const double with_q = cpu_seconds(r, 1);
  r.mode = Mode::r;
  EXPECT_DOUBLE_EQ(cpu_seconds(r, 1), with_q / 2);
}

}  // namespace
}  // namespace qrtool
