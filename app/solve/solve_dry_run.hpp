// SPDX-License-Identifier: Apache-2.0
// solve_dry_run.hpp: `qrtool solve --dry-run`.
#pragma once

#include "app/run/backends/run_cost.hpp"
#include "app/solve/solve_run.hpp"

namespace qrtool {

/// Estimates what a run that has a plan would need and take. The time is that of factoring [A b],
/// or of factoring A and of the products with all b.
RunCost cost_of(const SolveOptions& options, const SolveInputs& inputs, const Limits& limits,
                SolveRun& run);

}  // namespace qrtool
