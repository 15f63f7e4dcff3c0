// SPDX-License-Identifier: Apache-2.0
// normal_group.hpp: normal equations in float64 by a group of warps for each system, on devices
// that multiply blocks of float64. Host half of normal_group.cl.
#pragma once

#include "gpu/host/launcher.hpp"
#include "gpu/solve/system_buffers.hpp"

namespace qrtool {

/// The defines of normal_group.cl for n columns.
Params normal_group_params(index_t n, ElementType type, const Limits& limits);

/// Enqueues x and the upper triangle of R for every system of up to normal_most_columns columns.
void enqueue_normal_groups(const SystemJob& job, Launcher& launch);

}  // namespace qrtool
