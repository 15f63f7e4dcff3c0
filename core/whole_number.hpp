// SPDX-License-Identifier: Apache-2.0
// whole_number.hpp: reads a whole number from text, whatever the locale is.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace qrtool {

/// Returns the number that all of `text` is, in decimal digits without a sign; nothing for any
/// other text, and for numbers beyond 2^63 - 1.
inline std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const char* const all = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), all, value);
  if (error != std::errc() || end != all || text.front() == '-') return std::nullopt;
  return value;
}

}  // namespace qrtool
