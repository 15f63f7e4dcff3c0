// SPDX-License-Identifier: Apache-2.0
// build_ahead.hpp: builds the programs of a problem without its data, so that the driver's cache
// has them when a run comes.
#pragma once

#include "core/plan/plan.hpp"
#include "core/solve/packing.hpp"
#include "gpu/pipeline/opencl_backend.hpp"

namespace qrtool {

/// Builds the programs of factor_sources(). The device gets buffers for one matrix, but no work.
/// `plan` is one of the backend. Errors: DeviceError.
void build_factor_programs(OpenclBackend& backend, const Plan& plan);

/// Builds the programs that solve and check systems with one right side each, but for those that
/// make R. Errors: DeviceError.
void build_solve_programs(OpenclBackend& backend, const SolveProblem& systems);

}  // namespace qrtool
