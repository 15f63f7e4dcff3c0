// SPDX-License-Identifier: Apache-2.0
// superblock.hpp: the first bytes of HDF5's part of a file, which say how long the numbers in it
// are. HDF5 1.10 also takes files whose lengths have 16 or 32 bytes; it reads none of these
// lengths, and uses what was in its memory as dimensions and sizes.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace qrtool::hdf5 {

/// How many bytes addresses and lengths have in a file.
struct Widths {
  std::size_t address = 0, length = 0;
};

/// The first bytes of a superblock, which state these widths.
using SuperblockStart = std::array<std::byte, 16>;

/// Returns the widths, or nothing if they are not 2, 4 or 8.
std::optional<Widths> stated_widths(const SuperblockStart& start);

/// Whether bytes of the file begin with the signature of one of its structures.
bool begins_with(std::span<const std::byte> bytes, std::string_view signature);

/// Whether these bytes hold the start of a superblock.
bool is_superblock(std::span<const std::byte> bytes);

/// Returns the reason why HDF5 cannot work with this superblock, or an empty text.
std::string problem_of_superblock(std::span<const std::byte> begin);

}  // namespace qrtool::hdf5
