// SPDX-License-Identifier: Apache-2.0
// system_body.hpp: what solves systems on a device, or measures or checks them, says of itself.
#pragma once

#include <string_view>
#include <vector>

#include "core/solve/engines/system_device.hpp"
#include "gpu/model/gpu_variant.hpp"
#include "gpu/solve/parts/system_buffers.hpp"

namespace qrtool {

/// The kernels of one file as they are built for some systems, and their launches.
struct SystemStep {
  std::string_view file;
  Params params;
  void (*enqueue)(const SystemJob&, const Params&, Launcher&);
  bool in_float64 = false;  // whether the kernels are built for float64, whatever the systems are
};

/// One way to solve systems, or to measure or check them.
struct SystemBody {
  std::string_view name;
  /// Whether the kernels take such systems on a device with such limits.
  bool (*fits)(const SolveProblem&, const Limits&);
  /// What runs, in this order.
  std::vector<SystemStep> (*steps)(const SolveProblem&, const Limits&);
  /// Of normal equations: the smallest singular value, with scaled columns, above which their R in
  /// float64 tells the rank. Null: R is not theirs.
  double (*least_value)(const SolveProblem&, const Limits&) = nullptr;
};

}  // namespace qrtool
