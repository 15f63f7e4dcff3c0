// SPDX-License-Identifier: Apache-2.0
// bodies.hpp: the lists of what solves systems with R, measures R, and checks x.
#pragma once

#include <span>
#include <vector>

#include "gpu/solve/parts/system_body.hpp"

namespace qrtool {

/// x from R; what R says of each matrix; the errors and standard errors. In order of preference.
std::span<const SystemBody> solving_bodies();
std::span<const SystemBody> measuring_bodies();
std::span<const SystemBody> checking_bodies();

/// The first of a list that fits; null where none does.
const SystemBody* chosen_body(std::span<const SystemBody> bodies, const SolveProblem& problem,
                              const Limits& limits);

// In system_params.cpp.
SystemBody systems_body();
SystemBody systems_check();
// Each in the .cpp file of its name.
/// `step` after mirror.cl, which it needs where it reads R in global memory.
std::vector<SystemStep> after_mirror(SystemStep step);
SystemBody tall_systems_body();
SystemBody tall_systems_check();
SystemBody measures_body();
SystemBody system_lanes_measures();
SystemBody system_lanes_check();

}  // namespace qrtool
