// SPDX-License-Identifier: Apache-2.0
// normal_group.hpp: x and R of many right sides whose A'WA and A'Wb are there (pairs.hpp), by a
// group of warps for each.
#pragma once

#include <string>

#include "gpu/solve/parts/system_body.hpp"

namespace qrtool {

/// Why a device does not take them; empty where it does.
std::string weighed_group_objection(const SolveProblem& problem, const Limits& limits);
SystemStep weighed_group_step(const SolveProblem& problem, const Limits& limits);

}  // namespace qrtool
