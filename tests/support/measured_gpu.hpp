// SPDX-License-Identifier: Apache-2.0
// measured_gpu.hpp: a GPU as the one whose times are in gpu/rates. No device is needed.
#pragma once

#include <cstddef>

#include "gpu/host/device.hpp"

namespace qrtool::test {

inline DeviceInfo measured_gpu() {
  DeviceInfo info;
  info.name = "NVIDIA H200";
  info.sub_groups = SubGroups::nvidia_ptx;
  info.float64_body = Float64Body::wide;
  info.limits = {.host_bytes = std::size_t{8} << 30,
                 .device_bytes = std::size_t{128} << 30,
                 .max_allocation_bytes = std::size_t{32} << 30,
                 .local_bytes = 48 << 10,
                 .max_group = 1024,
                 .compute_units = 132,
                 .shuffle_lanes = 32,
                 .is_cpu = false,
                 .has_float64 = true,
                 .fast_float64 = true,
                 .float64_products = true,
                 .has_nvidia_mma = true};
  return info;
}

}  // namespace qrtool::test
