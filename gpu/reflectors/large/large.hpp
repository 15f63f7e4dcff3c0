// SPDX-License-Identifier: Apache-2.0
// large.hpp: single matrices of any size by panels (large.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant large_variant();

}  // namespace qrtool
