// SPDX-License-Identifier: Apache-2.0
// parser.cpp: cuts a line into fields, and parses them into numbers.
#include "io/csv/parser/parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/utf8.hpp"
#include "io/read/remainder.hpp"
#include "io/text/number.hpp"

namespace qrtool {
namespace {

/// Texts besides nan that NumPy, pandas, R and Excel write for a missing number.
constexpr std::string_view usual_na_texts[] = {"",     "NA",   "N/A",  "n/a",  "#N/A",
                                               "NULL", "null", "None", "<NA>", "NaT"};

/// Returns the difference between an integer of at most 64 bits and `value`, the float64 nearest to
/// it.
double remainder_of_text(std::string_view text, double value) {
  if (std::abs(value) < first_inexact || !is_whole_number(text)) return 0;
  const bool is_negative = text[0] == '-';
  if (is_negative || text[0] == '+') text.remove_prefix(1);
  std::uint64_t integer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
  if (error != std::errc()) return 0;
  return is_negative ? -remainder_of(integer) : remainder_of(integer);
}

}  // namespace

CsvParser::CsvParser(const TextLines& lines, const CsvOptions& options, bool is_factor,
                     std::string key_columns)
    : lines_(lines),
      asked_(options),
      found_(options),
      is_factor_(is_factor),
      comments_(options.delimiter == ' ' ? Comments::anywhere : Comments::whole_lines),
      separator_(options.delimiter),
      key_columns_(std::move(key_columns)) {
  if (options.names_row > 0 && options.header == Answer::no)
    throw UsageError("--names-row and --header no contradict each other", "leave one of them away");
  if (options.thousands == '.' && options.decimal == Decimal::automatic)
    found_.decimal = Decimal::comma;
  else if (options.thousands != 0 && options.decimal == Decimal::automatic)
    found_.decimal = options.thousands == ',' ? Decimal::point : Decimal::automatic;
  for (const std::string& text : options.na_texts) {
    double value = 0;
    const Decimal decimal = options.decimal == Decimal::comma ? Decimal::comma : Decimal::point;
    if (parse_number(text, value, ElementType::float64, decimal) == Parsed::number)
      na_numbers_.push_back(value);
  }
}

void CsvParser::take_remainders() {
  takes_remainders_ = true;
  na_numbers_.push_back(std::numeric_limits<double>::quiet_NaN());  // each field is looked at
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

double CsvParser::note_infinite(const Field& field, double value) {
  if (is_first_pass_ && infinite_++ == 0)
    first_infinite_ =
        fmt::format("{}:{}: {}", lines_.number(), field.column, quoted_text(field.text));
  return value;
}

void CsvParser::note_rounded(const Field& field, double value) {
  if (rounded_++ > 0) return;
  first_rounded_ = fmt::format("{}:{}: {} is read as {:.0f}", lines_.number(), field.column,
                               quoted_text(field.text), value);
}

/// Keeps the text of a key, without its quotes.
void CsvParser::take_key(const Field& field, std::size_t key) {
  std::string& text = keys_[key];
  text.assign(field.text);
  if (!std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    text = as_utf8(text);
  if (!field.is_quoted) return;
  for (std::size_t at = text.find("\"\""); at != std::string::npos; at = text.find("\"\"", at + 1))
    text.erase(at, 1);
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
  if (parsed == Parsed::other && found_.thousands != 0) {
    const std::string plain = without_sign(field.text, found_.thousands, decimal);
    if (!plain.empty()) return parse_text({plain, field.column}, type, number);
  }
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
  if (!numbers_.empty()) return look_at(field, column);
  double value = 0;
  const Parsed parsed = parse_text(field, type, value);
  if (parsed == Parsed::number) {
    const bool is_na =
        std::find(na_numbers_.begin(), na_numbers_.end(), value) != na_numbers_.end();
    if (is_na) return note_missing(field, column);
    if (takes_remainders_) return remainder_of_text(field.text, value);
    if (is_first_pass_ && std::abs(value) >= first_inexact && is_rounded_integer(field.text, value))
      note_rounded(field, value);
    return value;
  }
  if (is_missing(field.text)) return note_missing(field, column);
  if (parse_microsoft(field.text, value))
    return std::isnan(value) ? note_missing(field, column) : note_infinite(field, value);
  if (change_.mend != nullptr && parsed == Parsed::other) {
    const std::string mended = change_.mend(field.text, found_.decimal);
    if (parse_text({mended, field.column}, type, value) == Parsed::number) return value;
  }
  if (parsed == Parsed::other) throw_not_a_number(field, line);
  throw InputError(fmt::format("{}{} is too large for {}", place(field.column),
                               quoted_text(field.text), name_of(type)),
                   type == ElementType::float32 ? "use --precision double" : "");
}

/// Parses a field of complex numbers. A missing one is NaN.
void CsvParser::take_complex(const Field& field, std::string_view line, ElementType type,
                             index_t column, double* parts) {
  std::complex<double> value;
  const Decimal decimal = found_.decimal == Decimal::comma ? Decimal::comma : Decimal::point;
  const Parsed parsed = parse_complex(field.text, value, type, decimal);
  if (parsed == Parsed::too_large)
    throw InputError(fmt::format("{}{} is too large for {}", place(field.column),
                                 quoted_text(field.text), name_of(complex_of(type))),
                     type == ElementType::float32 ? "use --precision double" : "");
  if (parsed == Parsed::other && !is_missing(field.text)) throw_not_a_number(field, line);
  if (parsed == Parsed::other) value = note_missing(field, column);
  parts[0] = value.real();
  parts[1] = value.imag();
  if (has_form_ || !is_complex_text(field.text)) return;
  has_form_ = true;
  complex_form_.has_parentheses = field.text.front() == '(';
  const char unit = field.text[field.text.size() - (complex_form_.has_parentheses ? 2 : 1)];
  complex_form_.unit = unit == 'j' || unit == 'J' ? 'j' : 'i';
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
  // All numbers of a row except the first may be missing.
  if (separator_ == 0 && !header_.empty() && line.ends_with('\t')) separator_ = '\t';
  if (width_ == 0) begin_rows(line);
  numbers.resize(static_cast<std::size_t>(columns_ * parts_));
  index_t found = 0;
  std::size_t surplus = 0;
  for (std::size_t at = 0; at != std::string_view::npos; ++found) {
    index_t to = found < width_ ? found : -1;
    if (to >= 0 && !target_.empty()) to = target_[static_cast<std::size_t>(found)];
    if (to >= 0 && parts_ == 1 && na_numbers_.empty() &&
        take_number(line, at, type, numbers[static_cast<std::size_t>(to)]))
      continue;
    const Field field = take_field(line, at, separator_);
    const bool is_later = lines_.number() > first_line_;
    if (to >= 0 && field.is_quoted && is_later) has_later_quotes_ = true;
    if (to >= 0 && parts_ == 2)
      take_complex(field, line, type, to, numbers.data() + 2 * to);
    else if (to >= 0)
      numbers[static_cast<std::size_t>(to)] = number_of(field, line, type, to);
    if (to < -1) take_key(field, static_cast<std::size_t>(-2 - to));
    if (ends_with_separator_ && found + 1 == width_ && !field.text.empty()) throw_not_empty(field);
    if (found == width_) surplus = field.column;
  }
  if (found == width_ || (ends_with_separator_ && found + 1 == width_)) return;
  if (change_.pads_rows && found < width_) {
    for (; found < width_; ++found) {
      const index_t to = target_.empty() ? found : target_[static_cast<std::size_t>(found)];
      if (to >= 0)
        std::fill_n(numbers.begin() + to * parts_, parts_,
                    std::numeric_limits<double>::quiet_NaN());
    }
    return;
  }
  throw_ragged(found > width_ ? surplus : line.find_last_not_of(blanks) + 2, found);
}

}  // namespace qrtool
