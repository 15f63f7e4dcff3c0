// SPDX-License-Identifier: Apache-2.0
// system_lanes.hpp: the measures of R and the check for systems of few columns, a work-item for
// each. Device half: system_lanes.cl.
#pragma once

#include "gpu/gpu_variant.hpp"
#include "gpu/host/launcher.hpp"
#include "gpu/solve/system_buffers.hpp"

namespace qrtool {

/// How the kernels are built for n columns, as Params.
Params system_lane_params(index_t n);
/// Whether a work-item measures R, and whether it checks a solution.
bool measures_by_lanes(index_t n);
bool checks_by_lanes(index_t m, index_t n);
/// Enqueue one of the kernels.
void enqueue_lane_measures(const SystemJob& job, Launcher& launch);
void enqueue_lane_check(const SystemJob& job, Launcher& launch);

}  // namespace qrtool
