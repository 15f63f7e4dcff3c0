// SPDX-License-Identifier: Apache-2.0
// lines.hpp: cuts lines of text into fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/source/csv_options.hpp"

namespace qrtool {

/// `separators` is a line whose fields are all empty, as Excel writes an empty row; it is as good
/// as a blank line.
enum class LineKind { blank, separators, comment, data };

/// Whether a comment may begin within a line: only blanks separate the fields of such a text.
enum class Comments { whole_lines, anywhere };

/// Returns where a comment begins, or npos where there is none: at a # or % before which there are
/// blanks alone or, where it may begin anywhere, that follows a blank. Within quotes, and in the
/// errors of Excel (#N/A), they begin none; neither does a % at the end ("12 %").
std::size_t find_comment(std::string_view line, Comments comments);

/// Says what `line` is, and cuts a comment off it.
LineKind classify(std::string_view& line, Comments comments);

/// Returns the separator of a data line: the first of ';', tab, ',' and ' ' that occurs between its
/// fields, or 0 for a line with one field. A decimal comma is no separator.
char find_separator(std::string_view line, Decimal decimal = Decimal::automatic);

/// The separator that Excel's first line "sep=;" states; else 0.
char stated_separator(std::string_view line);

/// Returns the fields of a line, without their quotes and the blanks around them. It accepts every
/// line.
std::vector<std::string> names_of(std::string_view line, char separator);

inline constexpr std::string_view blanks = " \t";

}  // namespace qrtool
