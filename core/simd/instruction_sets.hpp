// SPDX-License-Identifier: Apache-2.0
// instruction_sets.hpp: says which of the compiled kernels this processor can run.
#pragma once

#include <array>
#include <cstddef>
#include <span>

// The addresses of SCOPE::avx512_NAME, SCOPE::avx2_NAME and SCOPE::generic_NAME, of which those
// remain that this build has.
#if defined(QRTOOL_AVX512_KERNELS)
#define QRTOOL_EACH_SET(scope, name) \
  &scope::avx512_##name, &scope::avx2_##name, &scope::generic_##name
#elif defined(QRTOOL_X86_KERNELS)
#define QRTOOL_EACH_SET(scope, name) &scope::avx2_##name, &scope::generic_##name
#else
#define QRTOOL_EACH_SET(scope, name) &scope::generic_##name
#endif

namespace qrtool {

/// Returns how many of the `compiled` instruction sets the processor lacks. They are the last ones
/// of AVX-512, AVX2, plain x86-64.
std::size_t unsupported_sets(std::size_t compiled);

/// Those of the kernels of QRTOOL_EACH_SET that this processor can run, the widest first.
template <class Kernels, std::size_t sets>
std::span<const Kernels* const> supported(const std::array<const Kernels*, sets>& all) {
  return std::span(all).subspan(unsupported_sets(sets));
}

/// Whether this process may use the tile registers of AMX with bfloat16, beside AVX-512. The first
/// call asks the system for permission.
bool has_tile_registers();

}  // namespace qrtool
