// SPDX-License-Identifier: Apache-2.0
// complex.hpp: complex matrices, a group for each (complex.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant complex_variant();
/// The same for the few matrices that a guard refuses, which may be larger.
GpuVariant refused_complex_variant();

}  // namespace qrtool
