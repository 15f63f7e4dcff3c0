// SPDX-License-Identifier: Apache-2.0
// opencl_process.cpp: built with the gpu layer; no_opencl_process.cpp without it.
#include "app/run/backends/opencl_process.hpp"

#include <cstdlib>
#include <future>
#include <system_error>

#include "app/process/signals.hpp"
#include "app/run/backends/timings_file.hpp"
#include "gpu/host/builders.hpp"
#include "gpu/host/start_session.hpp"

namespace qrtool {
namespace {

/// The first argument of a process that builds kernels; the device's index and the number of the
/// process that wants them follow. Users have no need of it.
constexpr std::string_view build_option = "--build-kernels";

/// Returns the thread of start_opencl(). Never destroyed, because exit() must not wait for it.
std::future<void>& starting() {
  static auto& future = *new std::future<void>;
  return future;
}

}  // namespace

std::optional<int> build_opencl_kernels(int argc, char** argv) {
  if (argc != 4 || argv[1] != build_option) {
    set_builder_command({"/proc/self/exe", std::string(build_option)});
    return {};
  }
  return run_builder(std::atoi(argv[2]), std::atoi(argv[3]));
}

void start_opencl(const std::string& wanted) {
  if (starting().valid()) return;
  prepare_drivers();
  try {
    // The failure is reported to the code that looks for the device next.
    starting() = std::async(std::launch::async, [wanted] {
      const std::vector<DeviceInfo> devices = list_devices();
      take_back_abort();
      start_session(choose_devices(devices, wanted).front());
    });
  } catch (const std::system_error&) {  // there is no thread left; it starts when it is needed
  }
}

void wait_for_opencl() noexcept {
  if (starting().valid()) starting().wait();
}

// PoCL crashes if two threads ask for its devices at the same time (3.1, 2026-11-26).
std::vector<DeviceInfo> opencl_devices() {
  wait_for_opencl();
  std::vector<DeviceInfo> devices = list_devices();
  take_back_abort();
  for (DeviceInfo& device : devices) device.limits.costs = own_rates(device.text());
  return devices;
}

std::vector<DeviceInfo> choose_opencl_devices(std::string_view wanted) {
  return choose_devices(opencl_devices(), wanted);
}

}  // namespace qrtool
