// SPDX-License-Identifier: Apache-2.0
// local_heap.cpp: follows the list of free places. The layout is that of the HDF5 File Format
// Specification 3.0, section III.D.
#include "io/hdf5/structure/local_heap.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/hdf5/structure/superblock.hpp"

namespace qrtool::hdf5 {
namespace {

constexpr std::string_view local_heap_signature("HEAP\0\0\0\0",
                                                8);  // with the version and what is reserved
constexpr std::uint64_t end_of_list = 1;

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
  return begins_with(bytes, local_heap_signature);
}

std::string problem_of_local_heap(std::span<const std::byte> begin, const ReadBytes& read) {
  const std::optional<Widths> widths = read_widths(read);
  if (!widths) return "its superblock cannot be read";
  const auto [address, length] = *widths;
  if (begin.size() < local_heap_signature.size() + 2 * length + address)
    return "a local heap is cut off";
  begin = begin.subspan(local_heap_signature.size());
  const std::uint64_t size = number_at(begin.first(length));
  const std::uint64_t data = number_at(begin.subspan(2 * length, address));
  std::uint64_t place = number_at(begin.subspan(length, length));
  // Each free place states the next one and its own size. If the list leads back to itself, one of
  // the kept places comes again. Places are kept one, two, four, eight, ... steps after the last
  // kept one (Brent's method), so that the loop is found however long it is.
  const std::uint64_t stated = 2 * length;
  std::uint64_t kept = end_of_list, steps = 0, next_to_keep = 1;
  while (place != end_of_list) {
    if (place >= size || size - place < stated || place == kept) {
      return fmt::format("a local heap of {} bytes has a free place at byte {}", size, place);
    }
    if (++steps == next_to_keep) {
      kept = place;
      next_to_keep *= 2;
    }
    std::array<std::byte, 16> bytes{};
    const auto numbers = std::span(bytes).first(stated);
    if (!read(data + place, numbers)) return "a local heap cannot be read";
    const std::uint64_t free_bytes = number_at(numbers.subspan(length));
    if (free_bytes > size - place) {
      return fmt::format("a local heap of {} bytes has {} free bytes at byte {}", size, free_bytes,
                         place);
    }
    place = number_at(numbers.first(length));
  }
  return {};
}

}  // namespace qrtool::hdf5
