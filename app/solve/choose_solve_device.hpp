// SPDX-License-Identifier: Apache-2.0
// choose_solve_device.hpp: whether the systems of a run are solved on an OpenCL device, and on
// which.
#pragma once

#include <memory>
#include <optional>

#include "app/engine/solve_device.hpp"
#include "app/options/options.hpp"
#include "app/solve/solve_inputs.hpp"
#include "core/backend/backend.hpp"

namespace qrtool {

/// None where the CPU solves: where it is asked for, where the device's start is not worth it, or
/// where no device takes such systems, which a note says if a device was asked for. `before`: as
/// of make_backend(). Errors: as make_backend() and make_plan().
std::optional<SolveDevice> choose_solve_device(const SolveOptions& options,
                                               const SolveInputs& inputs,
                                               const SolveProblem& problem, const SolvePlan& plan,
                                               const Limits& limits,
                                               const std::shared_ptr<Backend>& before);

}  // namespace qrtool
