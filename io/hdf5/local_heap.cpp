// SPDX-License-Identifier: Apache-2.0
// local_heap.cpp: follows the list of free places. The layout is that of the HDF5 File Format
// Specification 3.0, section III.D.
#include "io/hdf5/local_heap.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/hdf5/superblock.hpp"

namespace qrtool::hdf5 {
namespace {

constexpr std::string_view signature("HEAP\0\0\0\0", 8);  // with the version and what is reserved
constexpr std::uint64_t end_of_list = 1;

/// A number of the file, at `address`.
std::optional<std::uint64_t> read_number(const ReadBytes& read, std::uint64_t address,
                                         std::size_t width) {
  std::array<std::byte, 8> bytes{};
  const std::span<std::byte> to(bytes.data(), width);
  return read(address, to) ? std::optional(number_at(to)) : std::nullopt;
}

}  // namespace

std::optional<Widths> read_widths(const ReadBytes& read) {
  SuperblockStart superblock{};
  return read(0, superblock) ? stated_widths(superblock) : std::nullopt;
}

std::uint64_t number_at(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    number = number << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return number;
}

bool is_local_heap(std::span<const std::byte> bytes) {
  return bytes.size() >= signature.size() &&
         std::equal(signature.begin(), signature.end(), bytes.begin(),
                    [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
}

std::string problem_of_local_heap(std::span<const std::byte> begin, const ReadBytes& read) {
  const std::optional<Widths> widths = read_widths(read);
  if (!widths) return "its superblock cannot be read";
  const auto [address, length] = *widths;
  if (begin.size() < signature.size() + 2 * length + address) return "a local heap is cut off";
  begin = begin.subspan(signature.size());
  const std::uint64_t size = number_at(begin.first(length));
  const std::uint64_t data = number_at(begin.subspan(2 * length, address));
  std::uint64_t place = number_at(begin.subspan(length, length));
  // Each free place states the next one and its own size.
  const std::uint64_t stated = 2 * length, most_places = size / stated;
  for (std::uint64_t places = 0; place != end_of_list; ++places) {
    if (places >= most_places || place >= size || size - place < stated) {
      return fmt::format("a local heap of {} bytes has a free place at byte {}", size, place);
    }
    const auto next = read_number(read, data + place, length);
    const auto bytes = read_number(read, data + place + length, length);
    if (!next || !bytes) return "a local heap cannot be read";
    if (*bytes > size - place) {
      return fmt::format("a local heap of {} bytes has {} free bytes at byte {}", size, *bytes,
                         place);
    }
    place = *next;
  }
  return {};
}

}  // namespace qrtool::hdf5
