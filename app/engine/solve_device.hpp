// SPDX-License-Identifier: Apache-2.0
// solve_device.hpp: whether the systems of a run are for a device, and how it would solve them.
#pragma once

#include <memory>
#include <string>

#include "app/engine/automatic.hpp"
#include "app/engine/solve_plan.hpp"
#include "core/backend/backend.hpp"
#include "core/solve/engines/system_device.hpp"

namespace qrtool {

/// The device, the plan of R for the matrices of the run, and whether R comes first. If one A
/// serves all right sides, the CPU factors it, and the device does the rest; if they have their own
/// weights, or leave out different rows, the device makes a matrix for each from it.
struct SolveDevice {
  std::shared_ptr<Backend> backend;
  Plan factor = {};
  SystemRoute route = SystemRoute::factors;
  bool is_shared = false;
  bool takes_gaps = false;  // with is_shared: right sides that leave rows out

  /// Returns the name for the output's attribute.
  std::string variant() const {
    return is_shared ? "one QR for all" : name_of(route, factor.variant->name);
  }
};

/// Whether one A serves all right sides, and there are so many of them that products with its Q
/// pay.
bool is_shared(const SystemsShape& shape, const SolveProblem& problem, const SolvePlan& plan);

/// Whether the device makes a system for each right side from the one A, because their weights
/// differ.
bool makes_own_systems(const SystemsShape& shape, const SolveProblem& problem);

/// Returns the reason why the systems of a run stay on the CPU, whatever the device, or an empty
/// text.
std::string objection_to_devices(const SystemsShape& shape, const SolveProblem& problem,
                                 const SolvePlan& plan);

/// Returns the problem of R for `systems` systems on a device: R of A with the rows of a ridge, or
/// of A' if A has fewer rows than columns.
Problem factored_on_device(const SolveProblem& problem, index_t systems);

/// Returns the work of `systems` systems with `sides` right sides each for a device.
Work work_of_systems(const SolveProblem& problem, index_t systems, index_t sides);

/// Returns the work of a run, for the choice of a backend.
Work solve_work_of(const SystemsShape& shape, const SolveProblem& problem, const SolvePlan& plan);

/// Sets in `device`, which has an OpenCL backend, how it solves the systems. `forced`: the variant;
/// empty: the planner's choice. Returns the reason why the device does not solve them, or an empty
/// text. Errors: as make_plan().
std::string plan_on_device(const SystemsShape& shape, const SolveProblem& problem,
                           const SolvePlan& plan, const std::string& forced, SolveDevice& device);

}  // namespace qrtool
