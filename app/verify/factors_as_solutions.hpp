// SPDX-License-Identifier: Apache-2.0
// factors_as_solutions.hpp: refuses Q and R that were given to `verify` as B and X.
#pragma once

#include "app/solve/solve_inputs.hpp"

namespace qrtool {

/// `inputs` are A and B, and `x` what was named third. Errors: UsageError, which names the ways to
/// give factors, where B and X have the shapes of Q and R, the first matrix of X is upper
/// triangular and the columns of the first matrix of B are orthonormal.
void refuse_factors(const SolveInputs& inputs, Reader& x);

}  // namespace qrtool
