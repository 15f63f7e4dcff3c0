// SPDX-License-Identifier: Apache-2.0
// normal_tile.hpp: normal equations in float64 by a warp for each system, on devices that multiply
// blocks of float64. Host half of normal_tile.cl.
#pragma once

#include "gpu/host/launcher.hpp"
#include "gpu/solve/system_buffers.hpp"

namespace qrtool {

/// Whether these are faster than teams of work-items (normal.hpp) on a device with these limits,
/// for systems that take normal equations. It does not depend on the batch.
bool pays_normal_tiles(const SolveProblem& problem, const Limits& limits);
/// The defines of normal_tile.cl for m x n systems.
Params normal_tile_params(index_t m, index_t n, ElementType type, const Limits& limits);

/// Enqueues x and the upper triangle of R for every system of up to most_tile_columns columns.
void enqueue_normal_tiles(const SystemJob& job, Launcher& launch);

}  // namespace qrtool
