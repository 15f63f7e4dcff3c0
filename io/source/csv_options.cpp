// SPDX-License-Identifier: Apache-2.0
// csv_options.cpp: options of CSV as words, and back.
#include "io/source/csv_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/error.hpp"

namespace qrtool {
namespace {

constexpr std::pair<const char*, index_t CsvOptions::*> lines_of_options[] = {
    {"csv_skip_rows", &CsvOptions::skip_rows},
    {"csv_names_row", &CsvOptions::names_row},
    {"csv_end_row", &CsvOptions::end_row}};

template <class T, std::size_t N>
std::string word_for(T value, const std::pair<std::string_view, T> (&words)[N]) {
  for (const auto& [word, meaning] : words)
    if (meaning == value) return std::string(word);
  return "";
}

template <class T, std::size_t N>
void set_by_word(T& value, std::string_view text,
                 const std::pair<std::string_view, T> (&words)[N]) {
  if (value != T{}) return;
  for (const auto& [word, meaning] : words)
    if (word == text) value = meaning;
}

}  // namespace

TextPairs to_text(const CsvOptions& o) {
  TextPairs pairs;
  const auto add = [&](const char* name, const std::string& word) {
    if (!word.empty() && word != "auto") pairs.emplace_back(name, word);
  };
  add("csv_delimiter", word_for(o.delimiter, delimiter_words));
  add("csv_decimal", word_for(o.decimal, decimal_words));
  add("csv_thousands", word_for(o.thousands, thousands_words));
  for (const auto& [name, line] : lines_of_options)
    if (o.*line > 0) add(name, std::to_string(o.*line));
  add("csv_header", word_for(o.header, answer_words));
  add("csv_index_column", word_for(o.index_column, answer_words));
  add("csv_columns", o.columns);
  std::string texts;
  for (const std::string& text : o.na_texts) texts += (texts.empty() ? "" : "\n") + text;
  add("csv_na_text", texts);
  return pairs;
}

void refuse_csv_options(const CsvOptions& options, const std::string& shown) {
  if (options == CsvOptions{}) return;
  std::string names;
  for (const auto& [name, word] : to_text(options))
    names += (names.empty() ? "--" : ", --") + name.substr(4);
  std::replace(names.begin(), names.end(), '_', '-');
  throw UsageError(fmt::format("{}: no CSV file, but there are options of CSV: {}", shown, names));
}

CsvOptions with_recorded(CsvOptions o, const TextPairs& recorded) {
  const bool has_na_texts = !o.na_texts.empty(), chooses_columns = !o.columns.empty();
  for (const auto& [name, word] : recorded) {
    if (name == "csv_delimiter") set_by_word(o.delimiter, word, delimiter_words);
    if (name == "csv_decimal") set_by_word(o.decimal, word, decimal_words);
    if (name == "csv_header") set_by_word(o.header, word, answer_words);
    if (name == "csv_thousands") set_by_word(o.thousands, word, thousands_words);
    for (const auto& [option, line] : lines_of_options)
      if (name == option && o.*line == 0)
        std::from_chars(word.data(), word.data() + word.size(), o.*line);
    if (name == "csv_index_column" && !chooses_columns)
      set_by_word(o.index_column, word, answer_words);
    if (name == "csv_columns" && !chooses_columns) o.columns = word;
    if (name != "csv_na_text" || has_na_texts) continue;
    for (std::size_t at = 0; at <= word.size();) {
      const std::size_t end = std::min(word.find('\n', at), word.size());
      o.na_texts.push_back(word.substr(at, end - at));
      at = end + 1;
    }
  }
  return o;
}

}  // namespace qrtool
