// SPDX-License-Identifier: Apache-2.0
// cost_test.cpp: estimates from a table of samples, and the table as text.
#include "core/plan/cost.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace qrtool::cost_test {
namespace {

constexpr double us = 1e-6;

Problem problem(index_t count, index_t m, index_t n, Mode mode = Mode::reduced) {
  return {.count = count, .m = m, .n = n, .mode = mode};
}

CostTable table() {
  CostTable table("a device");
  table.add("opencl/x", problem(1, 16, 16), {{1, 10 * us}, {100, 20 * us}, {1600, 160 * us}});
  table.add("opencl/x", problem(1, 64, 16), {{1, 40 * us}, {100, 80 * us}});
  table.add("opencl/x", problem(1, 64, 64), {{1, 80 * us}, {100, 320 * us}});
  return table;
}

double estimated(index_t count, index_t m, index_t n) {
  return table().seconds("opencl/x", problem(count, m, n)) / us;
}

TEST(CostTable, ASampleIsItsOwnEstimate) {
  EXPECT_NEAR(estimated(1, 16, 16), 10, 1e-3);
  EXPECT_NEAR(estimated(100, 16, 16), 20, 1e-3);
}

TEST(CostTable, BetweenSamplesTimesArePowers) {
  EXPECT_NEAR(estimated(10, 16, 16), std::sqrt(10 * 20.0), 1e-3);
  EXPECT_NEAR(estimated(400, 16, 16), std::sqrt(20 * 160.0), 1e-3);
  EXPECT_NEAR(estimated(1, 32, 16), 20, 1e-3);
  EXPECT_NEAR(estimated(1, 64, 32), std::sqrt(40 * 80.0), 1e-3);
  EXPECT_NEAR(estimated(10, 64, 32), std::sqrt(std::sqrt(40 * 80.0 * 80 * 320)), 1e-2);
}

TEST(CostTable, LargerBatchesTakeAsLongAsTheyHaveMoreMatrices) {
  EXPECT_NEAR(estimated(16000, 16, 16), 1600, 0.1);
}

TEST(CostTable, BeyondSamplesTimesGrowWithTheOperations) {
  EXPECT_NEAR(estimated(100000, 128, 128) / estimated(100000, 64, 64), 8, 1e-6);
  EXPECT_NEAR(estimated(100000, 128, 64) / estimated(100000, 64, 64), 2.5, 1e-6);
  EXPECT_NEAR(estimated(100000, 32, 64) / estimated(100000, 64, 64), 0.3125, 1e-6);
  // The smallest shape of a table has costs that a smaller one has, too.
  EXPECT_NEAR(estimated(1, 4, 4), 10, 1e-3);
  EXPECT_LT(estimated(1000000, 8, 8), estimated(1000000, 16, 16));
}

TEST(CostTable, ASampleOfAShapeAloneSaysNothingOfOthers) {
  CostTable t = table();
  t.add("opencl/x", problem(1, 64, 32), {{1, 1000 * us}}, CostTable::Reach::shape);
  t = CostTable::from_text(t.text(), "a table");
  EXPECT_NEAR(t.seconds("opencl/x", problem(1, 64, 32)), 1000 * us, us);
  EXPECT_EQ(t.seconds("opencl/x", problem(1, 65, 32)), estimated(1, 65, 32) * us);
  EXPECT_EQ(t.seconds("opencl/x", problem(1, 64, 33)), estimated(1, 64, 33) * us);
}

TEST(CostTable, TheNearestSampleGivesTheRate) {
  CostTable t("a device");
  t.add("run", problem(1, 16, 16), {{1, 10 * us}});
  t.add("run", problem(1, 64, 16), {{1000, 30 * us}});
  const auto rows = [](double m) { return m - 16 / 3.0; };  // operations grow in proportion
  EXPECT_NEAR(t.nearest_seconds("run", problem(2, 20, 16)) / us, 20 * rows(20) / rows(16), 1e-9);
  EXPECT_NEAR(t.nearest_seconds("run", problem(500, 60, 16)) / us, 15 * rows(60) / rows(64), 1e-9);
  // As near to both: the one with fewer rows counts.
  t.add("run", problem(1, 64, 16), {{1, 30 * us}});
  EXPECT_NEAR(t.nearest_seconds("run", problem(1, 32, 16)) / us, 10 * rows(32) / rows(16), 1e-9);
  EXPECT_TRUE(std::isinf(t.nearest_seconds("run", problem(1, 16, 16, Mode::r))));
  EXPECT_TRUE(std::isinf(t.nearest_seconds("walk", problem(1, 16, 16))));
}

TEST(CostTable, WithoutASampleNothingIsKnown) {
  EXPECT_TRUE(std::isinf(table().seconds("opencl/y", problem(1, 16, 16))));
  const CostTable t = CostTable::from_text(
      "# qrtool.rates/1 "
      "a\nvariant,type,q,m,n,matrices:microseconds\nopencl/x,float32,0,16,16,1:9\n",
      "a");
  EXPECT_TRUE(std::isinf(t.seconds("opencl/x", problem(1, 16, 16))));
  EXPECT_EQ(estimated(0, 16, 16), 0);
}

TEST(CostTable, RAloneTakesAtMostAsLongAsQAndR) {
  EXPECT_EQ(table().seconds("opencl/x", problem(1, 16, 16, Mode::r)),
            table().seconds("opencl/x", problem(1, 16, 16)));
}

TEST(CostTable, ItsTextGivesTheSameEstimates) {
  CostTable other("another device, with a comma");
  const Problem p{.count = 1, .m = 1000000, .n = 3, .type = ElementType::float64, .mode = Mode::r};
  other.add("cpu/y", p, {{1, 1.23456789e-3}, {7, 1.0 / 3}});
  const CostTable again = CostTable::from_text(other.text(), "a table");
  EXPECT_EQ(again.text(), other.text());
  EXPECT_EQ(again.device(), "another device, with a comma");
  EXPECT_EQ(again.digest(), other.digest());
  EXPECT_NE(again.digest(), table().digest());
  EXPECT_TRUE(again.has("cpu/y", p));
  EXPECT_FALSE(again.has("cpu/y", problem(1, 1000000, 3)));
  const Problem near{.count = 5, .m = 7, .n = 2, .type = ElementType::float64, .mode = Mode::r};
  EXPECT_EQ(again.seconds("cpu/y", near), other.seconds("cpu/y", near));
}

TEST(CostTable, OnlyTablesOfTheSameSamplesShareADigest) {
  std::set<std::string> digests{CostTable("a device").digest(), CostTable("another").digest()};
  const Problem p = problem(1, 64, 32), r = problem(1, 64, 32, Mode::r);
  for (const CostTable::Reach reach : {CostTable::Reach::grid, CostTable::Reach::shape}) {
    for (const Problem& shape : {p, r, problem(1, 32, 64)}) {
      for (const std::vector<BatchTime>& times :
           {std::vector<BatchTime>{{1, 10 * us}}, {{1, 11 * us}}, {{1, 10 * us}, {4, 11 * us}}}) {
        CostTable t("a device");
        t.add("opencl/x", shape, times, reach);
        EXPECT_TRUE(digests.insert(t.digest()).second);
        EXPECT_EQ(CostTable::from_text(t.text(), "a table").digest(), t.digest());
      }
    }
  }
}

TEST(CostTable, DamagedTextIsRefused) {
  const std::string sound = table().text();
  EXPECT_THROW(CostTable::from_text("", "t"), InputError);
  EXPECT_THROW(CostTable::from_text("variant\n1,2\n", "t"), InputError);
  for (const char* line :
       {"opencl/x,float32,1,16,16,", "opencl/x,float16,1,16,16,1:10",
        "opencl/x,float32,2,16,16,1:1", "opencl/x,float32,1,0,16,1:10",
        "opencl/x,float32,1,16,16,1:-1", "opencl/x,float32,1,16,16,1:nan", ",float32,1,16,16,1:10",
        "opencl/x,float32,1,16,16,1:10x", "opencl/x,float32,1,16,16,1:10 1:11",
        "opencl/x,float32,1,16,16,1:10  4:11", "opencl/x,float32,1,16", "\n"}) {
    try {
      CostTable::from_text(sound + line, "t");
      ADD_FAILURE() << line;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("t: line 6 "), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace qrtool::cost_test
