// SPDX-License-Identifier: Apache-2.0
// gram_group.hpp: batches of matrices by A'A, a group of warps for each (gram_group.cl,
// group_passes.cl).
#pragma once

#include <cstddef>

#include "gpu/model/further.hpp"

namespace qrtool {

GpuVariant gram_group_variant();
/// Further passes, a group for each matrix that a guard refuses.
FurtherRoute group_passes();

// Sizes, defines and the guard that both share.

/// The warps of a group.
index_t group_warps(const Problem& problem);
/// The largest useful number of groups, each with a slot.
index_t most_groups(const Problem& problem);

/// SHARED_ROOM, and an entry per warp and per block.
std::size_t group_local_bytes(const Problem& problem, const Limits& limits);
/// So many factors and the inverses of pivots.
std::size_t group_slot_bytes(const Problem& problem, int factors);

Params group_params(const Problem& problem, const Limits& limits);

/// The largest ||Q'Q - I||_F^2, as computed, with which a stored Q is good: the bar less the error
/// of the sums, at most m u ||Q'Q||_F. Of complex matrices it is the norm of the real form, sqrt(2)
/// times their own. In float64 that is more than the bar, and h u sqrt(n) is taken with the
/// hypothesis of gpu/gram/steps/departure.clh.
double most_measured_departure(const Problem& problem);

}  // namespace qrtool
