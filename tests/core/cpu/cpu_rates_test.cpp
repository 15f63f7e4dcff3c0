// SPDX-License-Identifier: Apache-2.0
// cpu_rates_test.cpp: the estimated time on the CPU is near the measured ones, and grows with the
// work.
#include "core/cpu/cpu_rates.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace qrtool::cpu_rates_test {
namespace {

TEST(CpuSeconds, AreThoseOfMeasuredShapes) {
  Problem p{15000, 64, 64, ElementType::float32};
  const double factors = cpu_seconds(p, 1);
  p.mode = Mode::r;
  const double r = cpu_seconds(p, 1), solutions = cpu_seconds({p, 1}, 1);
  // Within a factor of three of one core with AVX-512, whatever is measured next.
  EXPECT_NEAR(std::log(factors / (15000 * 21e-6)), 0, std::log(3));
  EXPECT_NEAR(std::log(r / (15000 * 17e-6)), 0, std::log(3));
  EXPECT_NEAR(std::log(solutions / (15000 * 18e-6)), 0, std::log(3));
  EXPECT_LT(r, factors);
}

TEST(CpuSeconds, AreFiniteForEveryShape) {
  for (const index_t m : {1, 7, 64, 300, 5000, 2000000}) {
    for (const index_t n : {1, 7, 64, 300, 5000}) {
      for (const ElementType type : {ElementType::float32, ElementType::float64}) {
        const double seconds = cpu_seconds(Problem{3, m, n, type}, 2);
        EXPECT_GT(seconds, 0) << m << 'x' << n;
        EXPECT_TRUE(std::isfinite(seconds)) << m << 'x' << n;
        EXPECT_LE(cpu_seconds(Problem{3, m, n, type, Mode::r}, 2), seconds) << m << 'x' << n;
      }
    }
  }
  EXPECT_EQ(cpu_seconds(Problem{0, 5, 5}, 2), 0);
}

TEST(CpuSeconds, FallWithThreadsThatHaveWork) {
  const Problem one{1, 64, 64}, many{1000, 64, 64}, large{1, 2048, 2048};
  EXPECT_DOUBLE_EQ(cpu_seconds(one, 8), cpu_seconds(one, 1));
  for (const Problem& p : {many, large}) {
    EXPECT_LT(cpu_seconds(p, 8), cpu_seconds(p, 1) / 4);
    EXPECT_GT(cpu_seconds(p, 8), cpu_seconds(p, 1) / 8);
    EXPECT_LT(cpu_seconds(p, 16), cpu_seconds(p, 8));
  }
}

TEST(CpuSolveSeconds, GrowWithTheRightSides) {
  const Problem p{100, 64, 32, ElementType::float64, Mode::r};
  EXPECT_LT(cpu_seconds({p, 1}, 2), cpu_seconds({p, 2}, 2));
  EXPECT_LT(cpu_seconds({p, 20}, 2), 20 * cpu_seconds({p, 1}, 2));
  EXPECT_GT(cpu_seconds({{3, 8, 64, ElementType::float32, Mode::r}, 1}, 2),
            0);  // fewer rows than columns
}

}  // namespace
}  // namespace qrtool::cpu_rates_test
