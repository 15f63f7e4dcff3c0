// SPDX-License-Identifier: Apache-2.0
// parser_errors.cpp: says what is wrong with a field or a line, and what to do about it.
#include "io/csv/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/csv/columns.hpp"
#include "io/csv/words.hpp"
#include "io/text/number.hpp"

namespace qrtool {
namespace {

/// Whether all fields are numbers where a comma is a decimal point.
bool has_decimal_commas(std::string_view line) {
  double value = 0;
  for (const std::string& field : names_of(line, find_separator(line, Decimal::comma)))
    if (parse_number(field, value, ElementType::float64, Decimal::comma) != Parsed::number)
      return false;
  return line.find(',') != std::string_view::npos;
}

/// Whether all fields but the first are numbers.
bool has_numbers_after_name(std::string_view line, char separator) {
  const std::vector<std::string> fields = names_of(line, separator);
  double value = 0;
  return fields.size() > 1 && std::all_of(fields.begin() + 1, fields.end(), [&](const auto& field) {
           return parse_number(field, value) == Parsed::number;
         });
}

}  // namespace

void CsvParser::throw_not_a_number(const Field& field, std::string_view line) const {
  const std::string what = place(field.column) + quoted_text(field.text);
  if (parts_ == 1 && is_complex_text(field.text))
    throw InputError(what + " is a complex number, and the first rows are real ones",
                     "write a number of the first row as a complex one, for example 1+0j");
  const bool is_first_row = lines_.number() == first_line_;
  const bool is_first_field = line.find_first_not_of(blanks) + 1 == field.column;
  const bool has_point = field.text.find('.') != field.text.npos;
  const bool has_comma = field.text.find(',') != field.text.npos;
  std::string hint = hint_for_number(field.text);
  if (found_.decimal == Decimal::comma && has_point && !has_comma) {
    std::string changed(field.text);
    std::replace(changed.begin(), changed.end(), '.', ',');
    hint = "the comma is the decimal sign of this file; write " + escape(changed);
  }
  if (!hint.empty()) {
  } else if (is_likely_missing(field.text)) {
    hint = fmt::format("if a number is missing here: --na-text '{}'", field.text);
  } else if (separator_ != '|' && field.text.find('|') != std::string_view::npos) {
    hint = "--delimiter pipe";
  } else if (has_decimal_commas(line)) {
    hint = "if the comma is the decimal sign: --decimal comma";
  } else if (is_truth(field.text)) {
    hint = "write 1 and 0 for true and false, or " + hint_without(field, line);
  } else if (is_first_field && found_.columns.empty() &&
             (is_word(field.text) || field.is_quoted || is_date(field.text)) &&
             has_numbers_after_name(line, separator_)) {
    hint = "if the first column holds names or dates: --index-column yes leaves it out";
  } else if (is_first_row && header_.empty() && found_.header == Answer::automatic &&
             is_word(field.text)) {
    hint = "if the line is a header: --header yes";
  } else if (width_ > 1 && !header_.empty()) {
    hint = hint_without(field, line);
  }
  throw InputError(what + " is not a number", hint);
}

/// The options that leave out all columns of this line whose fields are no numbers.
std::string CsvParser::hint_without(const Field& field, std::string_view line) const {
  std::string list, name;
  std::size_t column = 0;
  for (std::size_t at = 0; at != std::string_view::npos && column < table_.columns.size();
       ++column) {
    const Field each = take_field(line, at, separator_);
    if (each.column == field.column) name = table_.labels()[column];
    double value = 0;
    const bool is_read = table_.columns[column].role == ColumnRole::read;
    const Decimal decimal = found_.decimal == Decimal::comma ? Decimal::comma : Decimal::point;
    if (is_read && (is_missing(each.text) || parse_number(each.text, value, ElementType::float64,
                                                          decimal) == Parsed::number))
      list += fmt::format("{}{}", list.empty() ? "" : ",", item_of(column, table_));
  }
  if (list.empty() && lines_.number() == first_line_)
    return fmt::format("if line {} holds the names: --skip-rows {}", first_line_, first_line_ - 1);
  if (list.empty()) return "";
  return fmt::format("leave the column {} out: --columns {}", quoted_text(name), list);
}

void CsvParser::throw_ragged(std::size_t column, index_t found) const {
  const bool may_be_header =
      first_row_counts_ && found == width_ + 1 && found_.header == Answer::automatic;
  std::string hint;
  if (found < width_) hint = "write nan for a missing number";
  if (may_be_header) hint = fmt::format("if line {} is a header: --header yes", first_line_);
  throw InputError(fmt::format("{}{} where line {} has {}", place(column), plural(found, "column"),
                               first_line_, width_),
                   hint);
}

}  // namespace qrtool
