// SPDX-License-Identifier: Apache-2.0
// vector.hpp: packs of matrices in vectors, for CPU devices (vector.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant vector_variant();

}  // namespace qrtool
