// SPDX-License-Identifier: Apache-2.0
// factors.cpp: opens the files of a set, and compares their checksums with those of the report.
#include "io/csv/factors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/csv/coefficients.hpp"
#include "io/csv/reader.hpp"
#include "io/csv/writer.hpp"
#include "io/factor_files.hpp"
#include "io/file/input_file.hpp"
#include "io/file/number_hash.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_lines.hpp"
#include "io/report_file.hpp"
#include "io/stored_report.hpp"
#include "io/variable_record.hpp"

namespace qrtool {
namespace {

/// The files of a set that exist, and the checksums that each of them gives its matrices.
struct OpenSet {
  std::vector<std::string> names;
  std::vector<std::vector<std::uint64_t>> checksums;
};

std::unique_ptr<Reader> open_factor(const std::string& path, const char* dataset, OpenSet& set) {
  const std::string name = csv_name(path, dataset);
  if (!file_exists(name)) return nullptr;
  require_text_file(name);
  CsvFactor factor = open_csv_factor(name);
  set.names.push_back(escape(name));
  set.checksums.push_back(std::move(factor.checksums));
  return std::move(factor.reader);
}

std::string_view field_of(std::string_view line, std::size_t number) {
  for (; number > 0 && !line.empty(); --number)
    line.remove_prefix(std::min(line.find(','), line.size() - 1) + 1);
  return line.substr(0, line.find(','));
}

/// The number of the first matrix whose checksums differ; nothing where all agree.
std::optional<std::size_t> find_difference(const OpenSet& set,
                                           const std::vector<std::uint64_t>& recorded) {
  for (std::size_t b = 0; b < recorded.size(); ++b) {
    NumberHash hash;
    for (const auto& checksums : set.checksums) {
      if (b >= checksums.size()) return b;
      hash.add_word(checksums[b]);
    }
    if (hash.value() != recorded[b]) return b;
  }
  for (const auto& checksums : set.checksums)
    if (checksums.size() != recorded.size()) return recorded.size();
  return {};
}

void require_one_run(const std::string& path, const StoredFactors& factors, const OpenSet& set) {
  const bool has_qr = factors.q || factors.r || factors.p,
             has_reflectors = factors.v || factors.tau;
  if (has_qr && has_reflectors) throw_two_runs(path, set.names);
  const std::string report = csv_name(path, "report");
  if (!file_exists(report)) return;
  const auto recorded = read_csv_checksums(report);
  if (!recorded) return;
  if (const auto matrix = find_difference(set, *recorded))
    throw_not_described(path, *matrix, set.names, report);
}

/// The names and words of the first comments of a set that begin with `marker`. They are in the
/// last of its files.
TextPairs comments_of_set(const std::string& path, std::string_view marker) {
  TextPairs pairs;
  for (const char* dataset : {"P", "R", "tau", "covariance", "se", "X"}) {
    const std::string name = csv_name(path, dataset);
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

/// Options of CSV are written without "csv_".
std::string recorded_name(const std::string& name) {
  return name.starts_with("netcdf_") || name == order_guessed_name ? name : "csv_" + name;
}

}  // namespace

std::optional<std::vector<std::uint64_t>> read_csv_checksums(const std::string& report,
                                                             std::size_t most) {
  TextLines lines(open_rereadable(report), escape(report));
  if (!lines.next()) return {};
  const std::string header(lines.text());
  const std::size_t at = header.find(checksum_column);
  if (at == std::string::npos) return {};
  const auto column =
      static_cast<std::size_t>(std::count(header.begin(), header.begin() + at, ','));
  std::vector<std::uint64_t> checksums;
  while (checksums.size() < most && lines.next()) {
    std::string_view text = field_of(lines.text(), column);
    if (text.starts_with("0x")) text.remove_prefix(2);
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, 16);
    checksums.push_back(value);
  }
  return checksums;
}

RecordedInput read_csv_recorded_input(const std::string& path) {
  if (is_coefficient_table(path)) return recorded_input(read_report_of_set(path).record);
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

StoredFactors open_csv_factors(const std::string& path) {
  StoredFactors factors;
  OpenSet set;
  factors.file = path;
  factors.q = open_factor(path, "Q", set);
  factors.r = open_factor(path, "R", set);
  factors.p = open_factor(path, "P", set);
  factors.v = open_factor(path, "V", set);
  factors.tau = open_factor(path, "tau", set);
  if (!factors.r && !factors.v) {
    throw InputError(
        fmt::format("cannot read '{}': there is no such file", escape(csv_name(path, "R"))),
        hint_for_missing_set(path));
  }
  require_one_run(path, factors, set);
  return factors;
}

}  // namespace qrtool
