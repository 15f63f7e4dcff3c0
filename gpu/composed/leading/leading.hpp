// SPDX-License-Identifier: Apache-2.0
// leading.hpp: wide matrices by their leading square block (leading.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant leading_variant();

}  // namespace qrtool
