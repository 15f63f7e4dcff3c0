// SPDX-License-Identifier: Apache-2.0
// timings_test.cpp: what is kept of earlier runs comes back as it was, and a file that cannot be
// read or written breaks nothing.
#include "app/engine/timings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "app/run/backends/timings_file.hpp"
#include "tests/support/temporary_directory.hpp"

namespace qrtool::timings_test {
namespace {

DeviceInfo gpu(const std::string& driver = "580") {
  DeviceInfo info;
  info.platform = "CUDA";
  info.name = "NVIDIA H200";
  info.driver = driver;
  info.limits.is_cpu = false;
  return info;
}

Timings used_twice() {
  Timings timings;
  timings.add({gpu(), 0.25, {{"a1", "opencl/gram", 2.5}}});
  timings.add({gpu(), 0.26, {{"a1", "opencl/gram", 0.01}}});
  timings.add(gpu(), KeptSample{{7, 6, 5, ElementType::float64, Mode::r}, 0.125});
  return timings;
}

TEST(Timings, ComeBackAsTheyWere) {
  const Timings back = Timings::from_text(used_twice().to_text());
  const KeptDevice* const device = back.find(gpu());
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->start_seconds, 0.25);
  EXPECT_TRUE(device->is_gpu);
  const KeptProgram* const program = device->find("a1");
  ASSERT_NE(program, nullptr);
  EXPECT_EQ(program->user, "opencl/gram");
  EXPECT_EQ(program->first_seconds, 2.5);
  EXPECT_EQ(program->least_seconds, 0.01);
  ASSERT_EQ(device->samples.size(), 1U);
  EXPECT_EQ(device->samples[0].problem.type, ElementType::float64);
  EXPECT_FALSE(device->samples[0].problem.wants_q());
  EXPECT_EQ(device->samples[0].problem.count, 7);
  EXPECT_EQ(device->samples[0].seconds, 0.125);
  EXPECT_EQ(back.to_text(), used_twice().to_text());
}

TEST(Timings, OfAnotherDriverAreOthers) {
  const Timings timings = used_twice();
  EXPECT_EQ(timings.find(gpu("581")), nullptr);
  EXPECT_EQ(timings.least_start_seconds(), 0.25);
}

TEST(Timings, KeepTheLeast) {
  Timings timings;
  EXPECT_TRUE(timings.add({gpu(), 0.5, {{"a1", "x", 2}}}));
  EXPECT_FALSE(timings.add({gpu(), 0.6, {}}));
  EXPECT_FALSE(timings.add({gpu(), 0.47, {}})) << "no news: by less than a tenth";
  EXPECT_TRUE(timings.add({gpu(), 0.3, {}}));
  EXPECT_EQ(timings.find(gpu())->start_seconds, 0.3);
  EXPECT_TRUE(timings.add({gpu(), 1, {{"a1", "x", 0.02}}}));
  EXPECT_FALSE(timings.add({gpu(), 1, {{"a1", "x", 5}}})) << "the driver's cache was emptied";
  EXPECT_EQ(timings.find(gpu())->find("a1")->least_seconds, 0.02);
  EXPECT_EQ(timings.find(gpu())->find("a1")->first_seconds, 2);
}

TEST(Timings, OfCpuDevicesAreNoStartOfAGpu) {
  DeviceInfo cpu = gpu();
  cpu.limits.is_cpu = true;
  Timings timings;
  timings.add({cpu, 0.05, {}});
  EXPECT_EQ(timings.least_start_seconds(), std::nullopt);
}

TEST(Timings, DoNotGrowForever) {
  Timings timings;
  for (int i = 0; i < 1500; ++i) timings.add({gpu(), 0.5, {{std::to_string(i), "x", 1}}});
  EXPECT_EQ(timings.find(gpu())->programs.size(), 1000U);
  EXPECT_EQ(timings.find(gpu())->find("499"), nullptr);
  EXPECT_NE(timings.find(gpu())->find("1499"), nullptr);
}

TEST(Timings, OfDamagedTextsAreEmpty) {
  const std::string good = used_twice().to_text();
  for (std::size_t length = 0; length + 3 < good.size(); ++length)
    EXPECT_TRUE(Timings::from_text(good.substr(0, length)).devices().empty()) << length;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return Timings::from_text(text).devices().size();
  };
  EXPECT_EQ(changed("0.25", "0.26"), 1U);
  EXPECT_EQ(changed("0.25", "-1"), 0U);
  EXPECT_EQ(changed("0.25", "1e999"), 0U);
  EXPECT_EQ(changed("0.25", "null"), 0U);
  EXPECT_EQ(changed("0.25", "\"soon\""), 0U);
  EXPECT_EQ(changed("timings/1", "timings/2"), 0U);
  EXPECT_EQ(changed("\"programs\"", "\"program\""), 0U);
}

class TimingsPath : public testing::Test {
 protected:
  void SetUp() override { unsetenv("QRTOOL_TIMINGS"); }
  void TearDown() override {
    setenv("QRTOOL_TIMINGS", "", 1);
    unsetenv("XDG_CACHE_HOME");
  }
};

TEST_F(TimingsPath, FollowsTheEnvironment) {
  setenv("HOME", "/home/ada", 1);
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(timings_path(), "/home/ada/.cache/qrtool/timings.json");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(timings_path(), "/home/ada/.cache/qrtool/timings.json");
  setenv("XDG_CACHE_HOME", "/var/cache/ada", 1);
  EXPECT_EQ(timings_path(), "/var/cache/ada/qrtool/timings.json");
  setenv("QRTOOL_TIMINGS", "t.json", 1);
  EXPECT_EQ(timings_path(), "t.json");
  setenv("QRTOOL_TIMINGS", "", 1);
  EXPECT_EQ(timings_path(), std::nullopt);
}

TEST_F(TimingsPath, MayLeadToNoFile) {
  const test::TemporaryDirectory folder;
  setenv("QRTOOL_TIMINGS", folder.path().c_str(), 1);
  EXPECT_TRUE(load_timings().devices().empty());
  setenv("QRTOOL_TIMINGS", (folder / "none.json").c_str(), 1);
  EXPECT_TRUE(load_timings().devices().empty());
  EXPECT_FALSE(forget_timings());
}

TEST_F(TimingsPath, LeadsToTheFile) {
  const test::TemporaryDirectory folder;
  setenv("QRTOOL_TIMINGS", (folder / "t.json").c_str(), 1);
  test::write_text(folder / "t.json", used_twice().to_text());
  EXPECT_NE(load_timings().find(gpu()), nullptr);
  EXPECT_TRUE(forget_timings());
  EXPECT_FALSE(std::filesystem::exists(folder / "t.json"));
}

}  // namespace
}  // namespace qrtool::timings_test
