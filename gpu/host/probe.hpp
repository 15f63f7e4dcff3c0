// SPDX-License-Identifier: Apache-2.0
// probe.hpp: which bodies of the kernels' common functions a device builds and runs rightly. What
// is not known of a device is found by small programs, once in a process. Private to gpu.
#pragma once

#include "gpu/host/device.hpp"
#include "gpu/host/driver.hpp"

namespace qrtool {

/// What a device says of itself that decides what is tried.
struct ProbeHints {
  int capability = 0;         // NVIDIA's; 0 for others
  bool has_shuffles = false;  // it lists cl_khr_subgroups and cl_khr_subgroup_shuffle
};

/// Sets sub_groups, standard, float64_body, and the limits that follow from them.
void settle_bodies(DeviceInfo& info, const OpenDevice& open, const ProbeHints& hints);

/// Whether shuffles among the lanes that `info` states work on the device: probe_lanes builds with
/// its options, and its results are right.
bool has_right_lanes(const DeviceInfo& info, const OpenDevice& open);

/// The same for products by warps of 32 work-items: probe_warp.
bool has_right_warps(const DeviceInfo& info, const OpenDevice& open);

/// The rate of float64 as a part of float32's: two chains of fma, the best of three runs each.
double float64_share(const DeviceInfo& info, const OpenDevice& open);

}  // namespace qrtool
