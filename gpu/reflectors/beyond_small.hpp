// SPDX-License-Identifier: Apache-2.0
// beyond_small.hpp: the reflectors for problems that `small` does not take.
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// The first of blocked, tall and large that takes the rows and columns of a problem that `small`
/// does not factor again: its rows decide about blocked, and its columns about tall.
GpuVariant reflectors_beyond_small(const Problem& problem);

}  // namespace qrtool
