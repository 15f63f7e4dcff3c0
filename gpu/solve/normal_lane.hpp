// SPDX-License-Identifier: Apache-2.0
// normal_lane.hpp: normal equations in float64 by one work-item for each system of a few columns.
// Host half of normal_lane.cl.
#pragma once

#include "gpu/host/launcher.hpp"
#include "gpu/solve/system_buffers.hpp"

namespace qrtool {

/// The defines of normal_lane.cl for m x n systems.
Params normal_lane_params(index_t m, index_t n, ElementType type);

/// Enqueues x and R for every system of up to normal_lane_most_columns columns.
void enqueue_normal_lanes(const SystemJob& job, Launcher& launch);

}  // namespace qrtool
