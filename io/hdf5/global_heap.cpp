// SPDX-License-Identifier: Apache-2.0
// global_heap.cpp: walks from object to object. The layout is that of the HDF5 File Format
// Specification 3.0, section III.E.
#include "io/hdf5/global_heap.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/hdf5/superblock.hpp"

namespace qrtool::hdf5 {
namespace {

constexpr std::string_view signature("GCOL\1\0\0\0", 8);  // with the version and what is reserved

/// Sizes are multiples of 8, as objects begin at multiples of 8.
std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

bool is_global_heap(std::span<const std::byte> bytes) {
  return bytes.size() >= signature.size() &&
         std::equal(signature.begin(), signature.end(), bytes.begin(),
                    [](char c, std::byte b) { return static_cast<std::byte>(c) == b; });
}

std::string problem_of_global_heap(std::span<const std::byte> heap, const ReadBytes& read) {
  const std::optional<Widths> widths = read_widths(read);
  if (!widths) return "its superblock cannot be read";
  const std::size_t length = widths->length;
  const std::uint64_t header = padded(signature.size() + length);
  if (heap.size() < header) return "a global heap is cut off";
  const std::uint64_t size = number_at(heap.subspan(signature.size(), length));
  if (size < header) return fmt::format("a global heap of {} bytes", size);
  if (size > heap.size()) return {};
  // Each object states its number, 0 for free space, and its size, which for free space alone
  // includes what stands before it.
  constexpr std::size_t before_size = 8;
  const std::uint64_t least = padded(before_size + length);
  for (std::uint64_t at = header; at + least <= size;) {
    const auto object = heap.subspan(at);
    const bool is_free = number_at(object.first(2)) == 0;
    const std::uint64_t stated = number_at(object.subspan(before_size, length));
    const std::uint64_t needed = is_free || stated > size ? stated : least + padded(stated);
    if (needed < least || needed > size - at) {
      return fmt::format("a global heap of {} bytes has an object of {} at byte {}", size, stated,
                         at);
    }
    at += needed;
  }
  return {};
}

}  // namespace qrtool::hdf5
