// SPDX-License-Identifier: Apache-2.0
// device_test.cpp: the list of devices, and the devices that a name or an index chooses.
#include "gpu/host/device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::device_test {
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

TEST(FastFloat64, IsKnownForTheDataCentrePartsOfTwoVendors) {
  EXPECT_TRUE(has_fast_float64("NVIDIA H200", 90));
  EXPECT_TRUE(has_fast_float64("NVIDIA A100", 80));
  EXPECT_TRUE(has_fast_float64("gfx90a:sramecc+:xnack-", 0));
  EXPECT_TRUE(has_fast_float64("gfx942", 0));
  // The speed of these devices is measured.
  EXPECT_FALSE(has_fast_float64("NVIDIA GeForce RTX 4090", 89));
  EXPECT_FALSE(has_fast_float64("gfx1100", 0));
  EXPECT_FALSE(has_fast_float64("gfx9", 0));
  EXPECT_FALSE(has_fast_float64("Intel(R) Data Center GPU", 0));
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

/// Describes a machine with a CPU device, two equal GPUs and a third, different GPU.
std::vector<DeviceInfo> made_up() {
  std::vector<DeviceInfo> devices;
  for (const char* name : {"pthread-Epyc", "NVIDIA H200", "NVIDIA H200", "Other GPU 1"}) {
    DeviceInfo& device = devices.emplace_back();
    device.index = static_cast<int>(devices.size()) - 1;
    device.name = name;
    device.limits.is_cpu = device.index == 0;
  }
  return devices;
}

std::vector<int> chosen(std::span<const DeviceInfo> devices, std::string_view wanted) {
  std::vector<int> indices;
  for (const DeviceInfo& d : choose_devices(devices, wanted)) indices.push_back(d.index);
  return indices;
}

TEST(DeviceChoice, AWordMeansAllThatItIsPartOf) {
  using Indices = std::vector<int>;
  const std::vector<DeviceInfo> devices = made_up();
  EXPECT_EQ(chosen(devices, "nvidia"), (Indices{1, 2}));
  EXPECT_EQ(chosen(devices, "H2"), (Indices{1, 2}));
  EXPECT_EQ(chosen(devices, "p"), (Indices{0, 3}));
  EXPECT_EQ(chosen(devices, "epyc"), Indices{0});
}

TEST(DeviceChoice, ANumberMeansOne) {
  const std::vector<DeviceInfo> devices = made_up();
  for (int index = 0; index < 4; ++index)
    EXPECT_EQ(chosen(devices, std::to_string(index)), std::vector<int>{index});
}

TEST(DeviceChoice, NothingMeansTheGpusElseAll) {
  const std::vector<DeviceInfo> devices = made_up();
  EXPECT_EQ(chosen(devices, ""), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(chosen(std::span(devices).first(1), ""), std::vector<int>{0});
}

TEST(DeviceChoice, AGpuWithFloat64ComesFirst) {
  std::vector<DeviceInfo> devices = made_up();
  devices[1].limits.has_float64 = false;
  EXPECT_EQ(chosen(devices, ""), (std::vector<int>{2, 3, 1}));
  EXPECT_EQ(chosen(devices, "1"), std::vector<int>{1});
}

TEST(DeviceChoice, IsNeverEmpty) {
  const std::vector<DeviceInfo> devices = made_up();
  for (const char* wanted : {"4", "-1", "h300"})
    EXPECT_THROW(choose_devices(devices, wanted), DeviceError) << wanted;
  for (const char* wanted : {"", "0", "nvidia"})
    EXPECT_THROW(choose_devices(std::span<const DeviceInfo>{}, wanted), DeviceError) << wanted;
}

}  // namespace
}  // namespace qrtool::test::device_test
