// SPDX-License-Identifier: Apache-2.0
// parser_header.cpp: finds out whether a line is a header and the first column an index, and which
// columns are read.
#include "io/csv/parser/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "io/csv/parser/columns.hpp"
#include "io/csv/parser/words.hpp"
#include "io/text/number.hpp"

namespace qrtool {
namespace {

/// Whether the names are 0, 1, 2, ... from the name `begin` on.
bool counts_from_zero(const std::vector<std::string>& names, std::size_t begin, std::size_t first) {
  for (std::size_t j = begin; j < names.size(); ++j)
    if (names[j] != std::to_string(first + j - begin)) return false;
  return names.size() > begin;
}

/// Whether the names are numbers of columns beside an index: ",0,1,2" or "\"\",\"1\",\"2\"".
bool is_numbered_header(std::string_view line, const std::vector<std::string>& names) {
  if (names.size() < 2 || !names[0].empty()) return false;
  return counts_from_zero(names, 1, line.starts_with("\"\"") && names[1] == "1" ? 1 : 0);
}

/// Whether this may be a field between tabs. It may not be several numbers with a blank or another
/// separator between them.
bool may_stand_beside_tab(const std::string& field) {
  return !begins_like_number(field) || is_any_number(field) || is_date(field);
}

}  // namespace

void CsvParser::look_for_comments(std::string_view& line, std::vector<std::string>& below) {
  // A comment may hold any character, so only the text before it tells the separator.
  const auto has_separator = [&](std::string_view each) {
    const char separator =
        find_separator(each.substr(0, find_comment(each, Comments::anywhere)), found_.decimal);
    return separator != 0 && separator != ' ';
  };
  if (separator_ == 0)
    comments_ = has_separator(line) || std::ranges::any_of(below, has_separator)
                    ? Comments::whole_lines
                    : Comments::anywhere;
  line = line.substr(0, find_comment(line, comments_));
  for (std::string& each : below) each.resize(std::min(find_comment(each, comments_), each.size()));
}

void CsvParser::look_for_tabs(std::string_view line, const std::vector<std::string>& below) {
  if (separator_ != 0) return;
  const std::size_t width = names_of(line, '\t').size();
  bool has_tab_between = find_separator(line, found_.decimal) == '\t';
  const auto fits = [&](std::string_view each) {
    const std::vector<std::string> fields = names_of(each, '\t');
    return fields.size() == width &&
           std::all_of(fields.begin(), fields.end(), may_stand_beside_tab);
  };
  bool is_table = width > 1 && fits(line);
  for (std::size_t i = 0; i < below.size() && is_table; ++i) {
    is_table = fits(below[i]);
    has_tab_between = has_tab_between || find_separator(below[i], found_.decimal) == '\t';
  }
  if (is_table && has_tab_between) separator_ = '\t';
}

void CsvParser::look_for_last_separators(std::string_view line,
                                         const std::vector<std::string>& below) {
  const auto ends_so = [&](std::string_view each) {
    const char separator = separator_of(each);
    if (separator == 0 || separator == ' ') return false;
    const std::vector<std::string> fields = names_of(each, separator);
    return fields.size() > 1 && fields.back().empty();
  };
  ends_with_separator_ = !is_factor_ && found_.columns.empty() && !below.empty() && ends_so(line) &&
                         std::ranges::all_of(below, ends_so);
}

index_t CsvParser::lines_of_units(const std::vector<std::string>& below) const {
  constexpr std::size_t most = 3;
  if (header_.empty()) return 0;
  const auto is_value = [&](const std::string& field) {
    return begins_like_number(field) || is_any_number(field) || is_date(field) ||
           (!field.empty() && is_missing(field));
  };
  std::vector<std::vector<std::string>> lines;
  for (const std::string& line : below) lines.push_back(names_of(line, separator_of(line)));
  std::size_t row = 0;
  while (row < lines.size() && std::ranges::none_of(lines[row], is_value)) ++row;
  if (row == lines.size()) return 0;
  if (asked_.names_row > 0 && !guesses_names_) return static_cast<index_t>(row);
  const std::size_t width = lines[row].size();
  if (row > most || names_of(header_, separator_of(header_)).size() != width) return 0;
  for (std::size_t i = 0; i < row; ++i) {
    if (lines[i].size() != width || std::ranges::none_of(lines[i], is_word)) return 0;
    for (std::size_t j = 0; j < width; ++j)
      if (!lines[i][j].empty() && !is_value(lines[row][j])) return 0;
  }
  return static_cast<index_t>(row);
}

bool CsvParser::take_commented_header(std::string_view names, std::string_view row, index_t line) {
  const std::vector<std::string> fields = names_of(names, separator_of(row));
  const bool are_names =
      fields.size() > 1 && fields.size() == names_of(row, separator_of(row)).size() &&
      std::ranges::all_of(fields, [](const std::string& field) {
        return is_word(field) && !is_any_number(field) && field.find(": ") == std::string::npos;
      });
  if (!are_names || is_factor_ || found_.header != Answer::automatic) return false;
  header_ = as_utf8(names);
  header_line_ = line;
  found_.names_row = line;
  found_.header = Answer::yes;
  notes_.push_back(fmt::format(
      "line {}, a comment, is taken for the names of the columns; --header no takes none", line));
  return true;
}

/// Whether blanks stand between the numbers of a field, as in "33,3 49" cut at the comma.
bool CsvParser::is_run_of_numbers(std::string_view field) const {
  const std::vector<std::string> words = names_of(field, ' ');
  return words.size() > 1 && std::all_of(words.begin(), words.end(), [&](const std::string& word) {
           return is_any_number(word) || is_missing(word);
         });
}

/// If columns are chosen, the fields that would show that a comma is no separator are not read.
/// Errors: InputError if the comma may be a decimal sign.
void CsvParser::refuse_doubtful_comma(std::string_view row,
                                      const std::vector<std::string>& fields) const {
  const bool is_guessed =
      separator_ == ',' && found_.delimiter == 0 && found_.decimal == Decimal::automatic;
  if (!is_guessed || (found_.columns.empty() && only_.empty()) ||
      row.find_first_of(".\"") != std::string_view::npos)
    return;
  for (const std::string& field : fields)
    if (is_run_of_numbers(field))
      throw CsvRefusal(place(1) + quoted_text(field) +
                           " is numbers with blanks between them: is the comma a decimal sign?",
                       {comma_or_not()});
}

/// Returns the separator of the text or, if it is not known yet, the separator of this line.
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

/// Whether a header is like ",2018,2019" above names: an index without a name (or with the name
/// NA), and columns with numbers.
bool CsvParser::is_beside_index(const std::vector<std::string>& fields,
                                const std::vector<std::string>& below) const {
  if (fields.size() < 2 || !is_missing(fields[0]) || below.empty()) return false;
  const std::vector<std::string> row = names_of(below[0], separator_of(below[0]));
  return row.size() == fields.size() && is_word(row[0]) && !is_missing(row[0]) &&
         !is_any_number(row[0]) &&
         std::all_of(fields.begin() + 1, fields.end(), [](const std::string& field) {
           return field.empty() || is_whole_number(field);
         });
}

/// "country,2018,2019" above names may be a header, or a row of numbers that has a name. Either may
/// lack a field, or have NA there.
void CsvParser::refuse_doubtful_header(const std::vector<std::string>& fields,
                                       const std::vector<std::string>& below) const {
  std::vector<std::string> numbers;
  std::size_t texts = 0;
  for (const std::string& field : fields) {
    if (is_missing(field)) continue;
    if (is_word(field) && !is_any_number(field))
      ++texts;
    else
      numbers.push_back(field);
  }
  const bool has_gap = numbers.size() + texts < fields.size();
  std::sort(numbers.begin(), numbers.end());
  const bool are_distinct = std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end();
  const auto is_counting = [](const std::string& field) {
    return is_whole_number(field) && field[0] != '-' && field[0] != '+';
  };
  if (texts == 0 ? !is_beside_index(fields, below) : numbers.empty() && !has_gap) return;
  if (below.empty() || !are_distinct || !std::all_of(numbers.begin(), numbers.end(), is_counting))
    return;
  const bool is_index = texts <= 1 && (is_word(fields[0]) || texts == 0);
  const bool says_index =
      is_index && found_.columns.empty() && found_.index_column == Answer::automatic;
  const std::string rest = says_index ? " --index-column yes" : "";
  const auto answer = [&](Answer is_header) {
    return with([&](CsvOptions& o) {
      o.header = is_header;
      if (says_index) o.index_column = Answer::yes;
    });
  };
  throw CsvRefusal(
      fmt::format("{}names and {}: are they the names of the columns, or a row?", place(1),
                  numbers.empty() ? "missing numbers" : "whole numbers"),
      {{{.hint = fmt::format("if line {} holds names: --header yes{}", lines_.number(), rest),
         .options = answer(Answer::yes),
         .change = change_},
        {.hint = "if it is a row: --header no" + rest,
         .options = answer(Answer::no),
         .change = change_}}});
}

bool CsvParser::take_header(std::string_view line, const std::vector<std::string>& below) {
  if (found_.header == Answer::no) return false;
  const std::vector<std::string> fields = names_of(as_utf8(line), separator_of(line));
  bool is_header = found_.header == Answer::yes || found_.names_row > 0 ||
                   is_numbered_header(line, fields) ||
                   chooses_by_name({"--columns", found_.columns}, fields) ||
                   chooses_by_name({"--by", key_columns_}, fields);
  bool has_name = false, has_number = false, has_na = false;
  for (std::size_t j = 0; j < fields.size() && !is_header; ++j) {
    const std::string& field = fields[j];
    const bool is_number =
        begins_like_number(field) || is_any_number(field) || is_run_of_numbers(field);
    has_number = has_number || is_number;
    has_na = has_na || (!field.empty() && is_missing(field));
    has_name = has_name || (!field.empty() && !is_number && !is_missing(field));
  }
  if (!is_header && has_name && !has_number && !has_na) is_header = true;
  const bool is_mixed = !is_header && !is_factor_ && has_name && (has_number || has_na);
  const bool may_be_index =
      !is_header && !is_factor_ && !has_name && is_beside_index(fields, below);
  if (may_be_index && fields[0].empty()) is_header = true;
  for (std::size_t j = 0; is_mixed && j < fields.size() && !is_header; ++j)
    is_header = is_word(fields[j]) && !is_missing(fields[j]) && !is_likely_missing(fields[j]) &&
                !is_run_of_numbers(fields[j]) && stands_above_numbers(j, fields.size(), below);
  if (is_mixed && is_header)
    notes_.push_back(fmt::format(
        "line {} is taken for the names of the columns, since a word in it stands above numbers; "
        "--header no reads it as numbers",
        lines_.number()));
  if ((is_mixed || may_be_index) && !is_header) refuse_doubtful_header(fields, below);
  if (!is_header) return false;
  if (std::count(line.begin(), line.end(), '"') % 2 != 0)
    throw InputError(place(line.rfind('"') + 1) + "the quote is not closed");
  header_ = as_utf8(line);
  if (header_ != line) notes_.push_back("the names are no UTF-8 and are read as Windows-1252");
  header_line_ = lines_.number();
  header_is_cut_ = line.size() < lines_.text().size();
  found_.header = Answer::yes;
  return true;
}

/// Whether the name that is missing in a header of one name less than a row has fields is the name
/// of an index. Unless the user says so, the first field decides: words are an index, numbers may
/// be data. Errors: InputError.
bool CsvParser::is_short_header(std::string_view row) const {
  if (found_.index_column != Answer::automatic) return found_.index_column == Answer::yes;
  std::size_t at = 0;
  const Field first = take_field(row, at, separator_);
  double value = 0;
  if (parse_number(first.text, value) != Parsed::number) return true;
  const auto answer = [&](Answer is_index) {
    return with([&](CsvOptions& o) { o.index_column = is_index; });
  };
  throw CsvRefusal(header_place() +
                       "the header has a name for each column if blanks separate its names, and "
                       "one less if they do not",
                   {{{.hint = "if the first column is an index: --index-column yes",
                      .options = answer(Answer::yes),
                      .change = change_},
                     {.hint = "if it is data: --index-column no",
                      .options = answer(Answer::no),
                      .change = change_}}});
}

/// Returns the names of a header that fits a row, or that has one name less.
std::vector<std::string> CsvParser::fit_header(std::string_view row, index_t width) {
  if (header_.empty()) return {};
  std::vector<std::string> names = names_of(header_, separator_);
  if (std::ssize(names) == width) return names;
  const bool has_bar = row.find('|') != std::string_view::npos;
  if (header_is_cut_)
    throw CsvRefusal(
        fmt::format("{}the header has {} before its comment where line {} has {}", header_place(),
                    plural(std::ssize(names), "name"), lines_.number(), plural(width, "column")),
        {has_bar ? ways_to_pipe(row)
                 : std::vector<WayOut>{{.hint = "put names that hold # or % in quotes",
                                        .options = {},
                                        .is_tried = false}}});
  // The header may have another separator than the rows, as "speed in km/h" above one column.
  std::vector<std::string> others = names_of(header_, find_separator(header_, found_.decimal));
  if (std::ssize(others) == width) {
    const bool is_doubtful = separator_ == ',' && found_.delimiter == 0 && width == 2 &&
                             found_.decimal == Decimal::automatic;
    if (is_doubtful)
      throw CsvRefusal(header_place() +
                           "the header has blanks where the rows have commas: is the "
                           "comma a decimal sign?",
                       {comma_or_not()});
    // "life exp" above an index and a column, with tabs between them: one name, or two.
    const bool may_be_short = std::ssize(names) + 1 == width && separator_ != ',';
    if (may_be_short && is_short_header(row)) return names;
    return others;
  }
  if (std::ssize(names) + 1 == width) return names;
  const index_t line = header_line_;
  throw CsvRefusal(
      fmt::format("{}the header has {} where line {} has {}", header_place(),
                  plural(std::ssize(names), "name"), lines_.number(), plural(width, "column")),
      {ways_to_pipe(row),
       ways_to_names(),
       {{.hint = fmt::format("leave the header out: --skip-rows {}", line),
         .options = with([&](CsvOptions& o) { o.skip_rows = line; }),
         .change = change_}}});
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
  // The names belong to the columns behind the index, even if only some columns are read.
  index_must_count_ =
      is_short && !first.is_quoted &&
      (begins_like_number(first.text) || parse_number(first.text, value) == Parsed::number);
  if (!found_.columns.empty()) return false;
  notes_.push_back(fmt::format(
      "the first column is left out as an index, since {}; --index-column no reads it",
      is_short ? "the header has one name less than a row has columns" : "it has no name"));
  return true;
}

/// Sets the columns of the text and their names.
void CsvParser::set_columns(index_t width, std::vector<std::string> names, bool without_index) {
  table_.has_header = !names.empty();
  if (std::ssize(names) + 1 == width) names.insert(names.begin(), "");
  table_.columns.resize(static_cast<std::size_t>(width));
  for (std::size_t j = 0; j < table_.columns.size(); ++j) {
    if (j < names.size()) table_.columns[j].name = std::move(names[j]);
    table_.columns[j].place = static_cast<index_t>(j) - (without_index ? 1 : 0);
  }
  if (without_index)
    table_.columns.front() = {.name = table_.columns.front().name, .role = ColumnRole::index};
}

/// Returns the columns that a list names. Where one is missing, the names may be in another line.
std::vector<index_t> CsvParser::columns_of(const ColumnList& list) const {
  try {
    return choose_columns(list, table_, header_place());
  } catch (const InputError& error) {
    throw CsvRefusal(
        error.what(),
        {ways_to_names(), {{.hint = error.hint(), .options = asked_, .is_tried = false}}});
  }
}

/// Decides to which column of the matrix each field goes.
void CsvParser::choose_targets(bool without_index) {
  const index_t width = std::ssize(table_.columns);
  columns_ = width;
  if (without_index && found_.columns.empty()) {
    if (width < 2)
      throw CsvRefusal(place(1) + "the only column is an index",
                       {{{.hint = "--index-column no reads it",
                          .options = with([](CsvOptions& o) { o.index_column = Answer::no; }),
                          .change = change_}}});
    columns_ = width - 1;
    for (index_t j = 0; j < width; ++j) target_.push_back(j - 1);
  }
  if (!found_.columns.empty()) {
    const std::vector<index_t> chosen = columns_of({"--columns", found_.columns});
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
  if (!only_.empty()) choose_only();
  if (ends_with_separator_) leave_last_out();
  if (!key_columns_.empty()) choose_keys();
  found_.index_column = without_index ? Answer::yes : Answer::no;
}

/// Leaves out the empty column behind the last separator.
void CsvParser::leave_last_out() {
  TableColumn& last = table_.columns.back();
  ends_with_separator_ = last.name.empty() && last.role == ColumnRole::read && columns_ > 1;
  if (!ends_with_separator_) return;
  last.role = ColumnRole::not_listed;
  close_gaps();
  notes_.push_back(
      fmt::format("column {} is empty and is left out: every line ends with a separator",
                  table_.columns.size()));
}

/// Leaves out the columns that no list names.
void CsvParser::choose_only() {
  std::vector<bool> is_named(table_.columns.size());
  for (const std::string& list : only_)
    for (const index_t column : columns_of({"", list}))
      is_named[static_cast<std::size_t>(column)] = true;
  for (std::size_t j = 0; j < is_named.size(); ++j)
    if (!is_named[j] && table_.columns[j].role == ColumnRole::read)
      table_.columns[j].role = ColumnRole::not_listed;
  close_gaps();
}

/// Takes the key columns out of the numbers of a row. A key column may be one that is left out
/// otherwise.
void CsvParser::choose_keys() {
  const std::vector<index_t> keys = columns_of({"--by", key_columns_});
  keys_.resize(keys.size());
  for (const index_t key : keys)
    table_.columns[static_cast<std::size_t>(key)].role = ColumnRole::key;
  close_gaps();
  for (std::size_t k = 0; k < keys.size(); ++k)
    target_[static_cast<std::size_t>(keys[k])] = -2 - static_cast<index_t>(k);
}

/// Gives the columns that are still read new places in a row, in the same order.
void CsvParser::close_gaps() {
  const auto width = static_cast<index_t>(table_.columns.size());
  if (target_.empty())
    for (index_t j = 0; j < width; ++j) target_.push_back(j);
  std::vector<index_t> fields(static_cast<std::size_t>(columns_), -1);  // of each place
  for (index_t j = 0; j < width; ++j) {
    index_t& target = target_[static_cast<std::size_t>(j)];
    const bool is_read = table_.columns[static_cast<std::size_t>(j)].role == ColumnRole::read;
    if (is_read) fields[static_cast<std::size_t>(target)] = j;
    target = -1;
  }
  columns_ = 0;
  for (const index_t field : fields) {
    if (field < 0) continue;
    const auto j = static_cast<std::size_t>(field);
    table_.columns[j].place = target_[j] = columns_++;
  }
}

void CsvParser::begin_rows(std::string_view row) {
  first_line_ = lines_.number();
  const std::vector<std::string> fields = names_of(row, separator_);
  const index_t width = std::ssize(fields);
  const std::vector<std::string> names = fit_header(row, width);
  refuse_doubtful_comma(row, fields);
  const bool without_index = has_index(row, width, names);
  set_columns(width, names, without_index && found_.columns.empty());
  choose_targets(without_index);
  width_ = width;
  missing_by_column_.assign(static_cast<std::size_t>(columns_), 0);
  codes_.resize(is_factor_ || parts_ > 1 ? 0 : static_cast<std::size_t>(columns_));
  if (is_looking_) numbers_.resize(static_cast<std::size_t>(columns_));
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
  const auto is_whole_or_gap = [&](const std::string& field) {
    return is_whole(field) || is_missing(field);
  };
  const bool is_whole_row = std::any_of(fields.begin(), fields.end(), is_whole) &&
                            std::all_of(fields.begin() + 1, fields.end(), is_whole_or_gap);
  first_row_is_whole_ = !has_quotes && is_whole_row && is_whole_or_gap(fields[0]);
  first_row_has_gap_ = is_whole_row && fields[0].empty();
  first_row_is_quoted_ = has_quotes;
  for (std::size_t at = 0; at != std::string_view::npos && first_row_is_quoted_;)
    first_row_is_quoted_ = take_field(row, at, separator_).is_quoted;
  may_be_header_ = first_row_is_whole_ || first_row_is_quoted_ || first_row_has_gap_;
  if (may_be_header_) first_fields_ = fields;
}

}  // namespace qrtool
