// SPDX-License-Identifier: Apache-2.0
// tile_params.hpp: the defines and the local memory of a kernel that holds a matrix in the blocks
// of gram.cl.
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// A float64 problem takes two passes.
Params gram_params(const Problem& problem, const Limits& limits);
std::size_t gram_local_bytes(const Problem& problem, const Limits& limits);

}  // namespace qrtool
