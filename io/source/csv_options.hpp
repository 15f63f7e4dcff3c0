// SPDX-License-Identifier: Apache-2.0
// csv_options.hpp: how a CSV file is written: what the user says of it, and what was found.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

enum class Decimal { automatic, point, comma };
enum class Answer { automatic, yes, no };

inline constexpr std::pair<std::string_view, Decimal> decimal_words[] = {
    {"auto", Decimal::automatic}, {"point", Decimal::point}, {"comma", Decimal::comma}};
inline constexpr std::pair<std::string_view, Answer> answer_words[] = {
    {"auto", Answer::automatic}, {"yes", Answer::yes}, {"no", Answer::no}};
inline constexpr std::pair<std::string_view, char> delimiter_words[] = {
    {"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"space", ' '}, {"pipe", '|'}};
inline constexpr std::pair<std::string_view, char> thousands_words[] = {
    {"comma", ','}, {"point", '.'}, {"space", ' '}, {"apostrophe", '\''}};

/// How a CSV file is written. Members that are automatic or empty are found from the text.
struct CsvOptions {
  char delimiter = 0;
  Decimal decimal = Decimal::automatic;
  char thousands = 0;     // between the digits of large numbers; 0: nothing is
  index_t skip_rows = 0;  // lines at the beginning that are not looked at
  index_t names_row = 0;  // the line of names, from 1: no line above it is looked at; 0: not known
  index_t end_row = 0;    // the last line that is read; 0: all are
  Answer header = Answer::automatic;
  Answer index_column = Answer::automatic;
  std::string columns = {};                // "2-5,name,8-"; empty: all
  std::vector<std::string> na_texts = {};  // that mean a missing number, beside the usual ones

  bool operator==(const CsvOptions&) const = default;
};

/// The names of these options in outputs.
inline constexpr std::array csv_option_names{
    "csv_delimiter", "csv_decimal", "csv_thousands",    "csv_skip_rows", "csv_names_row",
    "csv_end_row",   "csv_header",  "csv_index_column", "csv_columns",   "csv_na_text"};

using TextPairs = std::vector<std::pair<std::string, std::string>>;

/// Returns the options as names and words, for the attributes of an output; automatic ones are left
/// out.
TextPairs to_text(const CsvOptions& options);

/// Refuses options for CSV that are given for another format; `shown` is the file's name. Errors:
/// UsageError.
void refuse_csv_options(const CsvOptions& options, const std::string& shown);

/// Returns `options`, with the options that are left open set from the names and words of
/// to_text().
CsvOptions with_recorded(CsvOptions options, const TextPairs& recorded);

}  // namespace qrtool
