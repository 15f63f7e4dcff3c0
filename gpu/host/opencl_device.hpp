// SPDX-License-Identifier: Apache-2.0
// opencl_device.hpp: the OpenCL handles behind device.hpp. Private to gpu.
#pragma once

#include <vector>

#include "gpu/host/device.hpp"
#include "gpu/host/opencl.hpp"

namespace qrtool {

struct DeviceHandle {
  DeviceInfo info;
  cl::Device device;
};

/// The devices of list_devices with their handles.
std::vector<DeviceHandle> device_handles();

/// The seconds of the first call of device_handles() in this process, in which drivers are loaded.
double first_listing_seconds();

}  // namespace qrtool
