// SPDX-License-Identifier: Apache-2.0
// number.cpp: numbers by fast_float, and what a text that is none was probably meant to be.
#include "io/text/number.hpp"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.hpp"

namespace qrtool {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

fast_float::from_chars_result from_chars(std::string_view text, double& value, Decimal decimal) {
  const fast_float::parse_options options{fast_float::chars_format::general,
                                          decimal == Decimal::comma ? ',' : '.'};
  return fast_float::from_chars_advanced(text.data(), text.data() + text.size(), value, options);
}

bool is_infinite_in(ElementType type, double value) {
  return std::isinf(type == ElementType::float32 ? static_cast<float>(value) : value);
}

}  // namespace

Parsed parse_number(std::string_view text, double& value, ElementType type, Decimal decimal) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '+' && text[1] != '-') text.remove_prefix(1);
  if (text.empty()) return Parsed::other;
  const auto result = from_chars(text, value, decimal);
  // Characters after the number make the text no number.
  if (result.ptr != text.data() + text.size()) return Parsed::other;
  const char first = text[text[0] == '-' ? 1 : 0];
  const bool is_word = !is_digit(first) && first != '.' && first != ',';
  if (is_infinite_in(type, value) && !is_word) return Parsed::too_large;
  return result.ec == std::errc() || value == 0 ? Parsed::number : Parsed::other;
}

std::size_t parse_leading_number(std::string_view text, double& value, ElementType type,
                                 Decimal decimal) {
  if (text.empty() || !(is_digit(text[0]) || text[0] == '-' || text[0] == '.')) return 0;
  const auto result = from_chars(text, value, decimal);
  if (result.ec != std::errc() || !std::isfinite(value) || is_infinite_in(type, value)) return 0;
  return static_cast<std::size_t>(result.ptr - text.data());
}

bool begins_like_number(std::string_view text) {
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
  if (i < text.size() && (text[i] == '.' || text[i] == ',')) ++i;
  return i < text.size() && is_digit(text[i]);
}

bool is_whole_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

bool may_have_thousands(std::string_view text, char sign) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t comma = text.find(sign);
  if (comma == 0 || comma > 3 || text[0] == '0') return false;
  return text.size() == comma + 4 && is_whole_number(text.substr(0, comma)) &&
         std::all_of(text.begin() + static_cast<std::ptrdiff_t>(comma) + 1, text.end(), is_digit);
}

namespace {

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

bool is_sign(char c) { return c == '+' || c == '-'; }

bool has_unit(std::string_view text) {
  return !text.empty() && std::string_view("ijIJ").find(text.back()) != std::string_view::npos;
}

/// Parses "+2", "-2", "- 2" or NumPy's "+-2", the imaginary part that follows a real one.
Parsed parse_signed(std::string_view text, double& value, ElementType type, Decimal decimal) {
  const bool is_negative = text[0] == '-';
  const std::string_view number = without_blanks(text.substr(1));
  if (number.starts_with('+') || (is_negative && number.starts_with('-'))) return Parsed::other;
  const Parsed parsed = parse_number(number, value, type, decimal);
  if (is_negative) value = -value;
  return parsed;
}

}  // namespace

Parsed parse_complex(std::string_view text, std::complex<double>& value, ElementType type,
                     Decimal decimal) {
  if (text.starts_with('(') && text.ends_with(')'))
    text = without_blanks(text.substr(1, text.size() - 2));
  double re = 0, im = 0;
  if (!has_unit(text)) {
    const Parsed parsed = parse_number(text, re, type, decimal);
    value = re;
    return parsed;
  }
  text.remove_suffix(1);
  Parsed parsed = parse_number(text, im, type, decimal);
  value = {0, im};
  if (parsed != Parsed::other) return parsed;
  // Finds the sign between the two parts. A sign after an exponent's e is not that one.
  for (std::size_t at = 1; at + 1 < text.size(); ++at) {
    if (!is_sign(text[at])) continue;
    const Parsed real = parse_number(without_blanks(text.substr(0, at)), re, type, decimal);
    if (real == Parsed::other) continue;
    parsed = parse_signed(text.substr(at), im, type, decimal);
    value = {re, im};
    if (parsed != Parsed::other) return real == Parsed::number ? parsed : real;
  }
  return Parsed::other;
}

bool is_complex_text(std::string_view text) {
  const bool may_be = has_unit(text) || (text.starts_with('(') && text.ends_with(')'));
  std::complex<double> value;
  return may_be && parse_complex(text, value, ElementType::float64) != Parsed::other;
}

std::string hint_for_number(std::string_view text) {
  std::string changed(text);
  double value = 0;
  const std::size_t exponent = changed.find_first_of("dD");
  if (exponent != std::string::npos) {
    changed[exponent] = 'e';
    if (parse_number(changed, value) == Parsed::number)
      return fmt::format("write the exponent with e: {}", changed);
    changed = text;
  }
  if (!text.empty() && text.back() == '%' &&
      parse_number(text.substr(0, text.size() - 1), value) == Parsed::number)
    return "write the number without its percent sign";
  if (parse_number(text, value, ElementType::float64, Decimal::comma) == Parsed::number)
    return "if the comma is the decimal sign: --decimal comma";
  // Where there are both signs, the last one is the decimal sign: 1,234.5 and 1.234,5.
  const std::size_t point = text.find('.'), comma = text.rfind(',');
  const bool is_comma = comma != std::string_view::npos && point < comma;
  if (is_comma && (text.rfind('.') > comma || (comma - point) % 4 != 0)) return {};
  std::erase(changed, is_comma ? '.' : ',');
  if (begins_like_number(text) && changed != text &&
      parse_number(changed, value, ElementType::float64,
                   is_comma ? Decimal::comma : Decimal::point) == Parsed::number)
    return "write the number without separators of thousands: " + changed;
  return {};
}

std::string quoted_text(std::string_view text) {
  constexpr std::size_t longest = 40;
  if (text.size() <= longest) return fmt::format("'{}'", escape(text));
  std::size_t cut = longest;  // between two characters of UTF-8
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0U) == 0x80) --cut;
  return fmt::format("'{}...'", escape(text.substr(0, cut)));
}

}  // namespace qrtool
