// SPDX-License-Identifier: Apache-2.0
// join.hpp: joins a list to one text, and splits it again. (With fmt::join, GCC 12 warns about
// fmt's own code.)
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace qrtool {

template <class Range>
std::string join(const Range& range, std::string_view separator) {
  std::string out;
  for (const auto& item : range) {
    if (&item != &*std::begin(range)) out += separator;
    out += fmt::format("{}", item);
  }
  return out;
}

/// Returns the parts of a text between separators: one more than there are separators.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace qrtool
