// SPDX-License-Identifier: Apache-2.0
// opencl_driver.hpp: driver.hpp for OpenCL. Private to gpu/host.
#pragma once

#include <memory>

#include "gpu/host/driver.hpp"
#include "gpu/host/opencl.hpp"

namespace qrtool {

/// Errors: DeviceFailure.
std::unique_ptr<DeviceContext> open_opencl(const cl::Device& device);

}  // namespace qrtool
