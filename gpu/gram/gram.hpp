// SPDX-License-Identifier: Apache-2.0
// gram.hpp: batches of matrices by A'A, a warp for each (gram.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant gram_variant();

}  // namespace qrtool
