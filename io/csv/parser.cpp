// SPDX-License-Identifier: Apache-2.0
// parser.cpp: recognises headers, indexes, separators and decimal commas, and parses lines.
#include "io/csv/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/csv/columns.hpp"
#include "io/text/number.hpp"

namespace qrtool {
namespace {

/// The texts, beside nan, that NumPy, pandas, R and Excel write for a missing number.
constexpr std::string_view usual_na_texts[] = {"",     "NA",   "N/A",  "n/a",  "#N/A",
                                               "NULL", "null", "None", "<NA>", "NaT"};

/// Whether the names are 0, 1, 2, ... from the name `begin` on.
bool counts_from_zero(const std::vector<std::string>& names, std::size_t begin, std::size_t first) {
  for (std::size_t j = begin; j < names.size(); ++j)
    if (names[j] != std::to_string(first + j - begin)) return false;
  return names.size() > begin;
}

/// Whether the names are a header of numbered columns beside an index: ",0,1,2", or
/// "\"\",\"1\",\"2\"".
bool is_numbered_header(std::string_view line, const std::vector<std::string>& names) {
  if (names.size() < 2 || !names[0].empty()) return false;
  return counts_from_zero(names, 1, line.starts_with("\"\"") && names[1] == "1" ? 1 : 0);
}

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

/// The option that reads all columns but one.
std::string list_without(std::size_t column, index_t width) {
  std::string list = column == 0 ? "" : column == 1 ? "1" : fmt::format("1-{}", column);
  if (std::cmp_less(column + 1, width))
    list += fmt::format("{}{}-", list.empty() ? "" : ",", column + 2);
  return "--columns " + list;
}

/// Whether a text begins with a letter. A typographic minus sign is none.
bool is_word(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.empty() ? 0 : text[0]);
  return (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first >= 0xe3 ||
         (first >= 0xc3 && first < 0xe2);
}

/// The texts, beside those that always mean a missing number, that programs and people may write
/// for one.
constexpr std::string_view likely_na_texts[] = {"?", "-", "--", ".", "..", "*", "missing", "nil"};

bool is_likely_missing(std::string_view text) {
  return std::find(std::begin(likely_na_texts), std::end(likely_na_texts), text) !=
         std::end(likely_na_texts);
}

/// Whether a text is a number with a decimal point or comma.
bool is_any_number(std::string_view text) {
  double value = 0;
  return parse_number(text, value) == Parsed::number ||
         parse_number(text, value, ElementType::float64, Decimal::comma) == Parsed::number;
}

/// Whether a text looks like a date: "2020-01-31", "31/01/2020 12:00".
bool is_date(std::string_view text) {
  const auto is_sign = [](char c) { return c == '-' || c == '/' || c == ':'; };
  return begins_like_number(text) && std::count_if(text.begin(), text.end(), is_sign) >= 2 &&
         text.find_first_not_of("0123456789-/:. TZ+") == std::string_view::npos;
}

/// Whether a text is what programs write for true or false.
bool is_truth(std::string_view text) {
  constexpr std::string_view words[] = {"True", "False", "TRUE", "FALSE", "true", "false"};
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

/// Whether all are years that go up: names of columns more often than numbers.
bool are_years(const std::vector<std::string>& fields) {
  const auto is_year = [](const std::string& field) {
    return field.size() == 4 && is_whole_number(field) && field >= "1700" && field <= "2200";
  };
  return std::all_of(fields.begin(), fields.end(), is_year) &&
         std::is_sorted(fields.begin(), fields.end(), std::less_equal<>());
}

std::string plural(index_t count, const char* thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace

CsvParser::CsvParser(const TextLines& lines, const CsvOptions& options, bool is_factor)
    : lines_(lines), found_(options), is_factor_(is_factor), separator_(options.delimiter) {
  for (const std::string& text : options.na_texts) {
    double value = 0;
    const Decimal decimal = options.decimal == Decimal::comma ? Decimal::comma : Decimal::point;
    if (parse_number(text, value, ElementType::float64, decimal) == Parsed::number)
      na_numbers_.push_back(value);
  }
}

std::string CsvParser::place(std::size_t column) const {
  return fmt::format("{}:{}:{}: ", lines_.shown(), lines_.number(), column);
}

std::string CsvParser::header_place() const {
  return fmt::format("{}:{}:1: ", lines_.shown(), header_.empty() ? first_line_ : header_line_);
}

/// Returns the field at `at`, and moves `at` past the separator, or to npos after the last field.
CsvParser::Field CsvParser::take_field(std::string_view line, std::size_t& at,
                                       char separator) const {
  const std::string_view padding = separator == '\t' ? " " : blanks;
  const std::size_t start = std::min(line.find_first_not_of(padding, at), line.size());
  Field field{{}, start + 1};
  std::size_t end = 0;
  if (start < line.size() && line[start] == '"') {
    std::size_t closing = line.find('"', start + 1);
    // Two quotes within quotes are one of the text.
    while (closing != std::string_view::npos && line.substr(closing).starts_with("\"\""))
      closing = line.find('"', closing + 2);
    if (closing == std::string_view::npos)
      throw InputError(place(start + 1) + "the quote is not closed");
    field.text = line.substr(start + 1, closing - start - 1);
    field.is_quoted = true;
    end = std::min(line.find_first_not_of(padding, closing + 1), line.size());
    const bool is_run = separator == ' ' && end > closing + 1;
    if (end < line.size() && line[end] != separator && !is_run)
      throw InputError(place(end + 1) + "text after a closing quote");
  } else {
    end = separator == 0 ? line.size() : std::min(line.find(separator, start), line.size());
    if (separator == ' ') end = std::min(line.find_first_of(blanks, start), line.size());
    field.text = line.substr(start, end - start);
    field.text = field.text.substr(0, field.text.find_last_not_of(padding) + 1);
  }
  if (separator == ' ') {
    at = line.find_first_not_of(blanks, end);
  } else {
    at = end < line.size() ? end + 1 : std::string_view::npos;
  }
  return field;
}

// ---- headers and columns ------------------------------------------------------------------------

/// The separator of all lines, or where none is known yet that of this one.
char CsvParser::separator_of(std::string_view line) const {
  return separator_ != 0 ? separator_ : find_separator(line, found_.decimal);
}

/// Whether the first field of this column that holds something, in the lines below, is a number.
bool CsvParser::stands_above_numbers(std::size_t column, std::size_t names,
                                     const std::vector<std::string>& below) const {
  for (const std::string& line : below) {
    const std::vector<std::string> fields = names_of(line, separator_of(line));
    // R writes one name less than there are columns.
    const std::size_t at = column + (fields.size() == names + 1 ? 1 : 0);
    if (fields.size() <= at) return false;
    const std::string& text = fields[at];
    if (is_missing(text) || text.empty()) continue;
    return is_any_number(text);
  }
  return false;
}

/// Whether a header is like ",2018,2019" above names: an index without a name, and columns with
/// numbers.
bool CsvParser::is_beside_index(const std::vector<std::string>& fields,
                                const std::vector<std::string>& below) const {
  if (fields.size() < 2 || !fields[0].empty() || below.empty()) return false;
  const std::vector<std::string> row = names_of(below[0], separator_of(below[0]));
  return row.size() == fields.size() && is_word(row[0]) && !is_missing(row[0]) &&
         !is_any_number(row[0]) &&
         std::all_of(fields.begin() + 1, fields.end(), [](const std::string& field) {
           return field.empty() || is_whole_number(field);
         });
}

/// "country,2018,2019" above names may be a header, or a row of numbers that has a name.
void CsvParser::refuse_doubtful_header(const std::vector<std::string>& fields,
                                       const std::vector<std::string>& below) const {
  std::vector<std::string> numbers;
  std::size_t texts = 0;
  for (const std::string& field : fields) {
    if (is_word(field) && !is_missing(field) && !is_any_number(field))
      ++texts;
    else
      numbers.push_back(field);
  }
  std::sort(numbers.begin(), numbers.end());
  const bool are_distinct = std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
  const auto is_counting = [](const std::string& field) {
    return is_whole_number(field) && field[0] != '-' && field[0] != '+';
  };
  if (texts == 0 || numbers.empty() || below.empty() || !are_distinct ||
      !std::all_of(numbers.begin(), numbers.end(), is_counting))
    return;
  const bool is_index = texts == 1 && is_word(fields[0]);
  const std::string rest =
      is_index && found_.columns.empty() && found_.index_column == Answer::automatic
          ? " --index-column yes"
          : "";
  throw InputError(
      place(1) + "names and whole numbers: are they the names of the columns, or a row?",
      fmt::format("if line {0} holds names: --header yes{1}; if it is a row: --header "
                  "no{1}",
                  lines_.number(), rest));
}

bool CsvParser::take_header(std::string_view line, const std::vector<std::string>& below) {
  if (found_.header == Answer::no) return false;
  const std::vector<std::string> fields = names_of(line, separator_of(line));
  bool is_header = found_.header == Answer::yes || is_numbered_header(line, fields) ||
                   chooses_by_name({"--columns", found_.columns}, fields);
  bool has_name = false, has_number = false, has_gap = false;
  for (std::size_t j = 0; j < fields.size() && !is_header; ++j) {
    const std::string& field = fields[j];
    const bool is_number = begins_like_number(field) || is_any_number(field);
    has_number = has_number || is_number;
    has_gap = has_gap || (!field.empty() && is_missing(field));
    has_name = has_name || (!field.empty() && !is_number && !is_missing(field));
  }
  if (!is_header && has_name && !has_number && !has_gap) is_header = true;
  const bool is_mixed = !is_header && !is_factor_ && has_name && has_number;
  if (!is_factor_ && !has_name) is_header = is_header || is_beside_index(fields, below);
  for (std::size_t j = 0; is_mixed && j < fields.size() && !is_header; ++j)
    is_header = is_word(fields[j]) && !is_missing(fields[j]) && !is_likely_missing(fields[j]) &&
                stands_above_numbers(j, fields.size(), below);
  if (is_mixed && is_header)
    notes_.push_back(fmt::format(
        "line {} is taken for the names of the columns, since a word in it stands above numbers; "
        "--header no reads it as numbers",
        lines_.number()));
  if (is_mixed && !is_header) refuse_doubtful_header(fields, below);
  if (!is_header) return false;
  header_ = line;
  header_line_ = lines_.number();
  found_.header = Answer::yes;
  return true;
}

/// The names of a header that fits a row, or that has one name less.
std::vector<std::string> CsvParser::fit_header(std::string_view row, index_t width) {
  if (header_.empty()) return {};
  std::vector<std::string> names = names_of(header_, separator_);
  if (std::ssize(names) == width) return names;
  // The header may have another separator than the rows, as "speed in km/h" above one column.
  std::vector<std::string> others = names_of(header_, find_separator(header_, found_.decimal));
  if (std::ssize(others) == width) {
    const bool is_doubtful = separator_ == ',' && found_.delimiter == 0 && width == 2 &&
                             found_.decimal == Decimal::automatic;
    if (is_doubtful)
      throw InputError(header_place() +
                           "the header has blanks where the rows have commas: is the "
                           "comma a decimal sign?",
                       "if it is: --delimiter space --decimal comma; if it separates columns: "
                       "--delimiter comma");
    return others;
  }
  if (std::ssize(names) + 1 == width) return names;
  const bool has_last = std::ssize(names_of(row, separator_)) == width;
  throw InputError(
      fmt::format("{}the header has {} where line {} has {}", header_place(),
                  plural(std::ssize(names), "name"), lines_.number(), plural(width, "column")),
      has_last ? fmt::format("leave the header out: --skip-rows {}", header_line_) : "");
}

/// Whether the first column is an index, which is no part of the matrix.
bool CsvParser::has_index(std::string_view row, index_t width,
                          const std::vector<std::string>& names) {
  if (found_.index_column == Answer::yes) return true;
  if (found_.index_column == Answer::no || header_.empty()) return false;
  const bool is_short = std::ssize(names) + 1 == width;
  const bool is_nameless =
      !is_short && width > 1 && (names[0].empty() || names[0].starts_with("Unnamed: 0"));
  if (!is_short && !is_nameless) return false;
  std::size_t at = 0;
  const Field first = take_field(row, at, separator_);
  double value = 0;
  // The names belong to the columns behind it, also where the columns are chosen.
  index_must_count_ =
      is_short && !first.is_quoted &&
      (begins_like_number(first.text) || parse_number(first.text, value) == Parsed::number);
  if (!found_.columns.empty()) return false;
  notes_.push_back(fmt::format(
      "the first column is left out as an index, since {}; --index-column no reads it",
      is_short ? "the header has one name less than a row has columns" : "it has no name"));
  return true;
}

/// All columns of the text, with their names.
void CsvParser::set_columns(index_t width, std::vector<std::string> names, bool without_index) {
  table_.has_header = !names.empty();
  if (std::ssize(names) + 1 == width) names.insert(names.begin(), "");
  names.resize(static_cast<std::size_t>(width));
  for (std::string& name : names)
    table_.columns.push_back(
        {.name = std::move(name), .place = std::ssize(table_.columns) - (without_index ? 1 : 0)});
  if (without_index)
    table_.columns.front() = {.name = table_.columns.front().name, .role = ColumnRole::index};
}

/// Decides where the number of each field goes.
void CsvParser::choose_targets(bool without_index) {
  const index_t width = std::ssize(table_.columns);
  columns_ = width;
  if (without_index && found_.columns.empty()) {
    if (width < 2)
      throw InputError(place(1) + "the only column is an index", "--index-column no reads it");
    columns_ = width - 1;
    for (index_t j = 0; j < width; ++j) target_.push_back(j - 1);
  }
  if (!found_.columns.empty()) {
    const std::vector<index_t> chosen =
        choose_columns({"--columns", found_.columns}, table_, header_place());
    for (TableColumn& column : table_.columns) column.role = ColumnRole::not_listed;
    target_.assign(static_cast<std::size_t>(width), -1);
    for (std::size_t j = 0; j < chosen.size(); ++j) {
      const auto column = static_cast<std::size_t>(chosen[j]);
      target_[column] = static_cast<index_t>(j);
      table_.columns[column].role = ColumnRole::read;
      table_.columns[column].place = static_cast<index_t>(j);
    }
    columns_ = std::ssize(chosen);
  }
  found_.index_column = without_index ? Answer::yes : Answer::no;
}

void CsvParser::begin_rows(std::string_view row) {
  first_line_ = lines_.number();
  const std::vector<std::string> fields = names_of(row, separator_);
  const index_t width = std::ssize(fields);
  const std::vector<std::string> names = fit_header(row, width);
  const bool without_index = has_index(row, width, names);
  set_columns(width, names, without_index && found_.columns.empty());
  choose_targets(without_index);
  width_ = width;
  missing_by_column_.assign(static_cast<std::size_t>(columns_), 0);
  are_names_numbered_ =
      without_index && separator_ == ',' && found_.delimiter == 0 && std::ssize(names) + 1 == width;
  may_be_thousands_ = separator_ == ';' && found_.decimal == Decimal::automatic;
  may_be_decimals_ = separator_ == ',' && found_.delimiter == 0 && width == 2 && header_.empty() &&
                     found_.decimal == Decimal::automatic && !is_factor_;
  if (!is_factor_ && found_.header == Answer::automatic) look_at_first_row(row, fields);
}

/// Whether the first row may hold the names of the columns.
void CsvParser::look_at_first_row(std::string_view row, const std::vector<std::string>& fields) {
  const auto is_whole = [](const std::string& field) { return is_whole_number(field); };
  const bool has_quotes = row.find('"') != std::string_view::npos;
  first_row_counts_ = !has_quotes && counts_from_zero(fields, 0, 0);
  first_row_is_whole_ = !has_quotes && std::all_of(fields.begin(), fields.end(), is_whole);
  first_row_has_gap_ = fields.size() > 1 && fields[0].empty() &&
                       std::all_of(fields.begin() + 1, fields.end(), is_whole);
  first_row_is_quoted_ = has_quotes;
  for (std::size_t at = 0; at != std::string_view::npos && first_row_is_quoted_;)
    first_row_is_quoted_ = take_field(row, at, separator_).is_quoted;
  may_be_header_ = first_row_is_whole_ || first_row_is_quoted_ || first_row_has_gap_;
  if (may_be_header_) first_fields_ = fields;
}

// ---- guesses that the rows confirm --------------------------------------------------------------

void CsvParser::check_row(std::string_view line, index_t row, const std::vector<double>& numbers) {
  const auto at_row = static_cast<double>(row);
  double number = numbers[0];
  if (!target_.empty() && may_be_header_) number = look_below(line);
  if (row == 1) count_offset_ = number - at_row;
  if (row == 0) first_number_ = number;
  if (row > 1 && number - at_row != count_offset_) counts_ = false;
  if (are_names_numbered_ || may_be_decimals_) look_for_decimals(line);
  if (!index_must_count_) return;
  std::size_t at = 0;
  const Field field = take_field(line, at, separator_);
  double index = 0;
  const bool is_number = parse_number(field.text, index) == Parsed::number;
  const bool begins = row == 0 && (index == 0 || index == 1);
  if (!is_number || !(begins || (lines_.number() > first_line_ && index == last_index_ + 1)))
    throw InputError(
        fmt::format("{}the header in line {} has one name less than there are columns, but the "
                    "first column does not count the rows",
                    place(field.column), header_line_),
        "if it is an index all the same: --index-column yes; if not, mend the header or leave it "
        "out with --skip-rows");
  last_index_ = index;
}

/// Looks at all fields of a row, also of columns that are not read, for what decides about the
/// first row. Returns the number in the first field, or NaN.
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

/// Looks for what tells "ra 8,5", where the comma is a decimal sign, from a name and a number.
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

/// The names were read as the first row.
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
  const std::string ask = "--header yes leaves the line out, --header no reads it as numbers";
  if (first_row_has_gap_)
    throw InputError(begin +
                         "an empty field, then whole numbers: are they names of columns, or is "
                         "the first number missing?",
                     ask);
  const bool is_index_below = counts_ && count_offset_ == -1 && rows >= 4;
  const bool is_odd_one = is_index_below || !has_later_whole_number_;
  if (first_row_counts_ && width_ == 2 && is_odd_one)
    throw InputError(
        begin + "0 and 1: are they names of columns, as pandas writes them, or numbers?", ask);
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
    throw InputError(header_place() +
                         "every name of the index ends in a number before the comma: " +
                         "is the comma a decimal sign?",
                     "if it is: --delimiter space --decimal comma; if it separates columns: "
                     "--delimiter comma");
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

void CsvParser::finish(index_t rows) {
  is_first_pass_ = is_observing_ = false;
  for (std::size_t j = 0; j < missing_by_column_.size(); ++j) {
    if (missing_by_column_[j] < rows) continue;
    const auto field = target_.empty()
                           ? j
                           : static_cast<std::size_t>(std::find(target_.begin(), target_.end(),
                                                                static_cast<index_t>(j)) -
                                                      target_.begin());
    throw InputError(
        fmt::format("{}: column {} holds no number in any line", lines_.shown(), field + 1),
        target_.empty() && width_ > 1 ? list_without(field, width_) + " leaves it out" : "");
  }
  if (is_decimal_guessed_ && !is_decimal_confirmed_)
    throw InputError(
        thousands_place_ + "is the comma a decimal sign, or does it separate thousands?",
        "--decimal comma, or write the numbers without separators of thousands");
  if (missing_ > 0)
    notes_.push_back(fmt::format(
        "{} read as NaN, the first at {}",
        missing_ == 1 ? "a missing number is" : fmt::format("{} missing numbers are", missing_),
        missing_place_));
  note_columns();
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

// ---- numbers ------------------------------------------------------------------------------------

bool CsvParser::is_missing(std::string_view text) const {
  const auto is_text = [&](std::string_view na_text) { return na_text == text; };
  return std::any_of(std::begin(usual_na_texts), std::end(usual_na_texts), is_text) ||
         std::any_of(found_.na_texts.begin(), found_.na_texts.end(), is_text);
}

double CsvParser::note_missing(const Field& field, index_t column) {
  if (is_first_pass_) {
    if (missing_++ == 0) missing_place_ = fmt::format("{}:{}", lines_.number(), field.column);
    ++missing_by_column_[static_cast<std::size_t>(column)];
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// Looks for evidence in the text of a number of the first pass.
void CsvParser::observe(std::string_view text, std::size_t column) {
  const bool has_point = text.find('.') != std::string_view::npos;
  if (found_.decimal == Decimal::automatic && has_point) found_.decimal = Decimal::point;
  has_point_ = has_point_ || has_point;
  if (has_point && may_be_thousands_) may_be_thousands_ = may_have_thousands(text, '.');
  if (is_decimal_guessed_ && text.find(',') != std::string_view::npos) {
    if (thousands_place_.empty()) thousands_place_ = place(column) + quoted_text(text) + ": ";
    is_decimal_confirmed_ = is_decimal_confirmed_ || !may_have_thousands(text);
  }
  if (lines_.number() > first_line_ && is_whole_number(text)) has_later_whole_number_ = true;
  is_observing_ = found_.decimal == Decimal::automatic ||
                  (is_decimal_guessed_ && !is_decimal_confirmed_) || may_be_thousands_ ||
                  (first_row_is_whole_ && !has_later_whole_number_);
}

Parsed CsvParser::parse_text(const Field& field, ElementType type, double& number) {
  const Decimal decimal = found_.decimal == Decimal::comma ? Decimal::comma : Decimal::point;
  Parsed parsed = parse_number(field.text, number, type, decimal);
  if (parsed == Parsed::other && found_.decimal == Decimal::automatic && !is_factor_) {
    parsed = parse_number(field.text, number, type, Decimal::comma);
    if (parsed == Parsed::number) {
      found_.decimal = Decimal::comma;
      is_decimal_guessed_ = true;
    }
  }
  if (parsed == Parsed::number && is_observing_) observe(field.text, field.column);
  return parsed;
}

double CsvParser::number_of(const Field& field, std::string_view line, ElementType type,
                            index_t column) {
  double value = 0;
  if (field.is_quoted && lines_.number() > first_line_) has_later_quotes_ = true;
  const Parsed parsed = parse_text(field, type, value);
  if (parsed == Parsed::number) {
    const bool is_na =
        std::find(na_numbers_.begin(), na_numbers_.end(), value) != na_numbers_.end();
    return is_na ? note_missing(field, column) : value;
  }
  if (is_missing(field.text)) return note_missing(field, column);
  if (parsed == Parsed::other) throw_not_a_number(field, line);
  throw InputError(fmt::format("{}{} is too large for {}", place(field.column),
                               quoted_text(field.text), name_of(type)),
                   type == ElementType::float32 ? "use --precision double" : "");
}

/// Takes a number without quotes that ends at a separator, which is the usual field. Returns false,
/// without moving `at`, for every other field.
bool CsvParser::take_number(std::string_view line, std::size_t& at, ElementType type,
                            double& number) {
  std::size_t begin = at;
  if (separator_ != ' ')
    while (begin < line.size() && line[begin] == ' ') ++begin;
  const std::size_t length = parse_leading_number(line.substr(begin), number, type, found_.decimal);
  if (length == 0) return false;
  const std::size_t end = begin + length;
  if (end == line.size()) {
    at = std::string_view::npos;
  } else if (separator_ == ' ' && (line[end] == ' ' || line[end] == '\t')) {
    at = line.find_first_not_of(blanks, end);
  } else if (line[end] == separator_) {
    at = end + 1;
  } else {
    return false;
  }
  if (is_observing_) observe(line.substr(begin, length), begin + 1);
  return true;
}

void CsvParser::parse(std::string_view line, ElementType type, std::vector<double>& numbers) {
  // The first line of one column has no separator; one in a later line makes that line too long.
  if (separator_ == 0) separator_ = find_separator(line, found_.decimal);
  // All but the first number may be missing.
  if (separator_ == 0 && !header_.empty() && line.ends_with('\t')) separator_ = '\t';
  if (width_ == 0) begin_rows(line);
  numbers.resize(static_cast<std::size_t>(columns_));
  index_t found = 0;
  std::size_t surplus = 0;
  for (std::size_t at = 0; at != std::string_view::npos; ++found) {
    index_t to = found < width_ ? found : -1;
    if (to >= 0 && !target_.empty()) to = target_[static_cast<std::size_t>(found)];
    if (to >= 0 && na_numbers_.empty() &&
        take_number(line, at, type, numbers[static_cast<std::size_t>(to)]))
      continue;
    const Field field = take_field(line, at, separator_);
    if (to >= 0) numbers[static_cast<std::size_t>(to)] = number_of(field, line, type, to);
    if (found == width_) surplus = field.column;
  }
  if (found == width_) return;
  throw_ragged(found > width_ ? surplus : line.find_last_not_of(blanks) + 2, found);
}

// ---- messages -----------------------------------------------------------------------------------

void CsvParser::throw_not_a_number(const Field& field, std::string_view line) const {
  const std::string what = place(field.column) + quoted_text(field.text);
  if (is_complex_number(field.text))
    throw InputError(what + " is a complex number", "only real matrices can be factored");
  const bool is_first_row = lines_.number() == first_line_;
  const bool is_first_field = line.find_first_not_of(blanks) + 1 == field.column;
  const bool has_point = field.text.find('.') != field.text.npos;
  const bool has_comma = field.text.find(',') != field.text.npos;
  std::string hint = found_.decimal == Decimal::comma && has_point && !has_comma
                         ? "the decimal sign of this file is the comma"
                         : hint_for_number(field.text);
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
