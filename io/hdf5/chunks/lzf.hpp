// SPDX-License-Identifier: Apache-2.0
// lzf.hpp: decompresses what h5py's filter "lzf" has made, which the HDF5 library does not have.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "io/hdf5/chunks/filters.hpp"

namespace qrtool::hdf5 {

/// Decompresses `from` to `to`. Returns the number of bytes, or nothing if `from` is damaged or
/// `to` is too small.
std::optional<std::size_t> decompress_lzf(std::span<const std::byte> from, Bytes& to);

}  // namespace qrtool::hdf5
