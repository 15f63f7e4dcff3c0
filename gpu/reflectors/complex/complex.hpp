// SPDX-License-Identifier: Apache-2.0
// complex.hpp: complex matrices, a group for each (complex.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant complex_variant();

}  // namespace qrtool
