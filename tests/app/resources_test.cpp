// SPDX-License-Identifier: Apache-2.0
// resources_test.cpp: counts the threads and disk synchronisations of a run, which its result does
// not show.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_tool.hpp"

namespace qrtool::test::resources_test {
namespace {

/// The counts of tests/support/count_calls.c.
using Counts = std::map<std::string, int>;

class Resources : public testing::Test {
 protected:
  Counts run(std::vector<std::string> arguments) {
    const std::string log = dir_ / "counts";
    const ToolOptions options{.environment = {{"LD_PRELOAD", QRTOOL_COUNT_CALLS},
                                              {"ASAN_OPTIONS", "verify_asan_link_order=0"},
                                              {"QRTOOL_COUNT_LOG", log}}};
    const ToolResult result = run_tool(arguments, options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::istringstream lines(read_text(log));
    Counts counts;
    std::string name;
    for (int count = 0; lines >> name >> count;) counts[name] = count;
    EXPECT_EQ(counts.size(), 4u) << read_text(log);
    return counts;
  }
  void make_input() {
    write_matrices<float>(a_, {3000}, make_matrices<float>("gauss", 3000, 64, 64).view());
  }

  TemporaryDirectory dir_;
  std::string a_ = dir_ / "a.h5", q_ = dir_ / "q.h5";
};

// Of two stages each has a thread, one thread watches over HDF5, and one reserves the space of the
// output, which ends before the first result is written. The third stage has that of the process.
constexpr int waiting_threads = 4;

TEST_F(Resources, ThreadsBoundReadingAndWritingToo) {
  make_input();
  // With --threads 1 no thread starts others that compute.
  EXPECT_LE(run({"factor", a_, q_, "--backend", "cpu", "--threads", "1"})["pthread_create"],
            waiting_threads);
  EXPECT_LE(run({"verify", a_, q_, "--threads", "1"})["pthread_create"], waiting_threads - 1);
}

TEST_F(Resources, AllStagesShareTheirThreads) {
  make_input();
  // One thread more may help any stage for each that --threads allows.
  for (const int threads : {2, 3, 6}) {
    const int made = run({"factor", a_, q_, "-f", "--backend", "cpu", "--threads",
                          std::to_string(threads)})["pthread_create"];
    EXPECT_GT(made, waiting_threads);
    EXPECT_LE(made, waiting_threads + threads - 1);
  }
}

TEST_F(Resources, TheDiskBeginsToWriteBeforeTheEnd) {
  make_input();
  EXPECT_GT(run({"factor", a_, q_})["sync_file_range"], 0) << "all is left for the last fsync";
}

TEST_F(Resources, TheDirectoryIsSynced) {
  write_text(dir_ / "a.csv", "1,2\n3,4\n5,6\n");
  EXPECT_EQ(run({"factor", dir_ / "a.csv", q_})["directory_fsync"], 1)
      << "a power failure could take the new name away";
  EXPECT_GE(run({"factor", dir_ / "a.csv", dir_ / "out.csv"})["directory_fsync"], 1);
}

}  // namespace
}  // namespace qrtool::test::resources_test
