// SPDX-License-Identifier: Apache-2.0
// session.hpp: one context and one program cache per device and process, and how devices are
// opened.
#pragma once

#include "gpu/host/device.hpp"
#include "gpu/host/driver.hpp"
#include "gpu/host/program_cache.hpp"

namespace qrtool {

struct DeviceHandle {
  DeviceInfo info;
  OpenDevice open;
  CompileKernels compile;  // its compiler, for another driver of the device
};
/// The devices of list_devices with their handles.
std::vector<DeviceHandle> device_handles();
/// How the device of `handle` is opened by the driver that `info` names.
OpenDevice how_to_open(const DeviceHandle& handle, const DeviceInfo& info);
/// The seconds of the first call of device_handles() in this process, in which drivers are loaded.
double first_listing_seconds();

struct Session {
  Session(const DeviceInfo& device_info, OpenDevice how)
      : info(device_info), open(std::move(how)), context(open()), programs(*context, device_info) {}

  DeviceInfo info;
  double start_seconds = 0;  // of the context, and of the first list of devices
  OpenDevice open;
  std::unique_ptr<DeviceContext> context;
  ProgramCache programs;
};

/// Returns the session of a device with the index of list_devices, and makes it at the first use.
/// `info.sub_groups` chooses the body of the sub-group operations.
Session& session_for(const DeviceInfo& info);

}  // namespace qrtool
