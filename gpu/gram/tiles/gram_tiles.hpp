// SPDX-License-Identifier: Apache-2.0
// gram_tiles.hpp: large matrices in float32 by A'A in tiles (gram_tiles.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant gram_tiles_variant();

}  // namespace qrtool
