// SPDX-License-Identifier: Apache-2.0
// measures.hpp: what R says of each matrix: its norm, condition numbers, the norms of the rows of
// R^-1. Device half: measures.cl.
#pragma once

#include <cstddef>

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// How the kernel is built for n columns, as Params.
Params measure_params(index_t n, ElementType type, const Limits& limits);
/// The work-items and the bytes of local memory of a work-group.
int measure_group_size(const Params& params);
std::size_t measure_local_bytes(index_t n, ElementType type, const Params& params);

}  // namespace qrtool
