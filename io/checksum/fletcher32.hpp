// SPDX-License-Identifier: Apache-2.0
// fletcher32.hpp: computes the checksum of HDF5's chunks, about as fast as memory can be read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qrtool {

/// The bytes that the filter adds to a chunk.
inline constexpr std::size_t fletcher32_bytes = sizeof(std::uint32_t);

/// Fletcher's checksum in the version of HDF5's filter. For N big-endian 16-bit words w_i (a last
/// odd byte is the upper half of a word)
///
///     s1 = sum w_i,   s2 = sum (N - i) w_i,   modulo 65535, in 1 .. 65535 unless all words are 0,
///
/// and the checksum is s2 * 2^16 + s1. Source: H5_checksum_fletcher32 in HDF5; J. Fletcher, IEEE
/// Trans. Comm. 30 (1982).
std::uint32_t fletcher32(const std::byte* data, std::size_t bytes);

/// Whether `stored` is that checksum, or the checksum of HDF5 before 1.6.3 on little-endian
/// machines, which has the bytes of both halves swapped.
bool matches_fletcher32(std::uint32_t stored, const std::byte* data, std::size_t bytes);

}  // namespace qrtool
