// SPDX-License-Identifier: Apache-2.0
// number.hpp: parses one number of a text. The locale does not matter.
#pragma once

#include <complex>
#include <string>
#include <string_view>

#include "core/problem.hpp"
#include "io/csv_options.hpp"

namespace qrtool {

enum class Parsed { number, too_large, other };

/// Parses a whole field as a number that `type` can hold; nan and inf are numbers, too.
Parsed parse_number(std::string_view text, double& value, ElementType type = ElementType::float64,
                    Decimal decimal = Decimal::point);

/// Parses the finite number that `text` begins with, which begins with a digit, a point or '-'.
/// Returns its length; 0 where there is none, or one that only parse_number() decides about.
std::size_t parse_leading_number(std::string_view text, double& value, ElementType type,
                                 Decimal decimal);

bool begins_like_number(std::string_view text);
/// Whether a text is digits, with or without a sign.
bool is_whole_number(std::string_view text);
/// Whether the comma, or this sign, in it may separate thousands: "1,234", but neither "1,5" nor
/// "0,123".
bool may_have_thousands(std::string_view text, char sign = ',');
/// Parses a whole field as a complex number whose parts `type` can hold, as Python, NumPy and
/// Octave write it: "1+2i", "(1+2j)", "1+-2j", "3i", "inf+nanj", and a real number.
Parsed parse_complex(std::string_view text, std::complex<double>& value, ElementType type,
                     Decimal decimal = Decimal::point);
/// Whether a text is a complex number that is not written as a real one.
bool is_complex_text(std::string_view text);

/// The action to recommend for a text that was probably meant as a number; empty: none.
std::string hint_for_number(std::string_view text);

/// A text in quotes, cut where it is long, for messages.
std::string quoted_text(std::string_view text);

}  // namespace qrtool
