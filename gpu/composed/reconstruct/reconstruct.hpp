// SPDX-License-Identifier: Apache-2.0
// reconstruct.hpp: V, tau and LAPACK's signs from Q and R of another variant (reconstruct.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant reconstruct_variant();

}  // namespace qrtool
