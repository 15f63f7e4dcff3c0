// SPDX-License-Identifier: Apache-2.0
// device_test.cpp: the list of devices, and which one a word means.
#include "gpu/device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "core/error.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test {
namespace {

class Devices : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }
};

TEST_F(Devices, HaveNamesAndLimits) {
  int index = 0;
  for (const DeviceInfo& d : list_devices()) {
    EXPECT_EQ(d.index, index++);
    EXPECT_FALSE(d.name.empty());
    EXPECT_FALSE(d.driver.empty());
    EXPECT_NE(d.text().find(d.name), std::string::npos);
    EXPECT_GT(d.limits.device_bytes, 0u);
    EXPECT_LT(d.limits.device_bytes, d.memory_bytes);
    EXPECT_GT(d.limits.max_allocation_bytes, 0u);
    EXPECT_GT(d.limits.local_bytes, 0u);
    EXPECT_GE(d.limits.max_group, 1);
    EXPECT_GE(d.limits.compute_units, 1);
  }
}

TEST_F(Devices, AreChosenByIndexOrByPartOfTheName) {
  const DeviceInfo first = list_devices().front();
  EXPECT_EQ(choose_device("0").index, 0);
  std::string upper = first.name.substr(first.name.size() / 3, first.name.size() / 2);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  EXPECT_EQ(choose_device(upper).index, 0) << upper;
}

TEST_F(Devices, DefaultIsAGpuWhereThereIsOne) {
  const std::vector<DeviceInfo> all = list_devices();
  const bool has_gpu =
      std::any_of(all.begin(), all.end(), [](const DeviceInfo& d) { return !d.limits.is_cpu; });
  EXPECT_EQ(choose_device("").limits.is_cpu, !has_gpu);
}

TEST_F(Devices, UnknownOnesAreAnsweredWithTheList) {
  for (const char* wanted : {"99", "-1", "no such device", "0x"}) {
    try {
      choose_device(wanted);
      FAIL() << wanted;
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), ExitCode::device);
      EXPECT_NE(std::string(error.what()).find(wanted), std::string::npos);
      EXPECT_NE(error.hint().find(list_devices().front().name), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace qrtool::test
