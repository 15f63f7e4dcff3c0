// SPDX-License-Identifier: Apache-2.0
// instruction_sets.hpp: says which of the compiled kernels this processor can run.
#pragma once

#include <cstddef>

namespace qrtool {

/// The number of instruction sets that the processor lacks, counted in the order AVX-512, AVX2,
/// plain x86-64.
std::size_t unsupported_x86_sets();

/// Whether this process may use the tile registers of AMX with bfloat16, beside AVX-512. The first
/// call asks the system for them.
bool has_tile_registers();

}  // namespace qrtool
