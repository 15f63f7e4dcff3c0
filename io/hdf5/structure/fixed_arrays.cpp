// SPDX-License-Identifier: Apache-2.0
// fixed_arrays.cpp: the layout is that of the HDF5 File Format Specification 3.0, section VII.C.
#include "io/hdf5/structure/fixed_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace qrtool::hdf5 {
namespace {

constexpr std::string_view signature("FAHD\0", 5);  // with the version
/// Layout of the head: the number of entries follows `before` bytes, which are the signature, the
/// kind of entry, the size of an entry at `size_at`, and the binary logarithm of the entries of a
/// page. A number has at most `widest` bytes.
constexpr std::size_t before = signature.size() + 3, size_at = signature.size() + 1, widest = 8;

/// Returns the recorded numbers of entries, by descriptor.
std::map<int, std::set<std::uint64_t>>& noted() {
  static std::map<int, std::set<std::uint64_t>> entries;
  return entries;
}

}  // namespace

bool is_fixed_array(std::span<const std::byte> bytes) {
  return bytes.size() >= before + widest && begins_with(bytes, signature);
}

std::string problem_of_fixed_array(std::span<const std::byte> head, std::uint64_t file_bytes,
                                   const ReadBytes& read) {
  const std::optional<Widths> widths = read_widths(read);
  if (!widths) return "its superblock cannot be read";
  const std::uint64_t entries = number_at(head.subspan(before, widths->length));
  const auto entry_bytes =
      std::max(std::to_integer<std::uint64_t>(head[size_at]), std::uint64_t{1});
  if (entries <= file_bytes / entry_bytes) return {};
  return fmt::format("an index of {} chunks in a file of {} bytes", entries, file_bytes);
}

void note_fixed_array(int descriptor, std::span<const std::byte> head) {
  // The width of the number is stated elsewhere in the file, so its value in each width is
  // recorded.
  for (const std::size_t width : {2, 4, 8})
    noted()[descriptor].insert(number_at(head.subspan(before, width)));
}

void forget_fixed_arrays(int descriptor) noexcept { noted().erase(descriptor); }

bool has_fixed_array(int descriptor, std::uint64_t entries) {
  const auto found = noted().find(descriptor);
  return found != noted().end() && found->second.contains(entries);
}

}  // namespace qrtool::hdf5
