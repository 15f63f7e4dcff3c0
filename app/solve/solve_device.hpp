// SPDX-License-Identifier: Apache-2.0
// solve_device.hpp: whether the systems of a run are solved on an OpenCL device, and on which.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/options/options.hpp"
#include "app/solve/solve_plan.hpp"
#include "core/backend.hpp"
#include "core/solve/system_device.hpp"

namespace qrtool {

/// The device, the plan of R for the matrices of the run, and whether R comes first. Where one A
/// serves all right sides, the CPU factors it, and the rest is the device's.
struct SolveDevice {
  std::shared_ptr<Backend> backend;
  Plan factor = {};
  SystemRoute route = SystemRoute::factors;
  bool is_shared = false;

  /// As the output's attribute names it.
  std::string variant() const {
    return is_shared ? "one QR for all" : name_of(route, factor.variant->name);
  }
};

/// None where the CPU solves: where it is asked for, where the device's start is not worth it, or
/// where no device takes such systems, which a note says if a device was asked for. `before`: as
/// of make_backend(). Errors: as make_backend() and make_plan().
std::optional<SolveDevice> choose_solve_device(const SolveOptions& options,
                                               const SolveInputs& inputs,
                                               const SolveProblem& problem, const SolvePlan& plan,
                                               const Limits& limits,
                                               const std::shared_ptr<Backend>& before);

}  // namespace qrtool
