// SPDX-License-Identifier: Apache-2.0
// local_heap.hpp: checks the local heap of a group, which holds the names of its members in files
// of the older format. HDF5 1.10 follows the heap's list of free places beyond the end of the heap,
// into memory that holds anything, and round and round where the list leads back to itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "io/hdf5/structure/superblock.hpp"

namespace qrtool::hdf5 {

/// Reads bytes of the file from an address, counted from the start of HDF5's part of the file.
/// Returns false if they cannot be read.
using ReadBytes = std::function<bool(std::uint64_t address, std::span<std::byte> to)>;

/// Returns the widths that the superblock states, or nothing if it cannot be read.
std::optional<Widths> read_widths(const ReadBytes& read);

/// Returns a number that is stored in little-endian order.
std::uint64_t number_at(std::span<const std::byte> bytes);

/// Whether these bytes begin like a local heap.
bool is_local_heap(std::span<const std::byte> bytes);

/// Returns the reason why the heap that begins with these bytes is damaged, or an empty text.
std::string problem_of_local_heap(std::span<const std::byte> begin, const ReadBytes& read);

}  // namespace qrtool::hdf5
