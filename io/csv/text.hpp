// SPDX-License-Identifier: Apache-2.0
// text.hpp: parses lines of text: separators, comments, quotes, numbers. The locale does not
// matter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/problem.hpp"
#include "io/file/text_lines.hpp"

namespace qrtool {

enum class LineKind { blank, comment, data };

/// Says what `line` is, and cuts a comment (# or % to the end) off it.
LineKind classify(std::string_view& line);

/// The separator of a data line: the first of ';', tab, ',' and ' ' that occurs between its fields;
/// 0 for a line with one field.
char find_separator(std::string_view line);

/// Parses data lines, all with the same separator, into numbers.
class CsvParser {
 public:
  explicit CsvParser(const TextLines& lines) : lines_(lines) {}

  /// Whether the line is a header, which contains only names. A line with a field that begins like
  /// a number is no header, so that a first row with a typing mistake is not skipped; an exception
  /// is the header of columns that are numbered from 0 beside an index (",0,1,2"). A header is
  /// compared with the first row that is parsed: its width must be the same, and its first name
  /// must not be empty, since such a column is an index.
  bool take_header(std::string_view line);

  /// Parses the current line into numbers that `type` can hold; `line` is that line after
  /// `classify`. The first call decides the separator and the number of fields of all lines.
  /// Errors: InputError at file:line:column.
  void parse(std::string_view line, ElementType type, std::vector<double>& numbers);

  index_t columns() const { return columns_; }
  /// The names of the header; empty where there is none.
  std::vector<std::string> names() const;

  /// "file:line:column: " for a place in the current line.
  std::string place(std::size_t column) const;

 private:
  struct Field {
    std::string_view text;
    std::size_t column = 0;  // from 1
  };
  Field take_field(std::string_view line, std::size_t& at, char separator) const;
  double parse_number(const Field& field, std::string_view line, ElementType type) const;
  void check_header(std::string_view row) const;
  [[noreturn]] void throw_not_a_number(const Field& field, std::string_view line) const;
  [[noreturn]] void throw_ragged(std::size_t column, index_t found) const;

  const TextLines& lines_;
  std::string header_;  // the line; empty: there is none
  index_t header_line_ = 0;
  char separator_ = 0;
  index_t columns_ = 0;
  index_t first_line_ = 0;  // the line that decided the number of columns
};

}  // namespace qrtool
