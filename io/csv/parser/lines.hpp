// SPDX-License-Identifier: Apache-2.0
// lines.hpp: cuts lines of text into fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/source/csv_options.hpp"

namespace qrtool {

/// `separators` is a line whose fields are all empty, as Excel writes an empty row. It counts as a
/// blank line.
enum class LineKind { blank, separators, comment, data };

/// Whether a comment may begin within a line, which it may only if blanks separate the fields.
enum class Comments { whole_lines, anywhere };

/// Returns the position at which a comment begins, or npos. A comment begins at a # or % with only
/// blanks before it; if comments may begin anywhere, also at one that follows a blank. A # or % in
/// quotes, in an error of Excel (#N/A) or at the end of a line ("12 %") begins no comment.
std::size_t find_comment(std::string_view line, Comments comments);

/// Classifies `line` and removes a comment from it.
LineKind classify(std::string_view& line, Comments comments);

/// Returns the separator of a data line: the first of ';', tab, ',' and ' ' that occurs between its
/// fields, or 0 for a line with one field. A decimal comma is no separator.
char find_separator(std::string_view line, Decimal decimal = Decimal::automatic);

/// Returns the separator that Excel's first line "sep=;" states, or 0.
char stated_separator(std::string_view line);

/// Returns the fields of a line, without their quotes and the blanks around them. It accepts every
/// line.
std::vector<std::string> names_of(std::string_view line, char separator);

inline constexpr std::string_view blanks = " \t";

}  // namespace qrtool
