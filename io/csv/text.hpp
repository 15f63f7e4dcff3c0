// SPDX-License-Identifier: Apache-2.0
// text.hpp: the dialect of text: separators, comments, quotes, numbers. Independent of the
// locale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/problem.hpp"
#include "io/file/text_lines.hpp"

namespace qrtool {

enum class LineKind { blank, comment, data };

/// Cuts a comment (# or % to the end) and blanks off the end of `line`.
LineKind classify(std::string_view& line);

/// ';', tab, ',' or ' ', the first of them that stands between the fields of a data line; 0 for a
/// line with one field.
char find_separator(std::string_view line);

/// Parses data lines of one separator into numbers.
class CsvParser {
 public:
  explicit CsvParser(const TextLines& lines) : lines_(lines) {}

  /// Whether the line holds names alone. A field that only begins like a number makes it no header,
  /// so that a mistyped first row is not taken for one.
  bool is_header(std::string_view line) const;

  /// The numbers of the lines' current line, of which `line` is what `classify` left; none is
  /// larger than `type` can hold. The first call fixes separator and number of fields.
  /// Errors: InputError at file:line:column.
  void parse(std::string_view line, ElementType type, std::vector<double>& numbers);

  index_t columns() const { return columns_; }

  /// "file:line:column: " for a place in the current line.
  std::string place(std::size_t column) const;

 private:
  struct Field {
    std::string_view text;
    std::size_t column = 0;  // from 1
  };
  Field take_field(std::string_view line, std::size_t& at, char separator) const;
  double parse_number(const Field& field, ElementType type) const;
  [[noreturn]] void throw_not_a_number(const Field& field) const;
  [[noreturn]] void throw_ragged(std::size_t column, index_t found) const;

  const TextLines& lines_;
  char separator_ = 0;
  index_t columns_ = 0;
  index_t first_line_ = 0;  // whose fields the others must match
};

}  // namespace qrtool
