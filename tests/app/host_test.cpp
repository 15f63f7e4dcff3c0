// SPDX-License-Identifier: Apache-2.0
#include "app/host.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "app/make_backend.hpp"
#include "app/opencl.hpp"
#include "core/error.hpp"
#include "tests/support/run_tool.hpp"

namespace qrtool {
namespace {

using test::TemporaryDirectory;
using test::write_text;

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

TEST(Host, SeesMemoryAndCores) {
  EXPECT_GT(free_memory_bytes(), std::size_t{1} << 20);
  EXPECT_LT(free_memory_bytes(), std::size_t{1} << 50);
  EXPECT_GE(available_cores(), 1);
}

TEST(Host, ControlGroupsOfVersion2LimitTheirChildren) {
  const TemporaryDirectory root;
  std::filesystem::create_directories(root / "a/b");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "a/b"), unlimited);
  write_text(root / "a/b/memory.max", "max\n");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "a/b"), unlimited);
  write_text(root / "a/memory.max", "1000\n");
  write_text(root / "a/memory.current", "600\n");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "a/b"), 400u);
  write_text(root / "a/memory.stat", "anon 7\nactive_file 100\ninactive_file 50\n");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "a/b"), 550u) << "cached files can be given up";
  write_text(root / "a/b/memory.max", "300\n");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "a/b"), 300u);
}

TEST(Host, ControlGroupsOfVersion1CountToo) {
  const TemporaryDirectory root;
  write_text(root / "memory.limit_in_bytes", "1000\n");
  write_text(root / "memory.usage_in_bytes", "900\n");
  write_text(root / "memory.stat", "inactive_file 1\ntotal_inactive_file 200\n");
  EXPECT_EQ(cgroup_room_bytes(root.path(), root / "not/there"), 300u);
}

TEST(Host, AddressSpaceLimitCounts) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer takes terabytes of address space";
#endif
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit lower = before;
  lower.rlim_cur = rlim_t{1} << 40;
  if (setrlimit(RLIMIT_AS, &lower) != 0) GTEST_SKIP() << "sanitizers take more address space";
  EXPECT_LT(free_memory_bytes(), std::size_t{1} << 40);
  setrlimit(RLIMIT_AS, &before);
}

TEST(MakeBackend, VariantImpliesItsBackend) {
  const Limits limits = host_limits(1 << 20, 3);
  EXPECT_EQ(limits.host_bytes, 1u << 20);
  EXPECT_EQ(limits.threads, 3);
  const Problem problem{100, 8, 8};
  const auto backend = [&](const BackendRequest& request) {
    return make_backend(request, problem, limits).backend->name();
  };
  EXPECT_EQ(backend({}), "cpu");
  EXPECT_EQ(backend({"auto", "", "cpu/eigen"}), "cpu");
  EXPECT_THROW(backend({"cpu", "", "other/eigen"}), UsageError);
  EXPECT_THROW(backend({"auto", "", "other/eigen"}), UsageError);
  EXPECT_THROW(backend({"auto", "", "eigen"}), UsageError);
  EXPECT_THROW(backend({"opencl", "", "cpu/eigen"}), UsageError);
  EXPECT_THROW(backend({"cpu", "", "opencl/small"}), UsageError);
  EXPECT_THROW(backend({"cpu", "0", ""}), UsageError);
  EXPECT_THROW(backend({"auto", "0", "cpu/eigen"}), UsageError);
}

TEST(Host, AutoTakesAGpuOnlyWhereTheWorkIsWorthIt) {
  Limits limits;
  limits.threads = 2;
  DeviceInfo cpu_device, gpu;
  gpu.limits.is_cpu = false;
  gpu.limits.has_float64 = true;
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

TEST(Host, RanksTakeInTurnTheDevicesThatAWordMeans) {
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
