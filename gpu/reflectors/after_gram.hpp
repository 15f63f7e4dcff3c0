// SPDX-License-Identifier: Apache-2.0
// after_gram.hpp: the reflectors for real matrices that the guard of a Gram route refuses.
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// The first of small, blocked, tall and large that takes a problem: its bytes and rows decide
/// about small, its rows about blocked, and its columns about tall.
GpuVariant reflectors_after_gram(const Problem& problem);

}  // namespace qrtool
