// SPDX-License-Identifier: Apache-2.0
// parser_guesses.cpp: looks in the rows for what confirms or refutes the guesses of the first rows.
#include "io/csv/parser/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "io/csv/parser/columns.hpp"
#include "io/csv/parser/words.hpp"
#include "io/text/number.hpp"

namespace qrtool {
namespace {

/// Returns the list of all columns except one.
std::string list_without(std::size_t column, index_t width) {
  std::string list = column == 0 ? "" : column == 1 ? "1" : fmt::format("1-{}", column);
  if (std::cmp_less(column + 1, width))
    list += fmt::format("{}{}-", list.empty() ? "" : ",", column + 2);
  return list;
}

}  // namespace

void CsvParser::check_row(std::string_view line, index_t row, const std::vector<double>& numbers) {
  const auto at_row = static_cast<double>(row);
  double number = numbers[0];
  if (!target_.empty() && may_be_header_) number = look_below(line);
  if (row == 1) count_offset_ = number - at_row;
  if (row == 0) first_number_ = number;
  if (row > 1 && number - at_row != count_offset_) counts_ = false;
  if (are_names_numbered_ || may_be_decimals_) look_for_decimals(line);
  for (std::size_t j = 0; j < codes_.size(); ++j) codes_[j].add(numbers[j]);
  if (!index_must_count_) return;
  std::size_t at = 0;
  const Field field = take_field(line, at, separator_);
  double index = 0;
  const bool is_number = parse_number(field.text, index) == Parsed::number;
  const bool begins = row == 0 && (index == 0 || index == 1);
  if (!is_number || !(begins || (lines_.number() > first_line_ && index == last_index_ + 1)))
    throw CsvRefusal(
        fmt::format("{}the header in line {} has one name less than there are columns, but the "
                    "first column does not count the rows",
                    place(field.column), header_line_),
        {{{.hint = "if it is an index all the same: --index-column yes",
           .options = with([](CsvOptions& o) { o.index_column = Answer::yes; }),
           .change = change_},
          {.hint = fmt::format("if not, leave the header out: --skip-rows {}", header_line_),
           .options = with([&](CsvOptions& o) { o.skip_rows = header_line_; }),
           .change = change_}}});
  last_index_ = index;
}

/// Looks at all fields of a row, including columns that are not read, for evidence about the first
/// row. Returns the number in the first field, or NaN.
double CsvParser::look_below(std::string_view line) {
  double first = std::numeric_limits<double>::quiet_NaN(), value = 0;
  const bool is_later = lines_.number() > first_line_;
  index_t column = 0;
  for (std::size_t at = 0; at != std::string_view::npos; ++column) {
    const Field field = take_field(line, at, separator_);
    const bool is_number = parse_number(field.text, value) == Parsed::number;
    if (column == 0 && is_number) first = value;
    if (is_later && field.is_quoted) has_later_quotes_ = true;
    if (is_later && is_whole_number(field.text)) has_later_whole_number_ = true;
  }
  return first;
}

/// Tells "ra 8,5", in which the comma is a decimal sign, from a name and a number.
void CsvParser::look_for_decimals(std::string_view line) {
  const std::size_t comma = line.find(',');
  const std::string_view before = line.substr(0, comma);
  const std::size_t blank = before.find_last_of(blanks);
  if (before.find('"') != std::string_view::npos || blank == std::string_view::npos ||
      !is_whole_number(before.substr(blank + 1)))
    are_names_numbered_ = false;
  const std::string_view after = comma == std::string_view::npos ? "-" : line.substr(comma + 1);
  if (!is_whole_number(before) || !is_whole_number(after) || after[0] == '-' || after[0] == '+')
    may_be_decimals_ = false;
}

/// Takes the first row, which was read as numbers, as the names of the columns.
void CsvParser::take_first_row_as_names() {
  notes_.push_back(
      fmt::format("line {} is taken for the names of the columns; --header no reads it as numbers",
                  first_line_));
  found_.header = Answer::yes;
  table_.has_header = true;
  for (std::size_t j = 0; j < table_.columns.size(); ++j) table_.columns[j].name = first_fields_[j];
  // A number of the list may be a name as well.
  if (!found_.columns.empty())
    choose_columns({"--columns", found_.columns}, table_, header_place());
}

bool CsvParser::is_first_row_a_header(index_t rows) {
  if (is_factor_ || found_.header != Answer::automatic || rows < 2) return false;
  const std::string begin = fmt::format("{}:{}:1: ", lines_.shown(), first_line_);
  if (first_row_has_gap_)
    throw CsvRefusal(begin +
                         "an empty field, then whole numbers: are they names of columns, or is "
                         "the first number missing?",
                     {header_or_not()});
  const bool is_index_below = counts_ && count_offset_ == -1 && rows >= 4;
  const bool is_odd_one = is_index_below || !has_later_whole_number_;
  if (first_row_counts_ && width_ == 2 && is_odd_one)
    throw CsvRefusal(
        begin + "0 and 1: are they names of columns, as pandas writes them, or numbers?",
        {header_or_not()});
  if ((first_row_is_quoted_ && !has_later_quotes_) ||
      (first_row_counts_ && width_ > 2 && is_odd_one)) {
    take_first_row_as_names();
    return true;
  }
  const bool is_doubtful =
      first_row_counts_ ||
      (first_row_is_whole_ && (!has_later_whole_number_ || are_years(first_fields_)));
  if (is_doubtful)
    notes_.push_back(
        fmt::format("line {} is read as numbers; if it holds the names of the columns, "
                    "give --header yes",
                    first_line_));
  return false;
}

/// Adds notes on columns that may be meant in another way.
void CsvParser::note_columns() {
  if (are_names_numbered_)
    throw CsvRefusal(header_place() +
                         "every name of the index ends in a number before the comma: " +
                         "is the comma a decimal sign?",
                     {comma_or_not()});
  if (may_be_decimals_)
    notes_.push_back(
        "every line is read as two numbers; if the comma is a decimal sign: --decimal comma");
  if (may_be_thousands_ && has_point_)
    notes_.push_back(
        "every number with a point has three digits after it; the point is read as a decimal sign, "
        "not as a separator of thousands");
  const std::vector<index_t> read = table_.read_columns();
  std::map<std::string_view, index_t> seen;
  for (const index_t column : read) {
    const std::string& name = table_.columns[static_cast<std::size_t>(column)].name;
    if (name.empty()) continue;
    const auto [first, is_new] = seen.emplace(name, column);
    if (is_new) continue;
    notes_.push_back(fmt::format("the columns {} and {} have the same name, {}", first->second + 1,
                                 column + 1, quoted_text(name)));
    return;
  }
}

/// Says where -999 and its kind look like missing numbers.
void CsvParser::note_missing_codes() {
  const std::vector<index_t> read = table_.read_columns();
  const std::vector<std::string> labels = table_.labels();
  for (std::size_t j = 0; j < codes_.size(); ++j) {
    const auto code = codes_[j].find();
    if (!code) continue;
    notes_.push_back(fmt::format(
        "{} holds {} {}, far from its other numbers; if it means a missing number: --na-text {}",
        quoted_text(labels[static_cast<std::size_t>(read[j])]), code->value,
        code->rows == 1 ? "once" : fmt::format("{} times", code->rows), code->value));
  }
}

void CsvParser::look_for_numbers() {
  is_looking_ = true;
  na_numbers_.push_back(std::numeric_limits<double>::quiet_NaN());  // each field is looked at
}

double CsvParser::look_at(const Field& field, index_t column) {
  if (is_missing(field.text)) return std::numeric_limits<double>::quiet_NaN();
  Numbers& numbers = numbers_[static_cast<std::size_t>(column)];
  ++numbers.all;
  if (may_be_number(field.text, Decimal::point)) ++numbers.by_point;
  if (may_be_number(field.text, Decimal::comma)) ++numbers.by_comma;
  return std::numeric_limits<double>::quiet_NaN();
}

std::vector<bool> CsvParser::columns_of_numbers() const {
  const auto count = [&](index_t Numbers::*by) {
    return std::ranges::count_if(
        numbers_, [&](const Numbers& each) { return each.all > 0 && each.*by == each.all; });
  };
  const bool is_comma = asked_.decimal == Decimal::automatic
                            ? count(&Numbers::by_comma) > count(&Numbers::by_point)
                            : asked_.decimal == Decimal::comma;
  std::vector<bool> are_numbers;
  for (const Numbers& each : numbers_) {
    const index_t found = is_comma ? each.by_comma : each.by_point;
    are_numbers.push_back(found > 0 && 2 * found >= each.all);
  }
  return are_numbers;
}

void CsvParser::finish(index_t rows) {
  is_first_pass_ = is_observing_ = false;
  for (std::size_t j = 0; j < missing_by_column_.size(); ++j) {
    if (missing_by_column_[j] < rows) continue;
    const auto field = target_.empty()
                           ? j
                           : static_cast<std::size_t>(std::find(target_.begin(), target_.end(),
                                                                static_cast<index_t>(j)) -
                                                      target_.begin());
    WaysOut ways;
    const std::string list = list_without(field, width_);
    const bool reads_all =
        target_.empty() || (!key_columns_.empty() && asked_.columns.empty() && only_.empty());
    if (reads_all && found_.index_column != Answer::yes && width_ > 1)
      ways.push_back({{.hint = fmt::format("--columns {} leaves it out", list),
                       .options = with([&](CsvOptions& o) { o.columns = list; }),
                       .change = change_}});
    throw CsvRefusal(
        fmt::format("{}: column {} holds no number in any line", lines_.shown(), field + 1),
        std::move(ways));
  }
  if (is_decimal_guessed_ && !is_decimal_confirmed_)
    throw CsvRefusal(
        thousands_place_ + "is the comma a decimal sign, or does it separate thousands?",
        {{{.hint = "if it is a decimal sign: --decimal comma",
           .options = with([](CsvOptions& o) { o.decimal = Decimal::comma; }),
           .change = change_},
          {.hint = "if it separates thousands: --thousands comma",
           .options = with([](CsvOptions& o) { o.thousands = ','; }),
           .change = change_}}});
  if (missing_ > 0)
    notes_.push_back(fmt::format(
        "{} read as NaN, the first at {}",
        missing_ == 1 ? "a missing number is" : fmt::format("{} missing numbers are", missing_),
        missing_place_));
  if (infinite_ > 0)
    notes_.push_back(
        fmt::format("{} read as infinite, the first at {}",
                    infinite_ == 1 ? "a number is" : fmt::format("{} numbers are", infinite_),
                    first_infinite_));
  if (rounded_ > 0)
    notes_.push_back(fmt::format(
        "{} more digits than float64 holds, the first at {}",
        rounded_ == 1 ? "a whole number has" : fmt::format("{} whole numbers have", rounded_),
        first_rounded_));
  note_columns();
  note_missing_codes();
  const bool counts = counts_ && rows > 2 && first_number_ == count_offset_ &&
                      (first_number_ == 0 || first_number_ == 1);
  if (counts && width_ > 1 && target_.empty() && !header_.empty())
    notes_.push_back(
        fmt::format("the first column counts the rows from {}; if it is an index, "
                    "--index-column yes leaves it out",
                    first_number_));
  found_.delimiter = separator_;
  if (found_.decimal == Decimal::automatic) found_.decimal = Decimal::point;
  if (found_.header == Answer::automatic) found_.header = Answer::no;
}

}  // namespace qrtool
