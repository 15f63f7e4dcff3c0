// SPDX-License-Identifier: Apache-2.0
// numbers.hpp: converts stored numbers to float32 or float64.
#pragma once

#include <cstddef>

#include "core/batch.hpp"
#include "io/npy/header.hpp"

namespace qrtool::npy {

/// Whether the stored bytes are numbers of T already.
template <class T>
bool is_native(const NumberType& type) {
  return type.kind == Kind::floating && type.bytes == sizeof(T) && !type.is_swapped;
}

/// out_i := number i of `stored`, rounded to T. Returns the first i whose number is finite and too
/// large for T, or `count`. `stored` needs no alignment, and must not overlap with `out`.
template <class T>
index_t convert(const NumberType& type, const std::byte* stored, index_t count, T* out);

/// Whether these are integers of 64 bits.
bool is_long(const NumberType& type);
/// Whether float64 does not hold one of these integers of 64 bits.
bool has_rounded(const NumberType& type, const std::byte* stored, index_t count);
/// out_i := number i minus the float64 nearest to it, which is 0 except for large integers.
template <class T>
void convert_remainders(const NumberType& type, const std::byte* stored, index_t count, T* out);

}  // namespace qrtool::npy
