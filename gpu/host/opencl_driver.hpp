// SPDX-License-Identifier: Apache-2.0
// opencl_driver.hpp: driver.hpp for OpenCL. Private to gpu/host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gpu/host/driver.hpp"
#include "gpu/host/opencl.hpp"
#include "gpu/host/session.hpp"

namespace qrtool {

/// Errors: DeviceFailure.
std::unique_ptr<DeviceContext> open_opencl(const cl::Device& device);
/// What the compiler has made of a program for this device. Errors: DeviceFailure.
std::string binary_of(const Program& program, const cl::Device& device);
/// Every device of every platform.
std::vector<DeviceHandle> devices_of_opencl();

}  // namespace qrtool
