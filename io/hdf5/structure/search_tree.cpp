// SPDX-License-Identifier: Apache-2.0
// search_tree.cpp: the layout is that of the HDF5 File Format Specification 3.0, section III.A.2.
#include "io/hdf5/structure/search_tree.hpp"

#include <fmt/format.h>

#include <string_view>

#include "io/hdf5/structure/local_heap.hpp"

namespace qrtool::hdf5 {
namespace {

constexpr std::string_view signature("BTHD\0", 5);  // with the version
/// The kind of the entries stands between the signature and the bytes of a node.
constexpr std::size_t size_at = signature.size() + 1, size_width = 4;
constexpr std::size_t entry_at = size_at + size_width, entry_width = 2;  // the bytes of an entry
/// The signature, version, kind and checksum of a node.
constexpr std::uint64_t around_entries = 10;

}  // namespace

bool is_search_tree(std::span<const std::byte> bytes) {
  return bytes.size() >= entry_at + entry_width && begins_with(bytes, signature);
}

std::string problem_of_search_tree(std::span<const std::byte> head, std::uint64_t file_bytes) {
  const std::uint64_t node_bytes = number_at(head.subspan(size_at, size_width));
  const std::uint64_t entry_bytes = number_at(head.subspan(entry_at, entry_width));
  if (node_bytes >= around_entries + entry_bytes && node_bytes <= file_bytes) return {};
  return fmt::format("an index whose nodes have {} bytes in a file of {} bytes", node_bytes,
                     file_bytes);
}

}  // namespace qrtool::hdf5
