// SPDX-License-Identifier: Apache-2.0
// solve_notes.hpp: says how A and B were read.
#pragma once

#include "app/solve/solve_inputs.hpp"

namespace qrtool {

/// Prints notes about A and B, one line each; with `is_verbose` also how they were read.
void print_notes(const SolveInputs& inputs, bool is_verbose);

}  // namespace qrtool
