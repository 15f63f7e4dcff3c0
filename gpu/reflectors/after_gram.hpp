// SPDX-License-Identifier: Apache-2.0
// after_gram.hpp: the reflectors for matrices that the guard of a Gram route refuses.
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// The first of small, blocked, tall and large that takes a real problem: its bytes and rows decide
/// about small, its rows about blocked, and its columns about tall. Complex ones go to `complex`.
GpuVariant reflectors_after_gram(const Problem& problem);

}  // namespace qrtool
