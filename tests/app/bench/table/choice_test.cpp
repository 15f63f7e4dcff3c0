// SPDX-License-Identifier: Apache-2.0
// choice_test.cpp: what was chosen is compared with the fastest, and marked where it is far behind.
#include "app/bench/table/choice.hpp"

#include <gtest/gtest.h>

#include <string>

#include "app/bench/timing/cases.hpp"

namespace qrtool::choice_test {
namespace {

Timing timing(double seconds) { return {.seconds = {seconds}}; }

BenchHeader header_of(std::vector<BenchHeader::Baseline> baselines) {
  BenchHeader header;
  header.backend = "opencl";
  header.baselines = std::move(baselines);
  header.has_choice_of_variant = true;
  return header;
}

BenchRow row_of(double tool, std::vector<std::optional<Timing>> baselines) {
  BenchRow row;
  row.size = {.m = 64, .n = 64, .batch = 100};
  row.variant = "opencl/gram";
  row.tool = timing(tool);
  row.baselines = std::move(baselines);
  return row;
}

TEST(ChoiceOfVariant, IsComparedWithTheFastest) {
  const BenchHeader header =
      header_of({{"eigen", ""}, {"opencl/gram", "forced"}, {"opencl/small", "forced"}});
  const auto choice =
      choice_of_variant(row_of(3e-3, {timing(1e-3), timing(2.9e-3), timing(2e-3)}), header);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->taken, "opencl/gram");
  EXPECT_EQ(choice->best, "opencl/small");
  EXPECT_DOUBLE_EQ(choice->behind(), 1.5);
}

TEST(ChoiceOfVariant, IsNotBehindItself) {
  const BenchHeader header = header_of({{"opencl/gram", "forced"}, {"opencl/small", "forced"}});
  const auto choice = choice_of_variant(row_of(3e-3, {timing(2e-3), std::nullopt}), header);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->best, "opencl/gram");
  EXPECT_DOUBLE_EQ(choice->behind(), 1);
}

TEST(ChoiceOfVariant, NeedsVariants) {
  EXPECT_FALSE(choice_of_variant(row_of(3e-3, {timing(1e-3)}), header_of({{"eigen", ""}})));
}

TEST(ChoiceColumns, MarkWhatIsFarBehind) {
  const auto has_mark = [](double best) {
    BenchResult result;
    result.header = header_of({});
    BenchRow row = row_of(3e-3, {});
    row.plan = BenchChoice{.taken = "opencl/gram",
                           .best = "opencl/small",
                           .taken_seconds = 3e-3,
                           .best_seconds = best};
    return text_row(result, row).find(" !") != std::string::npos;
  };
  EXPECT_TRUE(has_mark(2e-3));
  EXPECT_FALSE(has_mark(2.5e-3));
  EXPECT_FALSE(has_mark(3e-3));
}

TEST(CostHistory, ExpectsASmallBatchToTakeAsLongAsOneMatrixOnADevice) {
  CostHistory linear(false), batched(false, true);
  const BenchCase one{.m = 8, .n = 8, .batch = 1}, many{.m = 8, .n = 8, .batch = 1000};
  for (CostHistory* history : {&linear, &batched}) history->add(one, 1e3, 2e-5);
  EXPECT_DOUBLE_EQ(linear.predict(many, 1e6), 2e-2);
  EXPECT_DOUBLE_EQ(batched.predict(many, 1e6), 2e-5);
  EXPECT_DOUBLE_EQ(batched.predict(many, 1e8), 2e-4);
}

}  // namespace
}  // namespace qrtool::choice_test
