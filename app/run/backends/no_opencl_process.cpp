// SPDX-License-Identifier: Apache-2.0
// no_opencl_process.cpp: takes the place of opencl_process.cpp in a build without the gpu layer.
#include "app/run/backends/opencl_process.hpp"

namespace qrtool {

std::optional<int> build_opencl_kernels(int, char**) { return {}; }

void start_opencl(const std::string&) {}

void wait_for_opencl() noexcept {}

std::vector<DeviceInfo> opencl_devices() { return {}; }

std::vector<DeviceInfo> choose_opencl_devices(std::string_view wanted) {
  return choose_devices({}, wanted);
}

}  // namespace qrtool
