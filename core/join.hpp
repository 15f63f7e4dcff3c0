// SPDX-License-Identifier: Apache-2.0
// join.hpp: joins a list to one text. (With fmt::join, GCC 12 warns about fmt's own code.)
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

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

}  // namespace qrtool
