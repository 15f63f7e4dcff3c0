// SPDX-License-Identifier: Apache-2.0
#include "app/process/progress.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/run_tool.hpp"

namespace qrtool::progress_test {
namespace {

TEST(ProgressLine, SaysHowFarHowFastAndHowLong) {
  EXPECT_EQ(progress_line("factor", 3072, 15000, 74.6),
            "factor  3,072/15,000  20%  41.2 matrices/s  eta 4:50");
  EXPECT_EQ(progress_line("verify", 14000, 15000, 1),
            "verify  14,000/15,000  93%  14,000 matrices/s  eta 0:00");
  EXPECT_EQ(progress_line("factor", 1, 100000, 1),
            "factor  1/100,000  0%  1 matrices/s  eta 27:46:39");
  EXPECT_EQ(progress_line("factor", 0, 5, 0), "factor  0/5  0%  0 matrices/s  eta -:--");
  EXPECT_EQ(progress_line("factor", 0, 0, 1), "factor  0/0  100%  0 matrices/s  eta -:--");
}

TEST(Progress, AlwaysGoesIntoAPipeToo) {
  testing::internal::CaptureStderr();
  {
    Progress progress("factor", 10, ProgressMode::always);
    progress.add(4);
    progress.add(6);
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.starts_with("factor  4/10  40%")) << text;
  EXPECT_NE(text.find("\nfactor  10/10  100%"), std::string::npos) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos) << "no control characters in a pipe";
}

TEST(Progress, AutomaticIsSilentInAPipe) {
  testing::internal::CaptureStderr();
  for (const ProgressMode mode : {ProgressMode::automatic, ProgressMode::never}) {
    Progress progress("factor", 10, mode);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    progress.add(10);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace qrtool::progress_test
