// SPDX-License-Identifier: Apache-2.0
// normal.hpp: the launch of normal.cl, which solves systems by normal equations.
#pragma once

#include "gpu/solve/system_buffers.hpp"

namespace qrtool {

/// Whether normal equations are tried first for systems with `sides` right sides on a device with
/// these limits. It does not depend on the batch.
bool takes_normal_equations(const SolveProblem& problem, index_t sides, const Limits& limits);
/// The defines of normal.cl for n columns.
Params normal_params(index_t n, ElementType type);
/// The work-items of a group with such defines.
int normal_group_size(const Params& params);
/// The smallest singular value, with scaled columns, above which R of normal equations tells the
/// rank, by teams or by warps (normal_tile.hpp). At least `least_value`.
double normal_least_value(ElementType type, double least_value, bool by_tiles);

/// Enqueues x and the upper triangle of R for every system.
void enqueue_normal_solve(const SystemJob& job, Launcher& launch);

}  // namespace qrtool
