// SPDX-License-Identifier: Apache-2.0
// tall_systems.hpp: the launches of tall_systems.cl, for systems with so many rows that several
// work-groups share each.
#pragma once

#include "gpu/solve/system_buffers.hpp"

namespace qrtool {

/// Whether several work-groups share the rows of a system.
bool is_tall_system(index_t m);
/// The slabs of the rows of a system.
SlabShape system_slabs(index_t m);
/// The defines of tall_systems.cl for n columns.
Params tall_system_params(index_t n, ElementType type, const Limits& limits);

/// Enqueues the steps from number `first` on, of which 0 is the one where x = 0.
void enqueue_tall_steps(const SystemJob& job, int first, Launcher& launch);
/// Enqueues the errors and standard errors, given the findings.
void enqueue_tall_check(const SystemJob& job, Launcher& launch);

}  // namespace qrtool
