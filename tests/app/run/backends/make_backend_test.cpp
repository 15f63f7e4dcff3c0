// SPDX-License-Identifier: Apache-2.0
#include "app/run/backends/make_backend.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "app/engine/opencl.hpp"
#include "app/run/backends/attempts.hpp"
#include "app/run/backends/opencl_process.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"

namespace qrtool::make_backend_test {
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

TEST(MakeBackend, ComplexSystemsStayOnTheCpu) {
  const Problem problem{.count = 1 << 20, .m = 64, .n = 64, .type = ElementType::complex64};
  EXPECT_EQ(Work(problem, 1).objection_to_devices(), "A is complex");
  EXPECT_EQ(Work(problem).objection_to_devices(), "");
  const BackendChoice choice = make_backend({}, Work(problem, 1), host_limits(1 << 20, 3));
  EXPECT_EQ(choice.backend->name(), "cpu");
  EXPECT_EQ(choice.reason, "solved on the CPU: A is complex");
}

/// Whether a run goes on after such an error in its first attempt.
template <class E>
bool goes_on(Attempts& attempts, const E& failure, bool had_device) {
  try {
    throw failure;
  } catch (const Error& error) {
    try {
      attempts.go_on(error, had_device);
      return true;
    } catch (const E&) {
      return false;
    }
  }
}

TEST(Attempts, AfterADeviceThatTheToolHasChosenComesTheCpu) {
  for (const bool had_device : {false, true}) {
    Attempts attempts({}, true);
    EXPECT_TRUE(attempts.is_first());
    EXPECT_TRUE(goes_on(attempts, DeviceError("no device"), had_device));
    EXPECT_FALSE(attempts.is_first());
    EXPECT_EQ(attempts.request().name, "cpu");
    EXPECT_FALSE(goes_on(attempts, DeviceError("no device"), had_device)) << "nothing is left";
  }
  Attempts full({}, true);
  EXPECT_TRUE(goes_on(full, LimitError("the device is full"), true));
}

TEST(Attempts, OtherErrorsEndTheRun) {
  Attempts automatic({}, true), asked_for({"opencl", "", {}, ""}, false);
  EXPECT_FALSE(goes_on(automatic, LimitError("no memory"), false));
  EXPECT_FALSE(goes_on(automatic, InputError("damaged"), true));
  EXPECT_FALSE(goes_on(asked_for, DeviceError("no device"), true));
  EXPECT_FALSE(goes_on(asked_for, LimitError("the device is full"), true));
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

TEST(MakeBackend, TakesTheBackendBeforeWhereANewOneWouldBeEqual) {
  if (opencl_devices().empty()) GTEST_SKIP() << "no OpenCL device";
  const BackendRequest request{.name = "opencl", .device = {}, .variant = {}};
  const Limits limits{.host_bytes = std::size_t{1} << 30, .threads = 2};
  const std::shared_ptr<Backend> first = make_backend(request, Problem{1, 2, 2}, limits).backend;
  EXPECT_EQ(make_backend(request, Problem{5, 9, 3}, limits, first).backend, first);
  Limits others = limits;
  others.reserve_for_files(1 << 20);
  EXPECT_NE(make_backend(request, Problem{1, 2, 2}, others, first).backend, first);
  BackendRequest cpu;
  cpu.name = "cpu";
  EXPECT_NE(make_backend(cpu, Problem{1, 2, 2}, limits, first).backend, first);
}

}  // namespace
}  // namespace qrtool::make_backend_test
