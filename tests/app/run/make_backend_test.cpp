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
