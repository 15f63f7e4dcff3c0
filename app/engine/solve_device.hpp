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

/// The device, the plan of R for the matrices of the run, and whether R comes first. Where one A
/// serves all right sides, the CPU factors it, and the rest is the device's; where these have
/// weights of their own, or leave rows of their own out, the device makes a matrix of each from
/// it.
struct SolveDevice {
  std::shared_ptr<Backend> backend;
  Plan factor = {};
  SystemRoute route = SystemRoute::factors;
  bool is_shared = false;
  bool takes_gaps = false;  // with is_shared: right sides that leave rows out

  /// As the output's attribute names it.
  std::string variant() const {
    return is_shared ? "one QR for all" : name_of(route, factor.variant->name);
  }
};

/// Whether one A serves all right sides, and there are so many that products with its Q pay.
bool is_shared(const SystemsShape& shape, const SolveProblem& problem, const SolvePlan& plan);

/// Whether the device makes a system for each right side from the one A, because their weights
/// differ.
bool makes_own_systems(const SystemsShape& shape, const SolveProblem& problem);

/// Why the systems of a run stay on the CPU, whatever the device; empty where they need not.
std::string objection_to_devices(const SystemsShape& shape, const SolveProblem& problem,
                                 const SolvePlan& plan);

/// R of `systems` systems on a device: of A with the rows of a ridge, or of A' where A has fewer
/// rows than columns.
Problem factored_on_device(const SolveProblem& problem, index_t systems);

/// What `systems` systems with `sides` right sides each are for a device.
Work work_of_systems(const SolveProblem& problem, index_t systems, index_t sides);

/// The work of a run, for the choice of a backend.
Work solve_work_of(const SystemsShape& shape, const SolveProblem& problem, const SolvePlan& plan);

/// Enters in `device`, which has a backend of OpenCL, how it solves the systems. `forced`: the
/// variant; empty: the planner's choice. Returns why the device does not solve them; empty where it
/// does. Errors: as make_plan().
std::string plan_on_device(const SystemsShape& shape, const SolveProblem& problem,
                           const SolvePlan& plan, const std::string& forced, SolveDevice& device);

}  // namespace qrtool
