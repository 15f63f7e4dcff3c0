// SPDX-License-Identifier: Apache-2.0
#include "app/run/make_backend.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "app/run/opencl.hpp"
#include "core/error.hpp"
#include "core/host.hpp"

namespace qrtool {
namespace {

/// A GPU with as many units as the one of the measured times.
DeviceInfo fast_gpu() {
  DeviceInfo gpu;
  gpu.limits = {.device_bytes = std::size_t{64} << 30,
                .max_allocation_bytes = std::size_t{16} << 30,
                .local_bytes = 48 << 10,
                .max_group = 1024,
                .compute_units = 132,
                .shuffle_lanes = 32,
                .is_cpu = false,
                .has_float64 = true,
                .fast_float64 = true,
                .float64_products = true};
  return gpu;
}

TEST(MakeBackend, VariantImpliesItsBackend) {
  const Limits limits = host_limits(1 << 20, 3);
  const Problem problem{.count = 100, .m = 8, .n = 8};
  const auto backend = [&](const BackendRequest& request) {
    return make_backend(request, problem, limits).backend->name();
  };
  EXPECT_EQ(backend({}), "cpu");
  EXPECT_EQ(backend({"auto", "", {}, "cpu/eigen"}), "cpu");
  EXPECT_THROW(backend({"cpu", "", {}, "other/eigen"}), UsageError);
  EXPECT_THROW(backend({"auto", "", {}, "other/eigen"}), UsageError);
  EXPECT_THROW(backend({"auto", "", {}, "eigen"}), UsageError);
  EXPECT_THROW(backend({"opencl", "", {}, "cpu/eigen"}), UsageError);
  EXPECT_THROW(backend({"cpu", "", {}, "opencl/small"}), UsageError);
  EXPECT_THROW(backend({"cpu", "0", {}, ""}), UsageError);
  EXPECT_THROW(backend({"auto", "0", {}, "cpu/eigen"}), UsageError);
}

TEST(MakeBackend, AutoTakesAGpuOnlyWhereTheWorkIsWorthIt) {
  Limits limits;
  limits.threads = 2;
  const DeviceInfo cpu_device, gpu = fast_gpu();
  const Problem little{100, 8, 8}, much{150000, 64, 64};
  const DeviceInfo only_cpu[] = {cpu_device}, both[] = {cpu_device, gpu};
  EXPECT_EQ(choose_automatically(little, limits, both).device, nullptr);
  EXPECT_EQ(choose_automatically(much, limits, {}).device, nullptr);
  EXPECT_EQ(choose_automatically(much, limits, only_cpu).device, nullptr);
  EXPECT_EQ(choose_automatically(much, limits, both).device, &both[1]);
  DeviceInfo single = gpu;
  single.limits.has_float64 = false;
  EXPECT_EQ(choose_automatically(much, limits, {&single, 1}).device, nullptr);
}

/// A GPU whose kernels, or whose copies, take longer than the CPU is not chosen.
TEST(MakeBackend, AutoComparesTheTimes) {
  Limits few, many;
  few.threads = 2;
  many.threads = 64;
  const DeviceInfo fast = fast_gpu();
  DeviceInfo slow = fast;
  slow.limits.compute_units = 4;
  slow.limits.fast_float64 = slow.limits.float64_products = false;
  const auto takes = [](const Problem& problem, const Limits& host, const DeviceInfo& gpu) {
    return choose_automatically(problem, host, {&gpu, 1}).device != nullptr;
  };
  const Problem one{1, 5000, 5000, ElementType::float64};
  const Problem batch{1000000, 64, 64, ElementType::float64};
  EXPECT_TRUE(takes(one, few, fast));
  EXPECT_TRUE(takes(batch, few, fast));
  EXPECT_FALSE(takes(one, few, slow));
  EXPECT_FALSE(takes(batch, many, fast));  // the copies take 10 s
}

TEST(MakeBackend, RanksTakeInTurnTheDevicesThatAWordMeans) {
  setenv("POCL_DEVICES", "basic pthread", 1);
  const std::vector<DeviceInfo> devices = opencl_devices();
  if (devices.size() < 2) GTEST_SKIP() << "fewer than two OpenCL devices";
  const std::string& last = devices.back().name;
  const std::string word = last.substr(last.find('-') + 1);  // PoCL: "pthread-PROCESSOR"
  const std::vector<DeviceInfo> meant = choose_opencl_devices(word);
  const Limits limits{.host_bytes = std::size_t{1} << 30};
  for (int rank = 0; rank < 5; ++rank) {
    const auto device_of = [&](const std::string& wanted) {
      const BackendRequest request{.device = wanted, .variant = {}, .rank = rank, .ranks = 5};
      return make_backend(request, Problem{1, 2, 2}, limits).backend->device();
    };
    EXPECT_EQ(device_of(word), meant[static_cast<std::size_t>(rank) % meant.size()].text());
    EXPECT_EQ(device_of("1"), devices[1].text());
  }
}

}  // namespace
}  // namespace qrtool
