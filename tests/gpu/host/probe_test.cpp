// SPDX-License-Identifier: Apache-2.0
// probe_test.cpp: what a device says of itself is believed where small kernels show it.
#include "gpu/host/probe.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "gpu/host/session.hpp"
#include "tests/gpu/opencl_fixture.hpp"
#include "tests/support/temporary_directory.hpp"

namespace qrtool::test::probe_test {
namespace {

class Probes : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }

  /// The device under test, as if it were a GPU of which nothing is known yet.
  static DeviceInfo unknown_gpu() {
    DeviceInfo info = device_under_test();
    info.name = "unknown";
    info.limits.is_cpu = false;
    info.limits.fast_float64 = info.limits.float64_products = false;
    return info;
  }
  static const OpenDevice& device() { return session_for(device_under_test()).open; }
};

/// Whoever claims shuffles gets them where they build and give the right values, in the version of
/// OpenCL C that did; else local memory.
TEST_F(Probes, ClaimedShufflesMustWork) {
  DeviceInfo info = unknown_gpu();
  settle_bodies(info, device(), {.has_shuffles = true});
  if (info.sub_groups == SubGroups::khr_shuffle) {
    EXPECT_TRUE(has_right_lanes(info, device()));
    EXPECT_EQ(info.limits.shuffle_lanes, 8);
  } else {
    EXPECT_EQ(info.sub_groups, SubGroups::local_memory);
    EXPECT_EQ(info.standard, "CL1.2");
    EXPECT_EQ(info.limits.shuffle_lanes, 1);
    for (const char* standard : {"CL1.2", "CL2.0", "CL3.0"}) {
      DeviceInfo claimed = info;
      claimed.sub_groups = SubGroups::khr_shuffle;
      claimed.standard = standard;
      EXPECT_FALSE(has_right_lanes(claimed, device())) << standard;
    }
  }
}

/// All kernels of a device without known shuffles build and run with what was settled.
TEST_F(Probes, WhatIsSettledFactors) {
  DeviceInfo info = unknown_gpu();
  settle_bodies(info, device(), {.has_shuffles = true});
  OpenclBackend backend(info, test_options());
  const Problem problem{5, 40, 24};
  Batch<float> a(5, 40, 24);
  for (index_t i = 0; i < 5 * 40 * 24; ++i) a.view().data[i] = float(1 + (i * i) % 17);
  const Plan plan = make_plan(problem, backend.variants(), backend.limits(), "opencl/small");
  Result<float> result = factor<float>(backend, plan, a.view());
  for (const MatrixReport& line : result.report) EXPECT_EQ(line.status, Status::ok);
}

TEST_F(Probes, WarpsNeedShuffles) {
  DeviceInfo info = unknown_gpu();
  settle_bodies(info, device(), {});
  EXPECT_FALSE(info.limits.float64_products);
  info.sub_groups = SubGroups::local_memory;
  info.limits.float64_products = true;
  if (device_under_test().limits.is_cpu) {
    EXPECT_FALSE(has_right_warps(info, device()));
  }
}

/// A CPU computes float64 at a half of float32's rate, or at the same.
TEST_F(Probes, TheShareOfFloat64IsMeasured) {
  const DeviceInfo info = device_under_test();
  if (!info.limits.fast_float64) GTEST_SKIP() << "float64 is slow";
  EXPECT_GT(float64_share(info, device()), 0.25);
  EXPECT_LT(float64_share(info, device()), 4);
}

TEST_F(Probes, ASlowFloat64HasItsSumsInPairs) {
  const auto settled = [](double share) {
    DeviceInfo info = unknown_gpu();
    info.float64_share = share;
    settle_bodies(info, device(), {});
    return info.limits;
  };
  for (const double share : {1.0, 0.5}) {
    EXPECT_TRUE(settled(share).fast_float64) << share;
    EXPECT_FALSE(settled(share).sums_in_pairs()) << share;
  }
  EXPECT_FALSE(settled(0.1).fast_float64);
  EXPECT_FALSE(settled(0.1).sums_in_pairs());
  for (const double share : {1.0 / 16, 1.0 / 64}) {
    EXPECT_FALSE(settled(share).fast_float64) << share;
    EXPECT_TRUE(settled(share).sums_in_pairs()) << share;
  }
}

TEST_F(Probes, TheShareOfAnUnknownGpuIsMeasuredAndKept) {
  const TemporaryDirectory folder;
  const char* const cache = "XDG_CACHE_HOME";
  const char* const given = std::getenv(cache);
  const std::optional<std::string> before = given == nullptr ? std::nullopt : std::optional(given);
  setenv(cache, folder.path().c_str(), 1);
  DeviceInfo info = unknown_gpu(), again = info;
  settle_bodies(info, device(), {});
  settle_bodies(again, device(), {});
  if (before)
    setenv(cache, before->c_str(), 1);
  else
    unsetenv(cache);
  EXPECT_EQ(folder.names().size(), 1U);
  ASSERT_TRUE(info.float64_share && again.float64_share);
  EXPECT_GT(*info.float64_share, 0.1);
  EXPECT_NEAR(*again.float64_share, *info.float64_share, 1e-3 * *info.float64_share);
}

}  // namespace
}  // namespace qrtool::test::probe_test
