// SPDX-License-Identifier: Apache-2.0
// opencl_process.hpp: the OpenCL devices of the program, with the user's own tables of their times;
// and the processes of the program that build kernels.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/engine/opencl.hpp"

namespace qrtool {

/// If this process was started to build kernels for another qrtool, builds them and returns the
/// exit code. If not, this process may start such processes (gpu/host/builders.hpp).
std::optional<int> build_opencl_kernels(int argc, char** argv);

/// Starts, on its own thread, the first device that `wanted` names. Later calls do nothing. The
/// functions below wait for it, and make_opencl_backend() fails if it has failed.
void start_opencl(const std::string& wanted);
/// To be called before the process ends: a driver that is just starting would crash then.
void wait_for_opencl() noexcept;

/// Returns every OpenCL device; none if there is no OpenCL.
std::vector<DeviceInfo> opencl_devices();

/// Calls choose_devices() for them.
std::vector<DeviceInfo> choose_opencl_devices(std::string_view wanted);

}  // namespace qrtool
