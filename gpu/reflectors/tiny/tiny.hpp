// SPDX-License-Identifier: Apache-2.0
// tiny.hpp: matrices in the registers of a work-item (tiny.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant tiny_variant();

}  // namespace qrtool
