// SPDX-License-Identifier: Apache-2.0
// normal.hpp: what bodies by normal equations share. They have an R in float64 whose accuracy says
// what it tells of the rank.
#pragma once

#include "core/solve/engines/system_device.hpp"
#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// The defines of normal.cl for n columns.
Params normal_params(index_t n, ElementType type);
/// The work-items of a group with such defines.
int normal_group_size(const Params& params);
/// least_value of SystemBody, for R that is computed entry by entry, or by blocks.
double normal_least_value(const SolveProblem& problem, const Limits& limits);
double normal_least_value_of_blocks(const SolveProblem& problem, const Limits& limits);

}  // namespace qrtool
