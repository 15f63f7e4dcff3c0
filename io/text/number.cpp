// SPDX-License-Identifier: Apache-2.0
// number.cpp: numbers by fast_float, and what a text that is none was probably meant to be.
#include "io/text/number.hpp"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

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
  const bool is_simple = result.ec == std::errc() && std::abs(value) < first_inexact;
  if (!is_simple || is_infinite_in(type, value)) return 0;
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

bool is_rounded_integer(std::string_view text, double value) {
  if (!is_whole_number(text)) return false;
  if (!is_digit(text[0])) text.remove_prefix(1);
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
  return fmt::format("{:.0f}", std::abs(value)) != text;
}

bool parse_microsoft(std::string_view text, double& value) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() < 6 || text[0] != '1' || (text[1] != '.' && text[1] != ',') || text[2] != '#')
    return false;
  text.remove_prefix(3);
  // Zeros fill the digits that were asked for, and an exponent may follow.
  if (text.ends_with("e+000")) text.remove_suffix(5);
  text = text.substr(0, text.find_last_not_of('0') + 1);
  const bool is_infinite = text == "INF";
  if (!is_infinite && text != "IND" && text != "QNAN" && text != "SNAN") return false;
  value = is_infinite ? std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::quiet_NaN();
  if (is_negative) value = -value;
  return true;
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
  if (text.starts_with('(') && text.ends_with(')')) {
    text = without_blanks(text.substr(1, text.size() - 2));
    if (!has_unit(text)) return Parsed::other;
  }
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

namespace {

bool is_number(std::string_view text, Decimal decimal) {
  double value = 0;
  return parse_number(text, value, ElementType::float64, decimal) == Parsed::number;
}

/// Returns the text if it is a number, else an empty text.
std::string if_number(std::string text, Decimal decimal) {
  return is_number(text, decimal) ? text : "";
}

/// Whether signs separate all digits by thousands: "1,234,567".
bool is_grouped(std::string_view text, char sign) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t first = text.find(sign);
  if (first == std::string_view::npos || first == 0 || first > 3) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_sign_here = i >= first && (i - first) % 4 == 0;
    if (is_sign_here ? text[i] != sign : !is_digit(text[i])) return false;
  }
  return (text.size() - first) % 4 == 0;
}

}  // namespace

std::string without_sign(std::string_view text, char sign, Decimal decimal) {
  std::string changed(text);
  const auto make_plain = [&](std::string_view typographic) {
    for (std::size_t at = 0; (at = changed.find(typographic, at)) != std::string::npos; ++at)
      changed.replace(at, typographic.size(), 1, sign);
  };
  if (sign == ' ')
    for (const std::string_view blank : {"\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89"})
      make_plain(blank);
  if (sign == '\'') make_plain("\xe2\x80\x99");
  const std::size_t end =
      std::min(changed.find(decimal == Decimal::comma ? ',' : '.'), changed.size());
  if (!is_grouped(std::string_view(changed).substr(0, end), sign)) return {};
  std::erase(changed, sign);
  return if_number(changed, decimal);
}

char sign_of_thousands(std::string_view text, Decimal decimal) {
  for (const char sign : {' ', '\''})
    for (const Decimal each : {Decimal::point, Decimal::comma})
      if ((decimal == Decimal::automatic || each == decimal) &&
          !without_sign(text, sign, each).empty())
        return sign;
  const std::size_t point = text.rfind('.'), comma = text.rfind(',');
  const bool has_both = point != std::string_view::npos && comma != std::string_view::npos;
  if (point == comma) return 0;  // there are none
  const bool is_comma = comma != std::string_view::npos && (!has_both || comma > point);
  const char last = is_comma ? ',' : '.', other = is_comma ? '.' : ',';
  const std::size_t end = has_both ? text.rfind(last) : text.size();
  const char sign = has_both ? other : last;
  if (!is_grouped(text.substr(0, end), sign)) return 0;
  const Decimal known = sign == ',' ? Decimal::point : Decimal::comma;
  return !has_both && decimal != known && may_have_thousands(text, sign) ? '\0' : sign;
}

namespace {

/// Returns 1.5e3 for 1.5d3, as Fortran writes it.
std::string with_exponent_e(std::string_view text, Decimal decimal) {
  std::string changed(text);
  const std::size_t exponent = changed.find_first_of("dD");
  if (exponent == std::string::npos) return {};
  changed[exponent] = 'e';
  return if_number(changed, decimal);
}

std::string without_percent(std::string_view text, Decimal decimal) {
  if (!text.ends_with('%')) return {};
  return if_number(std::string(without_blanks(text.substr(0, text.size() - 1))), decimal);
}

constexpr std::string_view typographic_minus = "\xe2\x88\x92";  // U+2212

std::string with_ascii_minus(std::string_view text, Decimal decimal) {
  if (!text.starts_with(typographic_minus)) return {};
  return if_number("-" + std::string(text.substr(typographic_minus.size())), decimal);
}

std::string without_thousands(std::string_view text, Decimal decimal) {
  const char sign = sign_of_thousands(text, decimal);
  if (sign == 0) return {};
  return without_sign(text, sign, sign == '.' ? Decimal::comma : Decimal::point);
}

/// Returns -987.65 for (987.65), as accountants write it.
std::string with_minus(std::string_view text, Decimal decimal) {
  if (!text.starts_with('(') || !text.ends_with(')')) return {};
  const std::string_view inner = without_blanks(text.substr(1, text.size() - 2));
  if (!begins_like_number(inner) || is_sign(inner[0])) return {};
  if (is_number(inner, decimal)) return "-" + std::string(inner);
  const std::string plain = without_thousands(inner, decimal);
  return plain.empty() ? plain : "-" + plain;
}

std::string without_currency(std::string_view text, Decimal decimal) {
  for (const std::string_view sign : {"$", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5"}) {
    std::string_view rest = text;
    if (rest.starts_with(sign)) rest.remove_prefix(sign.size());
    if (rest.ends_with(sign)) rest.remove_suffix(sign.size());
    if (rest == text) continue;
    rest = without_blanks(rest);
    if (is_number(rest, decimal)) return std::string(rest);
    const std::string plain = without_thousands(rest, decimal);
    const bool may_be_decimal = decimal == Decimal::automatic && !may_have_thousands(rest);
    return plain.empty() && may_be_decimal ? if_number(std::string(rest), Decimal::comma) : plain;
  }
  return {};
}

/// Returns the number with the decimal sign of the text: 2,5 for 2.5 if that is the comma. 1.234 is
/// left alone, because its point may separate thousands.
std::string with_other_sign(std::string_view text, Decimal decimal) {
  const char to = decimal == Decimal::comma ? ',' : '.',
             from = decimal == Decimal::comma ? '.' : ',';
  std::string changed(text);
  if (decimal == Decimal::automatic) return {};
  std::replace(changed.begin(), changed.end(), from, to);
  return changed == text || may_have_thousands(text, from) ? "" : if_number(changed, decimal);
}

}  // namespace

bool may_be_number(std::string_view text, Decimal decimal) {
  double value = 0;
  return is_number(text, decimal) || parse_microsoft(text, value) ||
         sign_of_thousands(text, decimal) != 0 ||
         std::ranges::any_of(
             std::initializer_list<Mend>{with_exponent_e, without_percent, with_ascii_minus,
                                         with_minus, without_currency},
             [&](Mend mend) { return !mend(text, decimal).empty(); });
}

NumberHint hint_for_number(std::string_view text, Decimal decimal) {
  NumberHint found;
  const auto mends = [&](Mend mend) {
    found = {.hint = mend(text, decimal), .mend = mend};
    return !found.hint.empty();
  };
  if (mends(with_exponent_e)) {
    found.hint = fmt::format("write the exponent with e: {}", found.hint);
  } else if (mends(without_percent)) {
    found.hint = "write the number without its percent sign";
  } else if (mends(with_ascii_minus)) {
    found.hint = fmt::format("write the minus sign of ASCII: {}", found.hint);
  } else if (mends(with_minus)) {
    found.hint = fmt::format("if the parentheses mean a negative number: write {}", found.hint);
  } else if (mends(without_currency)) {
    found.hint = fmt::format("write the number without the sign of its currency: {}", found.hint);
  } else if (mends(with_other_sign)) {
    found.hint = fmt::format("the {} is the decimal sign of this file; write {}",
                             decimal == Decimal::comma ? "comma" : "point", found.hint);
  } else {
    return {};
  }
  return found;
}

std::string quoted_text(std::string_view text) {
  constexpr std::size_t longest = 40;
  if (text.size() <= longest) return fmt::format("'{}'", escape(text));
  std::size_t cut = longest;  // between two characters of UTF-8
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0U) == 0x80) --cut;
  return fmt::format("'{}...'", escape(text.substr(0, cut)));
}

}  // namespace qrtool
