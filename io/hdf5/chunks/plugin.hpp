// SPDX-License-Identifier: Apache-2.0
// plugin.hpp: finds the plugins of HDF5 and calls their filters. HDF5 does not tell how many bytes
// a filter has made of a chunk; the filter itself does.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <optional>
#include <span>

#include "io/hdf5/chunks/filters.hpp"

namespace qrtool::hdf5 {

/// Returns the filter of a plugin, loaded from the folders that HDF5 searches, or null.
const H5Z_class2_t* find_plugin(H5Z_filter_t filter);

/// Undoes a plugin's filter. Returns the bytes that it has written to `to`, or nothing if it
/// reports an error. Only one thread at a time is in a plugin.
std::optional<std::size_t> undo_plugin(H5Z_filter_t filter, std::span<const unsigned> parameters,
                                       std::span<const std::byte> from, Bytes& to);

}  // namespace qrtool::hdf5
