// SPDX-License-Identifier: Apache-2.0
// text.cpp: finds separators, cuts lines into fields and parses numbers.
#include "io/csv/text.hpp"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

constexpr std::string_view blanks = " \t";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

enum class Parsed { number, too_large, other };

Parsed parse_token(std::string_view token, double& value, ElementType type = ElementType::float64) {
  if (token.size() > 1 && token[0] == '+' && token[1] != '+' && token[1] != '-') {
    token.remove_prefix(1);
  }
  const char* end = token.data() + token.size();
  const auto result = fast_float::from_chars(token.data(), end, value);
  // Characters after the number make the token no number.
  if (result.ptr != end || token.empty()) return Parsed::other;
  const std::size_t first = token[0] == '-' ? 1 : 0;
  const bool is_word = !is_digit(token[first]) && token[first] != '.';
  const bool is_inf = std::isinf(type == ElementType::float32 ? static_cast<float>(value) : value);
  if (is_inf && !is_word) return Parsed::too_large;
  return result.ec == std::errc() || value == 0 ? Parsed::number : Parsed::other;
}

bool begins_like_number(std::string_view token) {
  std::size_t i = 0;
  if (i < token.size() && (token[i] == '+' || token[i] == '-')) ++i;
  if (i < token.size() && token[i] == '.') ++i;
  return i < token.size() && is_digit(token[i]);
}

/// The action to recommend for a token that was probably meant as a number.
std::string hint_for(std::string_view token) {
  std::string changed(token);
  double value = 0;
  const std::size_t exponent = changed.find_first_of("dD");
  if (exponent != std::string::npos) {
    changed[exponent] = 'e';
    if (parse_token(changed, value) == Parsed::number) {
      return fmt::format("write the exponent with e: {}", changed);
    }
    changed = token;
  }
  const std::size_t comma = changed.find(',');
  if (comma != std::string::npos && begins_like_number(token)) {
    changed[comma] = '.';
    if (parse_token(changed, value) == Parsed::number) {
      return fmt::format("write a decimal point: {}", changed);
    }
  }
  if (token == "NA" || token == "N/A" || token == "NULL" || token == "null" || token == "?") {
    return "write nan for a missing number";
  }
  return {};
}

std::string quoted(std::string_view token) {
  constexpr std::size_t longest = 40;
  const bool is_long = token.size() > longest;
  return fmt::format("'{}{}'", escape(token.substr(0, longest)), is_long ? "..." : "");
}

}  // namespace

LineKind classify(std::string_view& line) {
  const std::size_t comment = line.find_first_of("#%");
  line = line.substr(0, comment);
  if (line.find_first_not_of(blanks) == std::string_view::npos) {
    return comment == std::string_view::npos ? LineKind::blank : LineKind::comment;
  }
  return LineKind::data;
}

char find_separator(std::string_view line) {
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
    if (found.find(separator) != std::string::npos) return separator;
  }
  return 0;
}

std::string CsvParser::place(std::size_t column) const {
  return fmt::format("{}:{}:{}: ", lines_.shown(), lines_.number(), column);
}

/// Returns the field at `at`, and moves `at` past the separator, or to npos after the last field.
CsvParser::Field CsvParser::take_field(std::string_view line, std::size_t& at,
                                       char separator) const {
  const std::string_view padding = separator == '\t' ? " " : blanks;
  const std::size_t start = std::min(line.find_first_not_of(padding, at), line.size());
  Field field{{}, start + 1};
  std::size_t end = 0;
  if (start < line.size() && line[start] == '"') {
    const std::size_t closing = line.find('"', start + 1);
    if (closing == std::string_view::npos) {
      throw InputError(place(start + 1) + "the quote is not closed");
    }
    field.text = line.substr(start + 1, closing - start - 1);
    end = std::min(line.find_first_not_of(padding, closing + 1), line.size());
    const bool is_run = separator == ' ' && end > closing + 1;
    if (end < line.size() && line[end] != separator && !is_run) {
      throw InputError(place(end + 1) + "text after a closing quote");
    }
  } else {
    end = separator == 0 ? line.size() : std::min(line.find(separator, start), line.size());
    if (separator == ' ') end = std::min(line.find_first_of(blanks, start), line.size());
    field.text = line.substr(start, end - start);
    field.text = field.text.substr(0, field.text.find_last_not_of(padding) + 1);
  }
  if (separator == ' ') {
    at = line.find_first_not_of(blanks, end);
  } else {
    at = end < line.size() ? end + 1 : std::string_view::npos;
  }
  return field;
}

bool CsvParser::is_header(std::string_view line) const {
  const char separator = find_separator(line);
  bool has_name = false;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const Field field = take_field(line, at, separator);
    double value = 0;
    if (begins_like_number(field.text)) return false;
    if (parse_token(field.text, value) == Parsed::number) return false;
    has_name = has_name || !field.text.empty();
  }
  return has_name;
}

double CsvParser::parse_number(const Field& field, ElementType type) const {
  double value = 0;
  const Parsed parsed = parse_token(field.text, value, type);
  if (parsed == Parsed::other) throw_not_a_number(field);
  if (parsed == Parsed::too_large) {
    throw InputError(fmt::format("{}{} is too large for {}", place(field.column),
                                 quoted(field.text), name_of(type)),
                     type == ElementType::float32 ? "use --precision double" : "");
  }
  return value;
}

void CsvParser::throw_not_a_number(const Field& field) const {
  if (field.text.empty()) {
    throw InputError(place(field.column) + "empty field", "write nan for a missing number");
  }
  throw InputError(place(field.column) + quoted(field.text) + " is not a number",
                   hint_for(field.text));
}

void CsvParser::throw_ragged(std::size_t column, index_t found) const {
  throw InputError(fmt::format("{}{} column{} where line {} has {}", place(column), found,
                               found == 1 ? "" : "s", first_line_, columns_),
                   found < columns_ ? "write nan for a missing number" : "");
}

void CsvParser::parse(std::string_view line, ElementType type, std::vector<double>& numbers) {
  numbers.clear();
  const bool is_first = columns_ == 0;
  // The first line of one column has no separator; one in a later line makes that line too long.
  if (separator_ == 0) separator_ = find_separator(line);
  std::size_t surplus = 0;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const Field field = take_field(line, at, separator_);
    numbers.push_back(parse_number(field, type));
    if (std::ssize(numbers) == columns_ + 1) surplus = field.column;
  }
  if (is_first) {
    columns_ = std::ssize(numbers);
    first_line_ = lines_.number();
  }
  if (std::ssize(numbers) != columns_) {
    const std::size_t end = line.find_last_not_of(blanks) + 2;
    throw_ragged(std::ssize(numbers) > columns_ ? surplus : end, std::ssize(numbers));
  }
}

}  // namespace qrtool
