// SPDX-License-Identifier: Apache-2.0
// device_handles.hpp: the devices of device.hpp, and how each is opened. Private to gpu/host.
#pragma once

#include <vector>

#include "gpu/host/device.hpp"
#include "gpu/host/driver.hpp"

namespace qrtool {

struct DeviceHandle {
  DeviceInfo info;
  OpenDevice open;
};

/// The devices of list_devices with their handles.
std::vector<DeviceHandle> device_handles();

/// The seconds of the first call of device_handles() in this process, in which drivers are loaded.
double first_listing_seconds();

}  // namespace qrtool
