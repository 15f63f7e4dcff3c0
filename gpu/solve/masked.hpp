// SPDX-License-Identifier: Apache-2.0
// masked.hpp: right sides of one matrix with gaps, for which masked.cl leaves rows out.
#pragma once

#include "core/solve/packing.hpp"
#include "gpu/gpu_variant.hpp"

namespace qrtool {

/// Whether rows with missing entries are left out on the device, by a Gram matrix for each right
/// side. For matrices with more columns the device solves right sides without gaps alone.
bool masks_on_device(const SolveProblem& problem);

/// Right sides of a work-item of solve_masked, whose Gram matrices lie in its registers.
int masked_sides(index_t n);
/// The defines of masked.cl besides those of shared.cl.
Params masked_params(ElementType type);

}  // namespace qrtool
