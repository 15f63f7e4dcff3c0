// SPDX-License-Identifier: Apache-2.0
// textbook.hpp: a baseline, a work-item for each column (textbook.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant textbook_variant();

}  // namespace qrtool
