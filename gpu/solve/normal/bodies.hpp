// SPDX-License-Identifier: Apache-2.0
// bodies.hpp: the list of bodies by normal equations, and the choice of one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/solve/parts/system_body.hpp"

namespace qrtool {

/// x and the upper triangle of R for one right side of each matrix by normal equations in float64.
std::span<const SystemBody> normal_bodies();

/// What a body of normal_bodies() is called in a table of costs (core/cost.hpp), whose samples of
/// it are times of x, measurements and checks left out: "solve/normal".
std::string name_in_costs(const SystemBody& body);
/// The bodies of normal_bodies() that fit.
std::vector<const SystemBody*> fitting_normal_bodies(const SolveProblem& problem,
                                                     const Limits& limits);
/// The body that solves systems with `sides` right sides each by normal equations: the one that
/// takes many of them in the least time by the device's table of costs, or the one called `forced`.
/// Null where normal equations do not take them. It does not depend on the number of systems.
const SystemBody* chosen_normal_body(const SolveProblem& problem, index_t sides,
                                     const Limits& limits, std::string_view forced = {});

/// Whether normal equations are tried first for systems with `sides` right sides on a device with
/// these limits. It does not depend on the number of systems.
bool takes_normal_equations(const SolveProblem& problem, index_t sides, const Limits& limits);

// Each in the .cpp file of its name.
SystemBody normal_lane_body();
SystemBody normal_tile_body();
SystemBody normal_group_body();
SystemBody normal_body();
SystemBody tall_normal_body();

}  // namespace qrtool
