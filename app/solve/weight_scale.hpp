// SPDX-License-Identifier: Apache-2.0
// weight_scale.hpp: weights that are too large or too small for the type in which is computed.
#pragma once

#include "app/solve/solve_inputs.hpp"

namespace qrtool {

/// Where a weight w > 0 is no normal number of `type`, it divides all weights by a power of four
/// 2^e before they are rounded, and keeps e in `inputs`. The x that minimises
///
///     sum_i w_i (b - A x)_i^2 + ridge ||x||^2
///
/// stays the same when the ridge is divided by 2^e as well; the weighted residual norm is then
/// multiplied by 2^(e/2). The weights are read once for it, if they are stored as float64 and
/// `type` is float32. Errors: InputError where no power of four brings all of them into the range.
void fit_weights(SolveInputs& inputs, ElementType type);

}  // namespace qrtool
