// SPDX-License-Identifier: Apache-2.0
// choice.cpp: lists names, and finds the one that was meant.
#include "io/read/choice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {

std::string list_text(const std::vector<std::string>& items) {
  constexpr std::size_t most_listed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), most_listed); ++i)
    text += (i > 0 ? ", " : "") + items[i];
  if (items.size() > most_listed) text += fmt::format(" and {} more", items.size() - most_listed);
  return text;
}

void throw_unknown(const std::string& file, std::string_view what, const std::string& name,
                   const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& each : names) shown.push_back(escape(each));
  const std::vector<std::string_view> candidates(shown.begin(), shown.end());
  const std::string_view near = nearest(escape(name), candidates);
  throw InputError(fmt::format("{}: there is no {} {}{}", file, what, escape(name),
                               near.empty() ? "" : fmt::format("; did you mean {}?", near)),
                   near.empty() && !shown.empty() ? "choose one of " + list_text(shown) : "");
}

}  // namespace qrtool
