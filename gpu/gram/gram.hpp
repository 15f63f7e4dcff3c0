// SPDX-License-Identifier: Apache-2.0
// gram.hpp: batches of matrices by A'A, a warp for each (gram.cl).
#pragma once

#include "gpu/model/further.hpp"

namespace qrtool {

GpuVariant gram_variant();
/// Further passes, a warp for each matrix that a guard refuses.
FurtherRoute warp_passes();

}  // namespace qrtool
