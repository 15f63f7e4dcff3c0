// SPDX-License-Identifier: Apache-2.0
// instruction_sets.hpp: says which of the compiled kernels this processor can run.
#pragma once

#include <cstddef>

namespace qrtool {

/// The number of instruction sets that the processor lacks, counted in the order AVX-512, AVX2,
/// plain x86-64.
std::size_t unsupported_x86_sets();

}  // namespace qrtool
