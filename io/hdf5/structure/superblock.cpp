// SPDX-License-Identifier: Apache-2.0
// superblock.cpp: reads the widths of numbers. The layout is that of the HDF5 File Format
// Specification 3.0, section II.A.
#include "io/hdf5/structure/superblock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace qrtool::hdf5 {
namespace {

constexpr std::string_view hdf5_signature("\x89HDF\r\n\x1a\n", 8);

bool is_width(std::size_t bytes) { return bytes == 2 || bytes == 4 || bytes == 8; }

Widths read_widths(const SuperblockStart& start) {
  constexpr std::size_t version_at = 8, old_widths_at = 13, new_widths_at = 9;
  const std::size_t at =
      std::to_integer<int>(start[version_at]) < 2 ? old_widths_at : new_widths_at;
  return {.address = std::to_integer<std::size_t>(start[at]),
          .length = std::to_integer<std::size_t>(start[at + 1])};
}

SuperblockStart start_of(std::span<const std::byte> bytes) {
  SuperblockStart start{};
  std::copy_n(bytes.begin(), start.size(), start.begin());
  return start;
}

}  // namespace

std::optional<Widths> stated_widths(const SuperblockStart& start) {
  const Widths widths = read_widths(start);
  return is_width(widths.address) && is_width(widths.length) ? std::optional(widths) : std::nullopt;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view signature) {
  return bytes.size() >= signature.size() &&
         std::equal(signature.begin(), signature.end(), bytes.begin(),
                    [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
}

bool is_superblock(std::span<const std::byte> bytes) {
  return bytes.size() >= SuperblockStart{}.size() && begins_with(bytes, hdf5_signature);
}

std::string problem_of_superblock(std::span<const std::byte> begin) {
  const SuperblockStart start = start_of(begin);
  if (stated_widths(start)) return {};
  const Widths widths = read_widths(start);
  return fmt::format("its addresses have {} bytes and its lengths {}, not 2, 4 or 8",
                     widths.address, widths.length);
}

}  // namespace qrtool::hdf5
