// SPDX-License-Identifier: Apache-2.0
// rates.hpp: the time that a problem will take on a GPU, estimated from measurements.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/plan/estimate.hpp"
#include "core/plan/variant.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

/// What a device will do.
struct DeviceWork {
  std::string_view variant;           // that the plan chooses; empty: none takes the problem
  std::vector<std::string> programs;  // their names (program_id)
  double pin_seconds = 0;             // until the memory of the host is known to the device
  double run_seconds = 0;             // from host memory to host memory, with the check
  /// The rates are those of such a device. Those of others are guesses, in proportion to their
  /// compute units.
  bool is_measured = false;
};

/// Factors by the least costly variant: its estimate (Variant::seconds), and as long again for the
/// check. Solutions by the nearest row of h200_runs(); of wide systems R is computed twice
/// (wide.cl). Copies overlap with them where there are several sub-chunks. `variant`: the one that
/// runs; null: the least costly one.
DeviceWork device_work(const Work& work, const DeviceInfo& device,
                       const Variant* variant = nullptr);

/// The seconds in which the matrices and their factors are copied, which no device can do without.
double copy_seconds(const Problem& problem);

}  // namespace qrtool
