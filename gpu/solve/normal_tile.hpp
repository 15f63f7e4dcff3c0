// SPDX-License-Identifier: Apache-2.0
// normal_tile.hpp: normal equations in float64 by a warp for each system, on devices that multiply
// blocks of float64. Host half of normal_tile.cl.
#pragma once

#include "gpu/host/launcher.hpp"
#include "gpu/solve/system_buffers.hpp"

namespace qrtool {

/// The defines of normal_tile.cl for m x n systems.
Params normal_tile_params(index_t m, index_t n, ElementType type, const Limits& limits);

/// Enqueues x and the upper triangle of R for every system of up to normal_tile_most_columns
/// columns.
void enqueue_normal_tiles(const SystemJob& job, Launcher& launch);

}  // namespace qrtool
