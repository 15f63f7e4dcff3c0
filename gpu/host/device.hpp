// SPDX-License-Identifier: Apache-2.0
// device.hpp: what OpenCL devices there are, and which one is meant.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.hpp"

namespace qrtool {

/// Which body of the sub-group operations a device runs (gpu/common/common.clh).
enum class SubGroups { local_memory = 0, nvidia_ptx = 1, khr_shuffle = 2 };

/// Work-items that a body lets add up values without local memory (WIDEST_SUM of common.clh).
int shuffle_lanes(SubGroups sub_groups);

/// One OpenCL device in words and numbers.
struct DeviceInfo {
  int index = 0;  // as --device takes it
  std::string platform, name, vendor, driver, version;
  Limits limits;  // the device's fields; memory already less what the driver needs
  std::uint64_t memory_bytes = 0;
  SubGroups sub_groups = SubGroups::local_memory;
  bool exact_division = false;  // correctly rounded float32 division and square root on request

  /// "NVIDIA H200 (driver 580.65)".
  std::string text() const;
};

/// Every device of every platform, in the order that OpenCL gives them; empty without OpenCL.
std::vector<DeviceInfo> list_devices();

/// The devices that `wanted` means, in their order, at least one: the one with that index, or all
/// with that part of a name whatever its case; empty: the GPUs, else all.
/// Errors: DeviceError where there is no device at all or no such one; it lists what there is.
std::vector<DeviceInfo> choose_devices(std::string_view wanted);
/// The same among `devices`, whose indices count them.
std::vector<DeviceInfo> choose_devices(std::span<const DeviceInfo> devices,
                                       std::string_view wanted);
/// The first of them.
DeviceInfo choose_device(std::string_view wanted);

}  // namespace qrtool
