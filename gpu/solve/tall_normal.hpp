// SPDX-License-Identifier: Apache-2.0
// tall_normal.hpp: the launch of tall_normal.cl, which solves systems with many rows by normal
// equations after one pass over A (normal_sums.hpp).
#pragma once

#include "gpu/solve/system_buffers.hpp"

namespace qrtool {

/// Whether this is tried first for tall systems with one right side.
bool takes_tall_normal(const SolveProblem& problem, const Limits& limits);
/// The defines of tall_normal.cl for n columns.
Params tall_normal_params(index_t n, ElementType type);

/// Enqueues x and the upper triangle of R for every system, given the sums.
void enqueue_tall_normal_solve(const SystemJob& job, Launcher& launch);

}  // namespace qrtool
