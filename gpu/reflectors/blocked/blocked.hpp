// SPDX-License-Identifier: Apache-2.0
// blocked.hpp: matrices by panels, one group for each (blocked.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant blocked_variant();

}  // namespace qrtool
