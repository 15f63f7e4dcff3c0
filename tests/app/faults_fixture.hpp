// SPDX-License-Identifier: Apache-2.0
// faults_fixture.hpp: makes one input with its expected output, and checks what a run leaves.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/run_tool.hpp"

namespace qrtool::test {

using Strings = std::vector<std::string>;

/// The thread sanitizer takes terabytes of address space. The OpenMP library that works with it
/// ends the process where it cannot create shared memory.
#if defined(__has_feature)
inline constexpr bool has_thread_sanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool has_thread_sanitizer = false;
#endif

class Faults : public testing::Test {
 protected:
  /// Writes an input of `count` 32 x 32 matrices and its expected output.
  void make_input(index_t count) {
    write_matrices<float>(a_, {count}, make_matrices<float>("gauss", count, 32, 32).view());
    ASSERT_EQ(run_tool({"factor", a_, expected_, "-q"}).exit_code, 0);
    ASSERT_EQ(before_, dir_.names());
  }

  /// Expects only the input and the expected output, or these and a complete output.
  void expect_nothing_or_all(const std::string& when) {
    Strings after = before_;
    if (std::filesystem::exists(q_)) {
      EXPECT_TRUE(read_text(q_) == read_text(expected_)) << when << ": the output is damaged";
      after.push_back("q.h5");
    }
    EXPECT_EQ(dir_.names(), after) << when;
    std::filesystem::remove(q_);
  }

  TemporaryDirectory dir_;
  std::string a_ = dir_ / "a.h5", expected_ = dir_ / "expected.h5", q_ = dir_ / "q.h5";
  Strings before_{"a.h5", "expected.h5"};
};

}  // namespace qrtool::test
