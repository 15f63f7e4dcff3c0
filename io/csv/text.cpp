// SPDX-License-Identifier: Apache-2.0
// text.cpp: finds separators, cuts lines into fields and parses numbers.
#include "io/csv/text.hpp"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/rereadable.hpp"

namespace qrtool {
namespace {

constexpr std::string_view blanks = " \t";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

enum class Parsed { number, too_large, other };

Parsed parse_token(std::string_view token, double& value, ElementType type = ElementType::float64) {
  if (token.size() > 1 && token[0] == '+' && token[1] != '+' && token[1] != '-') {
    token.remove_prefix(1);
  }
  const char* end = token.data() + token.size();
  const auto result = fast_float::from_chars(token.data(), end, value);
  // Characters after the number make the token no number.
  if (result.ptr != end || token.empty()) return Parsed::other;
  const std::size_t first = token[0] == '-' ? 1 : 0;
  const bool is_word = !is_digit(token[first]) && token[first] != '.';
  const bool is_inf = std::isinf(type == ElementType::float32 ? static_cast<float>(value) : value);
  if (is_inf && !is_word) return Parsed::too_large;
  return result.ec == std::errc() || value == 0 ? Parsed::number : Parsed::other;
}

bool begins_like_number(std::string_view token) {
  std::size_t i = 0;
  if (i < token.size() && (token[i] == '+' || token[i] == '-')) ++i;
  if (i < token.size() && token[i] == '.') ++i;
  return i < token.size() && is_digit(token[i]);
}

/// The action to recommend for a token that was probably meant as a number.
std::string hint_for(std::string_view token) {
  std::string changed(token);
  double value = 0;
  const std::size_t exponent = changed.find_first_of("dD");
  if (exponent != std::string::npos) {
    changed[exponent] = 'e';
    if (parse_token(changed, value) == Parsed::number) {
      return fmt::format("write the exponent with e: {}", changed);
    }
    changed = token;
  }
  const std::size_t comma = changed.find(',');
  if (comma != std::string::npos && begins_like_number(token)) {
    changed[comma] = '.';
    if (parse_token(changed, value) == Parsed::number) {
      return fmt::format("write a decimal point: {}", changed);
    }
  }
  if (token == "NA" || token == "N/A" || token == "NULL" || token == "null" || token == "?") {
    return "write nan for a missing number";
  }
  return {};
}

std::string quoted(std::string_view token) {
  constexpr std::size_t longest = 40;
  if (token.size() <= longest) return fmt::format("'{}'", escape(token));
  std::size_t cut = longest;  // between two characters of UTF-8
  while (cut > 0 && (static_cast<unsigned char>(token[cut]) & 0xc0U) == 0x80) --cut;
  return fmt::format("'{}...'", escape(token.substr(0, cut)));
}

/// The fields of a header, without their quotes. Unlike take_field() it accepts every line.
std::vector<std::string> names_of(std::string_view line, char separator) {
  std::vector<std::string> names(1);
  bool in_quotes = false;
  line = line.substr(0, line.find_last_not_of(blanks) + 1);
  for (const char c : line) {
    if (c == '"') {
      in_quotes = !in_quotes;
    } else if (!in_quotes && separator == ' ' && blanks.find(c) != std::string_view::npos) {
      if (!names.back().empty()) names.emplace_back();  // a run of blanks is one separator
    } else if (!in_quotes && c == separator) {
      names.emplace_back();
    } else if (!names.back().empty() || blanks.find(c) == std::string_view::npos) {
      names.back() += c;
    }
  }
  return names;
}

/// Whether the line is a header of numbered columns beside an index: ",0,1,2", or
/// "\"\",\"1\",\"2\"".
bool is_numbered_header(std::string_view line) {
  const std::vector<std::string> names = names_of(line, find_separator(line));
  if (names.size() < 2 || !names[0].empty()) return false;
  const std::size_t first = line.starts_with("\"\"") && names[1] == "1" ? 1 : 0;
  for (std::size_t j = 1; j < names.size(); ++j)
    if (names[j] != std::to_string(first + j - 1)) return false;
  return true;
}

/// The name of a file for a shell.
std::string shell_word(const std::string& name) {
  constexpr std::string_view special = " \t'\"$`&|;<>()*?[]#~!{}\\";
  if (name.find_first_of(special) == std::string::npos) return name;
  std::string word = "'";
  for (const char c : name) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

/// Commands that change the text, and then factor it: "sed ... x.csv | qrtool factor - OUT".
std::string pipe_through(const std::vector<std::string>& commands, const std::string& shown) {
  const bool is_stream = shown == standard_input;
  std::string text = is_stream ? "... | " : "";
  for (std::size_t i = 0; i < commands.size(); ++i) {
    text += commands[i] + (i == 0 && !is_stream ? " " + shell_word(shown) : "") + " | ";
  }
  return text + "qrtool factor - OUT";
}

/// The command that leaves the first column away.
std::string cut_command(std::string_view row, char separator) {
  // Fields in quotes may hold blanks: what follows the first one is kept.
  if (separator == ' ') return row.starts_with('"') ? "cut -d'\"' -f3-" : "awk '{$1=\"\"; print}'";
  if (separator == '\t') return "cut -f2-";
  return separator == ';' ? "cut -d';' -f2-" : "cut -d, -f2-";
}

/// Whether all fields are numbers where a comma is a decimal point.
bool has_decimal_commas(std::string_view line) {
  std::string changed(line);
  std::replace(changed.begin(), changed.end(), ',', '.');
  double value = 0;
  for (const std::string& field : names_of(changed, find_separator(changed)))
    if (parse_token(field, value) != Parsed::number) return false;
  return changed != line;
}

/// Whether all fields but the first are numbers.
bool has_numbers_after_name(std::string_view line, char separator) {
  const std::vector<std::string> fields = names_of(line, separator);
  double value = 0;
  return fields.size() > 1 && std::all_of(fields.begin() + 1, fields.end(), [&](const auto& field) {
           return parse_token(field, value) == Parsed::number;
         });
}

}  // namespace

LineKind classify(std::string_view& line) {
  const std::size_t comment = line.find_first_of("#%");
  line = line.substr(0, comment);
  if (line.find_first_not_of(blanks) == std::string_view::npos) {
    return comment == std::string_view::npos ? LineKind::blank : LineKind::comment;
  }
  return LineKind::data;
}

char find_separator(std::string_view line) {
  const std::size_t first = line.find_first_not_of(blanks);
  const std::size_t last = line.find_last_not_of(blanks);
  if (first == std::string_view::npos) return 0;
  line = line.substr(first, last - first + 1);
  bool in_quotes = false;
  std::string found;
  for (const char c : line) {
    if (c == '"') in_quotes = !in_quotes;
    if (!in_quotes && (c == ';' || c == '\t' || c == ',' || c == ' ')) found += c;
  }
  for (const char separator : {';', '\t', ',', ' '}) {
    if (found.find(separator) != std::string::npos) return separator;
  }
  return 0;
}

std::string CsvParser::place(std::size_t column) const {
  return fmt::format("{}:{}:{}: ", lines_.shown(), lines_.number(), column);
}

/// Returns the field at `at`, and moves `at` past the separator, or to npos after the last field.
CsvParser::Field CsvParser::take_field(std::string_view line, std::size_t& at,
                                       char separator) const {
  const std::string_view padding = separator == '\t' ? " " : blanks;
  const std::size_t start = std::min(line.find_first_not_of(padding, at), line.size());
  Field field{{}, start + 1};
  std::size_t end = 0;
  if (start < line.size() && line[start] == '"') {
    const std::size_t closing = line.find('"', start + 1);
    if (closing == std::string_view::npos) {
      throw InputError(place(start + 1) + "the quote is not closed");
    }
    field.text = line.substr(start + 1, closing - start - 1);
    end = std::min(line.find_first_not_of(padding, closing + 1), line.size());
    const bool is_run = separator == ' ' && end > closing + 1;
    if (end < line.size() && line[end] != separator && !is_run) {
      throw InputError(place(end + 1) + "text after a closing quote");
    }
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

bool CsvParser::take_header(std::string_view line) {
  const char separator = find_separator(line);
  const bool is_numbered = is_numbered_header(line);
  bool has_name = is_numbered;
  for (std::size_t at = 0; at != std::string_view::npos && !is_numbered;) {
    const Field field = take_field(line, at, separator);
    double value = 0;
    if (begins_like_number(field.text)) return false;
    if (parse_token(field.text, value) == Parsed::number) return false;
    has_name = has_name || !field.text.empty();
  }
  if (has_name) {
    header_ = line;
    header_line_ = lines_.number();
  }
  return has_name;
}

std::vector<std::string> CsvParser::names() const {
  if (header_.empty()) return {};
  std::vector<std::string> names = names_of(header_, separator_);
  return std::ssize(names) == columns_ ? names : std::vector<std::string>();
}

/// Refuses a row whose first column is an index, and a row of another width than the header.
void CsvParser::check_header(std::string_view row) const {
  const std::vector<std::string> names = names_of(header_, separator_);
  const std::size_t columns = names_of(row, separator_).size();
  const std::string cut = cut_command(row, separator_), shown = lines_.shown();
  const std::string begin = fmt::format("tail -n +{}", header_line_ + 1);
  const std::string place = fmt::format("{}:{}:1: ", shown, header_line_);
  if (names.size() == columns && (names[0].empty() || names[0].starts_with("Unnamed: 0"))) {
    // Numbers in the header would be taken for a row.
    const std::string command = is_numbered_header(header_) ? pipe_through({begin, cut}, shown)
                                                            : pipe_through({cut}, shown);
    throw InputError(
        place + "the first column has no name: it looks like an index",
        fmt::format("leave it out: {}; or write the file without it: to_csv(index=False) of "
                    "pandas, row.names=FALSE of R",
                    command));
  }
  // The header may have another separator than the rows, as "speed in km/h" above one column.
  if (names.size() == columns || names_of(header_, find_separator(header_)).size() == columns) {
    return;
  }
  const std::string widths =
      fmt::format("the header has {} name{} where line {} has {} column{}", names.size(),
                  names.size() == 1 ? "" : "s", lines_.number(), columns, columns == 1 ? "" : "s");
  const std::string without_header = pipe_through({begin}, shown);
  if (names.size() + 1 != columns) {
    throw InputError(place + widths, "leave the header out: " + without_header);
  }
  throw InputError(
      place + widths + ": is the first column an index?",
      fmt::format("if so, leave it out: {} (R writes none with row.names=FALSE); if not: {}",
                  pipe_through({begin, cut}, shown), without_header));
}

double CsvParser::parse_number(const Field& field, std::string_view line, ElementType type) const {
  double value = 0;
  const Parsed parsed = parse_token(field.text, value, type);
  if (parsed == Parsed::other) throw_not_a_number(field, line);
  if (parsed == Parsed::too_large) {
    throw InputError(fmt::format("{}{} is too large for {}", place(field.column),
                                 quoted(field.text), name_of(type)),
                     type == ElementType::float32 ? "use --precision double" : "");
  }
  return value;
}

void CsvParser::throw_not_a_number(const Field& field, std::string_view line) const {
  if (field.text.empty()) {
    throw InputError(place(field.column) + "empty field", "write nan for a missing number");
  }
  std::string hint = hint_for(field.text);
  if (hint.empty() && has_decimal_commas(line)) {
    hint = "write decimal points: " + pipe_through({"sed 's/,/./g'"}, lines_.shown());
  } else if (hint.empty() && field.column == 1 && !header_.empty() &&
             has_numbers_after_name(line, separator_)) {
    hint = "if the first column holds names, leave it out: " +
           pipe_through({cut_command(line, separator_)}, lines_.shown());
  }
  throw InputError(place(field.column) + quoted(field.text) + " is not a number", hint);
}

void CsvParser::throw_ragged(std::size_t column, index_t found) const {
  throw InputError(fmt::format("{}{} column{} where line {} has {}", place(column), found,
                               found == 1 ? "" : "s", first_line_, columns_),
                   found < columns_ ? "write nan for a missing number" : "");
}

void CsvParser::parse(std::string_view line, ElementType type, std::vector<double>& numbers) {
  numbers.clear();
  const bool is_first = columns_ == 0;
  // The first line of one column has no separator; one in a later line makes that line too long.
  if (separator_ == 0) separator_ = find_separator(line);
  if (is_first && !header_.empty()) check_header(line);
  std::size_t surplus = 0;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const Field field = take_field(line, at, separator_);
    numbers.push_back(parse_number(field, line, type));
    if (std::ssize(numbers) == columns_ + 1) surplus = field.column;
  }
  if (is_first) {
    columns_ = std::ssize(numbers);
    first_line_ = lines_.number();
  }
  if (std::ssize(numbers) != columns_) {
    const std::size_t end = line.find_last_not_of(blanks) + 2;
    throw_ragged(std::ssize(numbers) > columns_ ? surplus : end, std::ssize(numbers));
  }
}

}  // namespace qrtool
