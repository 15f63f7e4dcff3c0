// SPDX-License-Identifier: Apache-2.0
// small.hpp: matrices in the registers of a sub-group or group (small.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

GpuVariant small_variant();
/// `small` for the flagged matrices of others: few, so that more lanes take each.
GpuVariant flagged_small_variant();

}  // namespace qrtool
