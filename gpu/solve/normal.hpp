// SPDX-License-Identifier: Apache-2.0
// normal.hpp: systems by normal equations: which of four kernels takes them, and the launch of
// normal.cl.
#pragma once

#include "gpu/solve/system_buffers.hpp"

namespace qrtool {

/// Who solves a system: a work-item (normal_lane.hpp), a team of them (normal.cl), a warp
/// (normal_tile.hpp) or a group of warps (normal_group.hpp).
enum class NormalBody { lane, team, warp, group };
/// The fastest for systems that take normal equations and are not tall. It does not depend on the
/// batch.
NormalBody normal_body(const SolveProblem& problem, const Limits& limits);

/// Whether normal equations are tried first for systems with `sides` right sides on a device with
/// these limits. It does not depend on the batch.
bool takes_normal_equations(const SolveProblem& problem, index_t sides, const Limits& limits);
/// The defines of normal.cl for n columns.
Params normal_params(index_t n, ElementType type);
/// The work-items of a group with such defines.
int normal_group_size(const Params& params);
/// The smallest singular value, with scaled columns, above which R of normal equations tells the
/// rank. At least `least_value`.
double normal_least_value(ElementType type, double least_value, NormalBody body);

/// Enqueues x and the upper triangle of R for every system.
void enqueue_normal_solve(const SystemJob& job, Launcher& launch);

}  // namespace qrtool
