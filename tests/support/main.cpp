// SPDX-License-Identifier: Apache-2.0
// main.cpp: runs the tests of some files of a program that holds the tests of many, for example
//
//     core_test core/plan/plan_test.cpp --gtest_filter=*Fits*
//
// GoogleTest knows in which file a test stands, so that no list of names has to be kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

/// HDF5 does not free all memory after an error in a damaged file.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

/// Gives the filter back that was asked for once the tests are chosen, since GoogleTest prints it.
struct AskedFilter : testing::EmptyTestEventListener {
  void OnTestProgramStart(const testing::UnitTest&) override {
    testing::GTEST_FLAG(filter) = filter;
  }
  std::string filter = testing::GTEST_FLAG(filter);
};

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::vector<std::string> files(argv + 1, argv + argc);
  if (files.empty()) return RUN_ALL_TESTS();

  std::string others;  // the tests of all other files, which the filter leaves out
  std::vector<bool> has_tests(files.size());
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      const auto found = std::find_if(files.begin(), files.end(), [&](const std::string& file) {
        return std::string(test.file()).ends_with("/tests/" + file);
      });
      if (found == files.end())
        others += std::string(":") + suite.name() + "." + test.name();
      else
        has_tests[static_cast<std::size_t>(found - files.begin())] = true;
    }
  }
  for (std::size_t i = 0; i < files.size(); ++i)
    if (!has_tests[i]) {
      std::fprintf(stderr, "%s: no test of %s is in this program\n", argv[0], files[i].c_str());
      return 2;
    }
  testing::UnitTest::GetInstance()->listeners().Append(new AskedFilter);
  std::string& filter = testing::GTEST_FLAG(filter);
  if (!others.empty()) {
    if (filter.find('-') == std::string::npos) others.front() = '-';
    filter += others;
  }
  return RUN_ALL_TESTS();
}
