// SPDX-License-Identifier: Apache-2.0
// parser_errors.cpp: says what is wrong with a field or a line, and what to do about it.
#include "io/csv/parser/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "io/csv/parser/words.hpp"
#include "io/text/number.hpp"

namespace qrtool {
namespace {

/// Whether programs would write this text for true or false; 1 or 0.
std::string number_of_truth(std::string_view text, Decimal) {
  if (!is_truth(text)) return {};
  return text.starts_with('T') || text.starts_with('t') ? "1" : "0";
}

/// Returns the number before a comment in a text in which comments begin only at the start of a
/// line: "2 # first".
std::string before_comment(std::string_view text, Decimal decimal) {
  const std::size_t comment = find_comment(text, Comments::anywhere);
  if (comment == std::string_view::npos || comment == 0) return {};
  text = text.substr(0, comment);
  text = text.substr(0, text.find_last_not_of(blanks) + 1);
  double value = 0;
  const bool is_number = parse_number(text, value, ElementType::float64, decimal) == Parsed::number;
  return is_number ? std::string(text) : "";
}

/// Whether all fields are numbers if a comma is the decimal point.
bool has_decimal_commas(std::string_view line) {
  double value = 0;
  for (const std::string& field : names_of(line, find_separator(line, Decimal::comma)))
    if (parse_number(field, value, ElementType::float64, Decimal::comma) != Parsed::number)
      return false;
  return line.find(',') != std::string_view::npos;
}

}  // namespace

std::vector<WayOut> CsvParser::header_or_not() const {
  return {{.hint = "--header yes leaves the line out",
           .options = with([](CsvOptions& o) { o.header = Answer::yes; }),
           .change = change_},
          {.hint = "--header no reads it as numbers",
           .options = with([](CsvOptions& o) { o.header = Answer::no; }),
           .change = change_}};
}

std::vector<WayOut> CsvParser::comma_or_not() const {
  return {{.hint = "if it is: --delimiter space --decimal comma",
           .options = with([](CsvOptions& o) {
             o.delimiter = ' ';
             o.decimal = Decimal::comma;
           }),
           .change = change_},
          {.hint = "if it separates columns: --delimiter comma",
           .options = with([](CsvOptions& o) { o.delimiter = ','; }),
           .change = change_}};
}

void CsvParser::throw_not_a_number(const Field& field, std::string_view line) const {
  const std::string what = place(field.column) + quoted_text(field.text);
  if (parts_ == 1 && is_complex_text(field.text))
    throw InputError(what + " is a complex number, and the first rows are real ones",
                     "write a number of the first row as a complex one, for example 1+0j");
  throw CsvRefusal(what + " is not a number", ways_with_field(field, line));
}

/// Refuses a text behind the last separator, where the lines above have none.
void CsvParser::throw_not_empty(const Field& field) const {
  const std::string all = fmt::format("1-{}", width_);
  throw CsvRefusal(fmt::format("{}{} is in column {}, which is empty in the first rows",
                               place(field.column), quoted_text(field.text), width_),
                   {{{.hint = fmt::format("--columns {} reads it", all),
                      .options = with([&](CsvOptions& o) { o.columns = all; }),
                      .change = change_}}});
}

/// Returns the remedy that ends the table above a line without any number, which is a footnote or
/// begins another table.
std::vector<WayOut> CsvParser::ways_to_end(std::string_view line) const {
  const auto may_be_of_row = [&](const std::string& field) {
    return is_any_number(field) || may_be_number(field, Decimal::point) ||
           may_be_number(field, Decimal::comma) || is_likely_missing(field) ||
           (!field.empty() && is_missing(field));
  };
  if (lines_.number() == first_line_ || asked_.end_row > 0 || width_ == 1 || line == header_ ||
      std::ranges::any_of(names_of(line, separator_), may_be_of_row))
    return {};
  const index_t end = lines_.number() - 1;
  return {{.hint = fmt::format("if the table ends above this line: --end-row {}", end),
           .options = with([&](CsvOptions& o) { o.end_row = end; }),
           .change = change_}};
}

/// Returns the remedy that takes signs between the thousands of numbers.
std::vector<WayOut> CsvParser::ways_to_thousands(const Field& field) const {
  const char sign = sign_of_thousands(field.text, asked_.decimal);
  if (sign == 0 || asked_.thousands != 0) return {};
  for (const auto& [word, character] : thousands_words) {
    if (character != sign) continue;
    return {{.hint = fmt::format("if the {} separates thousands: --thousands {}", word, word),
             .options = with([&](CsvOptions& o) { o.thousands = sign; }),
             .change = change_}};
  }
  return {};
}

/// Returns remedies for a field that is no number.
WaysOut CsvParser::ways_with_field(const Field& field, std::string_view line) const {
  if (field.text == "%")  // it stands apart from its number
    return {
        {{.hint = "write the number without its percent sign", .options = {}, .is_tried = false}}};
  WaysOut ways;
  if (lines_.number() == first_line_) ways.push_back(ways_to_names());
  double value = 0;
  const bool has_comma =
      has_decimal_commas(line) ||
      parse_number(field.text, value, ElementType::float64, Decimal::comma) == Parsed::number;
  if (asked_.decimal == Decimal::automatic && found_.decimal != Decimal::comma && has_comma)
    ways.push_back({{.hint = "if the comma is the decimal sign: --decimal comma",
                     .options = with([](CsvOptions& o) { o.decimal = Decimal::comma; }),
                     .change = change_}});
  ways.push_back(ways_to_end(line));
  ways.push_back(ways_to_pipe(field.text));
  ways.push_back(ways_to_thousands(field));
  ways.push_back(ways_to_number(field));
  if (is_likely_missing(field.text))
    ways.push_back({{.hint = fmt::format("if a number is missing here: --na-text '{}'", field.text),
                     .options = with([&](CsvOptions& o) { o.na_texts.emplace_back(field.text); }),
                     .change = change_}});
  const bool is_header = lines_.number() == first_line_ && is_word(field.text) && header_.empty() &&
                         asked_.header == Answer::automatic;
  ways.push_back(ways_without_text(field, line));
  if (is_header)
    ways.push_back({{.hint = "if the line is a header: --header yes",
                     .options = with([](CsvOptions& o) { o.header = Answer::yes; }),
                     .change = change_}});
  std::vector<WayOut> without;
  if (is_truth(field.text))
    without.push_back(
        {.hint = "write 1 and 0 for true and false",
         .options = asked_,
         .change = changed([](TextChange& change) { change.mend = number_of_truth; })});
  if (width_ > 1 && table_.has_header)
    without.push_back({.hint = "", .options = asked_, .change = change_, .leaves_text_out = true});
  ways.push_back(std::move(without));
  return ways;
}

/// Returns remedies that read the field as the number that was probably meant.
std::vector<WayOut> CsvParser::ways_to_number(const Field& field) const {
  const Decimal decimal = found_.decimal == Decimal::comma ? Decimal::comma : Decimal::point;
  WayOut way{.hint = "", .options = asked_, .change = change_};
  if (const std::string number = before_comment(field.text, decimal); !number.empty()) {
    way.hint = fmt::format("a comment begins at the start of a line; write {}", number);
    way.change.mend = before_comment;
  } else {
    const NumberHint number_hint = hint_for_number(field.text, found_.decimal);
    if (number_hint.mend == nullptr) return {};
    way.hint = number_hint.hint;
    way.change.mend = number_hint.mend;
  }
  return {std::move(way)};
}

/// Returns the remedy that leaves out a first column of text.
std::vector<WayOut> CsvParser::ways_without_text(const Field& field, std::string_view line) const {
  const bool is_first = line.find_first_not_of(blanks) + 1 == field.column;
  const bool is_text = is_word(field.text) || field.is_quoted || is_date(field.text);
  if (!is_first || !is_text || !found_.columns.empty() || width_ == 1 ||
      found_.index_column == Answer::yes)
    return {};
  return {{.hint = "if the first column holds names or dates: --index-column yes leaves it out",
           .options = with([](CsvOptions& o) { o.index_column = Answer::yes; }),
           .change = change_,
           .leaves_text_out = true}};
}

/// Returns the remedy that takes bars as separators, if the text has any.
std::vector<WayOut> CsvParser::ways_to_pipe(std::string_view text) const {
  if (separator_ == '|' || text.find('|') == std::string_view::npos) return {};
  return {{.hint = "--delimiter pipe",
           .options = with([](CsvOptions& o) { o.delimiter = '|'; }),
           .change = change_}};
}

/// Returns ways to a header that is not the first line.
std::vector<WayOut> CsvParser::ways_to_names() const {
  if (asked_.skip_rows > 0 || asked_.names_row > 0) return {};
  std::vector<WayOut> ways;
  for (const WayOut::Names names : {WayOut::Names::are_first, WayOut::Names::are_last})
    ways.push_back({.hint = "", .options = asked_, .change = change_, .names = names});
  return ways;
}

void CsvParser::throw_ragged(std::size_t column, index_t found) const {
  WaysOut ways = {ways_to_pipe(lines_.text()), ways_to_end(lines_.text())};
  if (first_row_counts_ && found == width_ + 1 && asked_.header == Answer::automatic)
    ways.push_back({{.hint = fmt::format("if line {} is a header: --header yes", first_line_),
                     .options = with([](CsvOptions& o) { o.header = Answer::yes; }),
                     .change = change_}});
  if (found < width_)
    ways.push_back({{.hint = "write nan for a missing number",
                     .options = asked_,
                     .change = changed([](TextChange& change) { change.pads_rows = true; })}});
  throw CsvRefusal(fmt::format("{}{} where line {} has {}", place(column), plural(found, "column"),
                               first_line_, width_),
                   std::move(ways));
}

}  // namespace qrtool
