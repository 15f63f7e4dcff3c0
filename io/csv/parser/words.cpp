// SPDX-License-Identifier: Apache-2.0
// words.cpp: looks at the first letter, and into lists of words.
#include "io/csv/parser/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "io/text/number.hpp"

namespace qrtool {
namespace {

/// More texts that programs and people may write for a missing number.
constexpr std::string_view likely_na_texts[] = {"?", "missing", "nil", "n.a.", "n/d", ":"};

constexpr std::string_view likely_na_signs = "-.*_";

}  // namespace

bool is_word(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.empty() ? 0 : text[0]);
  return (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first >= 0xe3 ||
         (first >= 0xc3 && first < 0xe2);
}

bool is_likely_missing(std::string_view text) {
  if (!text.empty() && text.find_first_not_of(likely_na_signs) == std::string_view::npos)
    return true;
  return std::find(std::begin(likely_na_texts), std::end(likely_na_texts), text) !=
         std::end(likely_na_texts);
}

bool is_any_number(std::string_view text) {
  double value = 0;
  return parse_number(text, value) == Parsed::number || parse_microsoft(text, value) ||
         parse_number(text, value, ElementType::float64, Decimal::comma) == Parsed::number ||
         is_complex_text(text);
}

bool is_date(std::string_view text) {
  const auto is_sign = [](char c) { return c == '-' || c == '/' || c == ':'; };
  return begins_like_number(text) && std::count_if(text.begin(), text.end(), is_sign) >= 2 &&
         text.find_first_not_of("0123456789-/:. TZ+") == std::string_view::npos;
}

bool is_truth(std::string_view text) {
  constexpr std::string_view words[] = {"True", "False", "TRUE", "FALSE", "true", "false"};
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

bool are_years(std::vector<std::string> fields) {
  std::erase_if(fields, [](const std::string& field) { return !begins_like_number(field); });
  const auto is_year = [](const std::string& field) {
    return field.size() == 4 && is_whole_number(field) && field >= "1700" && field <= "2200";
  };
  return std::all_of(fields.begin(), fields.end(), is_year) &&
         std::is_sorted(fields.begin(), fields.end(), std::less_equal<>());
}

std::string plural(index_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace qrtool
