// SPDX-License-Identifier: Apache-2.0
// solve_by.hpp: `qrtool solve` with --by or --groups.
#pragma once

#include "app/options/options.hpp"
#include "core/error.hpp"

namespace qrtool {

/// One regression for each group of the rows of a table, or of A and B: reads, solves, checks, and
/// writes a table with a row for each group. Errors: every class of core/error.hpp; nothing is left
/// on disk.
ExitCode solve_by(const SolveOptions& options);

}  // namespace qrtool
