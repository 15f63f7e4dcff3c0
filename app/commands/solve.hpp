// SPDX-License-Identifier: Apache-2.0
// solve.hpp: runs of `qrtool solve`.
#pragma once

#include <memory>

#include "app/options/options.hpp"
#include "app/process/laps.hpp"
#include "app/solve/solve_inputs.hpp"
#include "app/solve/solve_result.hpp"
#include "core/backend/backend.hpp"

namespace qrtool {

/// Checks the name of the output, opens A, B and the weights, and prints notes about them. Errors:
/// as open_solve_inputs(); UsageError if one of them is the output.
SolveInputs open_inputs_of(const SolveOptions& options, const Limits& limits);

/// Plans, solves, checks and writes. `laps` began with the process, or with the work on
/// these inputs. `kept`: the device's backend of earlier runs, in which this run leaves its own;
/// null: no run follows. The inputs outlive the result. Errors: every class of core/error.hpp;
/// nothing is left on disk.
SolveResult solve_inputs(const SolveOptions& options, const SolveInputs& inputs,
                         const Limits& limits, Laps& laps,
                         std::shared_ptr<Backend>* kept = nullptr);

/// --by or --groups: one regression for each group of the rows of a table, or of A and B: reads,
/// solves, checks, and writes a table with a row for each group. --window: the same for each row.
/// Errors: every class of core/error.hpp; nothing is left on disk.
ExitCode solve_by(const SolveOptions& options);

}  // namespace qrtool
