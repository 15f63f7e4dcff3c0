// SPDX-License-Identifier: Apache-2.0
// tall_systems.hpp: systems with so many rows that several work-groups share each. Host half of
// tall_systems.cl.
#pragma once

#include "gpu/solve/parts/system_body.hpp"

namespace qrtool {

/// Whether several work-groups share the rows of a system.
bool is_tall_system(index_t m);
/// The slabs of the rows of a system with n columns.
SlabShape system_slabs(index_t m, index_t n);
/// The defines of tall_systems.cl for n columns.
Params tall_system_params(index_t n, ElementType type, const Limits& limits);

/// The steps that correct x, all but the first, which has x = 0.
std::vector<SystemStep> tall_steps_after_first(const SolveProblem& problem, const Limits& limits);

}  // namespace qrtool
