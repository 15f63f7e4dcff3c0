// SPDX-License-Identifier: Apache-2.0
// words.hpp: what a field that is no number may be: a name, a date, true or false, or a gap.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

/// Whether a text begins with a letter. A typographic minus sign is not a letter.
bool is_word(std::string_view text);

/// Whether programs and people may write this text for a missing number, although it does not
/// always mean one.
bool is_likely_missing(std::string_view text);

/// Whether a text is a number with a decimal point or comma.
bool is_any_number(std::string_view text);

/// Whether a text looks like a date: "2020-01-31", "31/01/2020 12:00".
bool is_date(std::string_view text);

/// Whether a text is one that programs write for true or false.
bool is_truth(std::string_view text);

/// Whether all that hold something are years that go up: names of columns more often than numbers.
bool are_years(std::vector<std::string> fields);

/// Returns "1 column", "2 columns", ... for the thing "column".
std::string plural(index_t count, const char* thing);

}  // namespace qrtool
