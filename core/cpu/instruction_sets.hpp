// SPDX-License-Identifier: Apache-2.0
// instruction_sets.hpp: which of the kernels that were compiled this processor can run.
#pragma once

#include <cstddef>

namespace qrtool {

/// How many of AVX-512, AVX2 and plain x86-64, in this order, the processor lacks.
std::size_t unsupported_x86_sets();

}  // namespace qrtool
