// SPDX-License-Identifier: Apache-2.0
// lines.cpp: finds comments, separators and fields.
#include "io/csv/parser/lines.hpp"

#include <algorithm>
#include <cstring>

namespace qrtool {
namespace {

constexpr std::string_view errors_of_excel[] = {"#N/A",   "#DIV/0!", "#VALUE!", "#REF!",
                                                "#NAME?", "#NUM!",   "#NULL!"};

bool begins_with_error_of_excel(std::string_view text) {
  return std::any_of(std::begin(errors_of_excel), std::end(errors_of_excel),
                     [&](std::string_view error) { return text.starts_with(error); });
}

bool is_comment_sign(std::string_view text) {
  return text.starts_with('%') || (text.starts_with('#') && !begins_with_error_of_excel(text));
}

/// Returns the position at which a comment begins behind `first`, the position of the first
/// character that is no blank.
std::size_t find_comment_behind(std::string_view line, std::size_t first) {
  // Few lines have either character, and memchr is the fastest way to see that.
  const bool may_have = std::memchr(line.data(), '#', line.size()) != nullptr ||
                        std::memchr(line.data(), '%', line.size()) != nullptr;
  if (!may_have) return std::string_view::npos;
  bool in_quotes = false;
  for (std::size_t i = first + 1; i < line.size(); ++i) {
    if (line[i - 1] == '"') in_quotes = !in_quotes;
    const bool is_after_blank = blanks.find(line[i - 1]) != std::string_view::npos;
    if (in_quotes || !is_after_blank || !is_comment_sign(line.substr(i))) continue;
    if (line.find_first_not_of(blanks, i + 1) != std::string_view::npos || line[i] == '#') return i;
  }
  return std::string_view::npos;
}

std::size_t find_first(std::string_view line) {
  if (!line.empty() && line[0] != ' ' && line[0] != '\t') return 0;
  return line.find_first_not_of(blanks);
}

}  // namespace

std::size_t find_comment(std::string_view line, Comments comments) {
  const std::size_t first = find_first(line);
  if (first == std::string_view::npos) return first;
  if (is_comment_sign(line.substr(first))) return first;
  return comments == Comments::anywhere ? find_comment_behind(line, first) : std::string_view::npos;
}

LineKind classify(std::string_view& line, Comments comments) {
  const std::size_t first = find_first(line);
  if (first == std::string_view::npos)
    return line.find('\t') != std::string_view::npos ? LineKind::separators : LineKind::blank;
  const char sign = line[first];
  if ((sign == '#' || sign == '%') && is_comment_sign(line.substr(first))) {
    line = line.substr(0, first);
    return LineKind::comment;
  }
  if (comments == Comments::anywhere) line = line.substr(0, find_comment_behind(line, first));
  constexpr std::string_view empty_fields = ",;| \t";
  if (empty_fields.find(line[first]) == std::string_view::npos) return LineKind::data;
  return line.find_first_not_of(empty_fields) == std::string_view::npos ? LineKind::separators
                                                                        : LineKind::data;
}

char find_separator(std::string_view line, Decimal decimal) {
  const std::size_t first = line.find_first_not_of(blanks);
  const std::size_t last = line.find_last_not_of(blanks);
  if (first == std::string_view::npos) return 0;
  line = line.substr(first, last - first + 1);
  bool in_quotes = false;
  std::string found;
  for (const char c : line) {
    if (c == '"') in_quotes = !in_quotes;
    if (!in_quotes && (c == ';' || c == '\t' || c == ',' || c == ' ')) found += c;
  }
  for (const char separator : {';', '\t', ',', ' '}) {
    if (separator == ',' && decimal == Decimal::comma) continue;
    if (found.find(separator) != std::string::npos) return separator;
  }
  return 0;
}

char stated_separator(std::string_view line) {
  constexpr std::string_view begin = "sep=";
  return line.size() == begin.size() + 1 && line.starts_with(begin) ? line.back() : '\0';
}

std::vector<std::string> names_of(std::string_view line, char separator) {
  std::vector<std::string> names(1);
  bool in_quotes = false, has_field = false;
  const auto trim = [](std::string& name) { name.erase(name.find_last_not_of(blanks) + 1); };
  // A tab at the end may be a separator, behind which the last field is empty.
  line = line.substr(0, line.find_last_not_of(separator == '\t' ? " " : blanks) + 1);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool is_blank = blanks.find(c) != std::string_view::npos;
    if (in_quotes && line.substr(i).starts_with("\"\"")) {
      names.back() += '"';  // two quotes within quotes are one of the text
      ++i;
    } else if (c == '"') {
      in_quotes = !in_quotes;
      has_field = true;
    } else if (!in_quotes && (separator == ' ' ? is_blank && has_field : c == separator)) {
      trim(names.back());
      names.emplace_back();
      has_field = false;
    } else if (has_field || !is_blank) {
      names.back() += c;
      has_field = true;
    }
  }
  trim(names.back());
  return names;
}

}  // namespace qrtool
