// SPDX-License-Identifier: Apache-2.0
// fields.hpp: names and numbers as fields of a table that pandas and R read as it is.
#pragma once

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

namespace qrtool {

/// Returns text as a field, in quotes if a reader might read it as something else.
inline std::string field_of(std::string_view text, char separator) {
  const bool is_plain = !text.empty() && text.front() != ' ' && text.back() != ' ' &&
                        text.find_first_of("\"'#%\t,; ") == std::string_view::npos &&
                        text.find(separator) == std::string_view::npos;
  if (is_plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

/// Returns the shortest text that reads back to the same bits. NaN and infinities are spelled as R
/// and pandas spell them.
template <class T>
std::string number_of(T x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "Inf" : "-Inf";
  return fmt::format(FMT_COMPILE("{}"), x);
}

}  // namespace qrtool
