// SPDX-License-Identifier: Apache-2.0
// fixed_arrays.cpp: the layout is that of the HDF5 File Format Specification 3.0, section VII.C.
#include "io/hdf5/fixed_arrays.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "io/hdf5/local_heap.hpp"

namespace qrtool::hdf5 {
namespace {

/// The numbers that were noted, by descriptor.
std::map<int, std::set<std::uint64_t>>& noted() {
  static std::map<int, std::set<std::uint64_t>> entries;
  return entries;
}

}  // namespace

void note_fixed_array(int descriptor, std::span<const std::byte> bytes) {
  constexpr std::string_view signature("FAHD\0", 5);  // with the version
  // Before the number: the kind of the entries, their size, and the bits of a page. The file says
  // elsewhere how wide the number is; what stands there in each width is noted.
  constexpr std::size_t before = signature.size() + 3, widest = 8;
  if (bytes.size() < before + widest ||
      !std::equal(signature.begin(), signature.end(), bytes.begin(),
                  [](char c, std::byte b) { return static_cast<std::byte>(c) == b; }))
    return;
  for (const std::size_t width : {2, 4, 8})
    noted()[descriptor].insert(number_at(bytes.subspan(before, width)));
}

void forget_fixed_arrays(int descriptor) noexcept { noted().erase(descriptor); }

bool has_fixed_array(int descriptor, std::uint64_t entries) {
  const auto found = noted().find(descriptor);
  return found != noted().end() && found->second.contains(entries);
}

}  // namespace qrtool::hdf5
