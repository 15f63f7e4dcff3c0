// SPDX-License-Identifier: Apache-2.0
// system_params.hpp: the defines of the kernels for systems, and which systems they take.
#pragma once

#include <string>

#include "core/solve/engines/system_device.hpp"
#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// The counters of a work-group whose teams take steps together (OPEN_COUNTERS of open_teams.clh).
inline constexpr std::size_t open_counters = 3;

/// How the kernels of systems.cl are built for n columns: the defines, as Params.
Params system_params(index_t n, ElementType type, const Limits& limits);
/// The bytes of local memory that a work-group takes.
std::size_t system_local_bytes(index_t n, ElementType type, const Params& params);
/// The work-items of a work-group.
int system_group_size(const Params& params);
/// Why the kernels do not take such systems on this device; empty where they do.
std::string system_objection(const SolveProblem& problem, const Limits& limits);

}  // namespace qrtool
