// SPDX-License-Identifier: Apache-2.0
// fletcher32.hpp: the checksum of HDF5's chunks, at the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qrtool {

/// Fletcher's checksum as HDF5's filter computes it. Of N big-endian 16-bit words w_i (a last odd
/// byte is the upper half of one)
///
///     s1 = sum w_i,   s2 = sum (N - i) w_i,   modulo 65535 but 0 only where all words are 0,
///
/// it is s2 * 2^16 + s1. Source: H5_checksum_fletcher32 in HDF5; J. Fletcher, IEEE Trans. Comm. 30
/// (1982).
std::uint32_t fletcher32(const std::byte* data, std::size_t bytes);

/// Whether `stored` is that checksum, or the one that HDF5 before 1.6.3 wrote on little-endian
/// machines, which has the bytes of both halves swapped.
bool matches_fletcher32(std::uint32_t stored, const std::byte* data, std::size_t bytes);

}  // namespace qrtool
