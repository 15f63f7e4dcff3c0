// SPDX-License-Identifier: Apache-2.0
// comments.cpp: writes "# input: NAME = WORD" and "# solve: NAME = WORD", and reads them again.
#include "io/csv/comments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "core/text.hpp"
#include "io/csv/coefficients.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_lines.hpp"
#include "io/report/stored_report.hpp"
#include "io/source/variable_record.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

/// A comment that says how the input of these factors was written begins with this text.
constexpr std::string_view csv_dialect_marker = "# input: ";

/// A comment that says how solutions were computed begins with this text.
constexpr std::string_view csv_solve_marker = "# solve: ";

/// Returns comments that say how the input was read. Options that a reader finds by itself are left
/// out.
std::string dialect_comments(const OutputSpec& spec) {
  std::string comments;
  bool is_plain = true;
  for (const auto& [name, value] : spec.attributes) {
    const std::string* word = std::get_if<std::string>(&value);
    if (word == nullptr || !name.starts_with("csv_")) continue;
    is_plain = is_plain && (name == "csv_delimiter" || name == "csv_header" || *word == "point" ||
                            *word == "no");
    for (std::size_t at = 0; at <= word->size();) {
      const std::size_t end = std::min(word->find('\n', at), word->size());
      comments += fmt::format("{}{} = {}\n", csv_dialect_marker, name.substr(4),
                              escape(word->substr(at, end - at)));
      at = end + 1;
    }
  }
  return is_plain ? "" : comments;
}

/// Returns comments that say how a variable of HDF5 was read.
std::string variable_comments(const OutputSpec& spec) {
  std::string comments;
  for (const auto& [name, value] : spec.attributes) {
    const std::string* word = std::get_if<std::string>(&value);
    if (word != nullptr && (name.starts_with("netcdf_") || name == order_guessed_name))
      comments += fmt::format("{}{} = {}\n", csv_dialect_marker, name, escape(*word));
  }
  return comments;
}

/// Returns comments with the options of `solve` that `verify` needs and that differ from the
/// defaults.
std::string solve_comments(const OutputSpec& spec) {
  constexpr std::pair<std::string_view, std::string_view> usual[] = {
      {"response", ""},     {"a", ""},
      {"polynomial", ""},   {"intercept", "no"},
      {"weights", ""},      {"weights_are", "none"},
      {"missing", "error"}, {"least_norm", "no"},
      {"ridge", "0"}};
  std::string comments;
  for (const auto& [name, value] : spec.attributes) {
    const std::string* word = std::get_if<std::string>(&value);
    if (word == nullptr) continue;
    bool is_unusual = false;
    for (const auto& [known, as_usual] : usual)
      is_unusual = is_unusual || (name == known && *word != as_usual);
    const bool is_of_variable = name.starts_with("right_side_netcdf_");
    if (is_unusual || is_of_variable || std::ranges::find(spec.stated, name) != spec.stated.end())
      comments += fmt::format("{}{} = {}\n", csv_solve_marker, name, escape(*word));
  }
  return comments;
}

/// Returns the names and words of the first comments of a set that begin with `marker`. They are in
/// the last of its files.
TextPairs comments_of_set(const std::string& path, std::string_view marker) {
  TextPairs pairs;
  for (const char* dataset :
       {"P", "R", "tau", "leverage", "fitted", "residuals", "covariance", "se", "X"}) {
    const std::string name = factor_file(path, dataset);
    if (!file_exists(name)) continue;
    TextLines lines(open_rereadable(name), escape(name));
    while (lines.next() && lines.text().starts_with('#')) {
      const std::string_view text = lines.text();
      const std::size_t equals = text.find(" = "), begin = marker.size();
      if (text.starts_with(marker) && equals != std::string_view::npos)
        pairs.emplace_back(text.substr(begin, equals - begin), text.substr(equals + 3));
    }
    break;
  }
  return pairs;
}

/// Comments name options of CSV without the prefix "csv_".
std::string recorded_name(const std::string& name) {
  return name.starts_with("netcdf_") || name == order_guessed_name ? name : "csv_" + name;
}

}  // namespace

std::string csv_comments(const OutputSpec& spec) {
  std::string comments;
  if (spec.with_report || !spec.numbers.empty())
    comments = dialect_comments(spec) + variable_comments(spec);
  if (!spec.numbers.empty()) comments += solve_comments(spec);
  return comments;
}

RecordedInput read_csv_recorded_input(const std::string& path) {
  if (is_coefficient_table(path)) return recorded_input_of_set(path);
  RecordedInput recorded;
  for (auto& [name, word] : comments_of_set(path, csv_dialect_marker))
    recorded.details.emplace_back(recorded_name(name), std::move(word));
  for (const auto& [name, word] : comments_of_set(path, csv_solve_marker))
    if (name == "order") recorded.order = word == "row" ? Order::row : Order::column;
  return recorded;
}

std::vector<std::string> read_csv_attributes(const std::string& path,
                                             const std::vector<const char*>& names) {
  if (is_coefficient_table(path)) return attributes_of_set(path, names);
  std::vector<std::string> words(names.size());
  for (auto& [name, word] : comments_of_set(path, csv_solve_marker)) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) words[static_cast<std::size_t>(found - names.begin())] = word;
  }
  return words;
}

TextPairs csv_attributes(const std::string& path) {
  TextPairs attributes = comments_of_set(path, csv_solve_marker);
  for (auto& [name, word] : comments_of_set(path, csv_dialect_marker))
    attributes.emplace_back(recorded_name(name), std::move(word));
  return attributes;
}

}  // namespace qrtool
