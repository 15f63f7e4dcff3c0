// SPDX-License-Identifier: Apache-2.0
// solve_leverage.hpp: the leverages of systems with weights and missing rows.
#pragma once

#include "app/run/matrices/leverage_run.hpp"
#include "app/solve/solve_inputs.hpp"

namespace qrtool {

/// Errors: UsageError where right sides of one A have rows or weights of their own, and so
/// leverages of their own.
void require_one_leverage(const SolveInputs& inputs, const SolveProblem& problem);

/// The arguments outlive the job. ranks: of each A, as the report says it.
LeverageJob leverage_job(const SolveInputs& inputs, const SolveProblem& problem,
                         const Limits& limits, std::span<const std::int32_t> ranks);

/// The same, for which a number means the matrix of that right side.
LeverageJob job_of_sides(const SolveInputs& inputs, const SolveProblem& problem,
                         const Limits& limits);

}  // namespace qrtool
