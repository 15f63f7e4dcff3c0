// SPDX-License-Identifier: Apache-2.0
// gram_twice.hpp: matrices of any size by passes over A'A in float64 (gram_twice.cl).
#pragma once

#include "gpu/model/further.hpp"

namespace qrtool {

GpuVariant gram_twice_variant();
/// Complex matrices, in further_passes.cpp.
GpuVariant gram_passes_variant();
/// More passes for what the guard of any variant by Gram matrices refuses (further_passes.cl).
FurtherRoute further_passes();

}  // namespace qrtool
