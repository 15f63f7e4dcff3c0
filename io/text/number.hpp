// SPDX-License-Identifier: Apache-2.0
// number.hpp: parses one number of a text. The locale does not matter.
#pragma once

#include <complex>
#include <string>
#include <string_view>

#include "core/problem/problem.hpp"
#include "io/source/csv_options.hpp"

namespace qrtool {

enum class Parsed { number, too_large, other };

/// Parses a whole field as a number that `type` can hold; nan and inf are numbers, too.
Parsed parse_number(std::string_view text, double& value, ElementType type = ElementType::float64,
                    Decimal decimal = Decimal::point);

/// The least integer from which on float64 does not hold every integer.
inline constexpr double first_inexact = 0x1p53;

/// Parses the number at the start of `text`, which begins with a digit, a point or '-', if its
/// digits are below first_inexact. Returns its length, or 0 if there is no number or only
/// parse_number() can decide.
std::size_t parse_leading_number(std::string_view text, double& value, ElementType type,
                                 Decimal decimal);

bool begins_like_number(std::string_view text);
/// Whether a text is digits, with or without a sign.
bool is_whole_number(std::string_view text);
/// Whether a text is an integer that float64 does not hold: it was read as `value`.
bool is_rounded_integer(std::string_view text, double value);
/// Parses NaN and infinities as Microsoft's C library prints them: "-1.#IND", "1.#QNAN00".
bool parse_microsoft(std::string_view text, double& value);
/// Whether the text has the form of a number with `sign` between thousands: "1,234", but neither
/// "1,5" nor "0,123".
bool may_have_thousands(std::string_view text, char sign = ',');
/// Returns the number without `sign` between its thousands, or an empty text if it does not divide
/// all digits so. A blank or an apostrophe may be a typographic one.
std::string without_sign(std::string_view text, char sign, Decimal decimal);
/// Returns the sign between the thousands of a text, or 0. If the text has a point and a comma, the
/// last of them is the decimal sign: 1,234.5 and 1.234,5. If it has only one of them, that is no
/// decimal sign if the text uses the other one, or if it occurs twice.
char sign_of_thousands(std::string_view text, Decimal decimal);
/// Parses a whole field as a complex number with parts that `type` can hold, as Python, NumPy and
/// Octave write it: "1+2i", "(1+2j)", "1+-2j", "3i", "inf+nanj"; or as a real number. Parentheses
/// may only enclose a complex number: "(3)" is -3 to accountants.
Parsed parse_complex(std::string_view text, std::complex<double>& value, ElementType type,
                     Decimal decimal = Decimal::point);
/// Whether a text is a complex number that is not written as a real one.
bool is_complex_text(std::string_view text);

/// Rewrites a text that was probably meant as a number. Returns an empty text if it is not of the
/// kind that the function mends.
using Mend = std::string (*)(std::string_view text, Decimal decimal);
/// The action to recommend for a text, and the rule by which it changes this and similar texts.
struct NumberHint {
  std::string hint;
  Mend mend = nullptr;
};
/// Whether a text is a number, or a form that a hint can always rewrite: 1.5d3, 12 %, (3), $5, a
/// typographic minus sign, and signs between thousands.
bool may_be_number(std::string_view text, Decimal decimal);
/// Returns a hint for a text that was probably meant as a number with the decimal sign `decimal`;
/// empty if nothing is known.
NumberHint hint_for_number(std::string_view text, Decimal decimal = Decimal::point);

/// Returns the text in quotes, shortened if it is long, for messages.
std::string quoted_text(std::string_view text);

}  // namespace qrtool
