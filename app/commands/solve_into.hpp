// SPDX-License-Identifier: Apache-2.0
// solve_into.hpp: `qrtool solve` with --into: several B for one A, or several tables.
#pragma once

#include "app/options/options.hpp"
#include "core/error.hpp"

namespace qrtool {

/// Solves for one B after another, or one table after another, and returns the highest exit code. A
/// device is started once. Errors: as run_into().
ExitCode solve_into(const SolveOptions& options);

}  // namespace qrtool
