// SPDX-License-Identifier: Apache-2.0
// gram_group.hpp: batches of matrices by A'A, a group of warps for each (gram_group.cl).
#pragma once

#include "gpu/model/further.hpp"

namespace qrtool {

GpuVariant gram_group_variant();
/// Further passes, a group for each matrix that a guard refuses.
FurtherRoute group_passes();

}  // namespace qrtool
