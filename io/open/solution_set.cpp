// SPDX-License-Identifier: Apache-2.0
// solution_set.cpp: sums up the files of a set as their writer did.
#include "io/open/solution_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/checksum/number_hash.hpp"
#include "io/csv/coefficients.hpp"
#include "io/factors/factor_set.hpp"
#include "io/file/input_file.hpp"
#include "io/open/input.hpp"
#include "io/read/reader.hpp"
#include "io/report/report_file.hpp"
#include "io/report/stored_report.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

// The datasets in the order in which a run writes them.
constexpr const char* datasets[] = {"X", "se", "covariance", "residuals", "fitted", "leverage"};

/// Returns the name of the report beside the files, which is CSV for text in columns, or an empty
/// text if it does not exist.
std::string report_beside(const std::string& set) {
  const bool has_csv = has_text_ending(set) && !is_coefficient_table(set);
  std::string name = report_file(set, has_csv ? ".csv" : ".json");
  return std::filesystem::exists(name) ? name : "";
}

/// Opens a dataset of the solutions. Returns null if its file does not exist.
std::unique_ptr<Reader> open_solution_file(const std::string& set, std::string_view dataset,
                                           bool is_table) {
  if (is_table && dataset == "X") return open_coefficients(set);
  if (is_table && dataset == "se") return open_standard_errors(set);
  const std::string name = factor_file(set, std::string(dataset));
  if (!std::filesystem::exists(name)) return nullptr;
  return open_array({.path = name, .dataset = {}, .takes_complex = true});
}

/// Returns the checksum that the report records, as text, or an empty text.
std::string recorded_checksum(const std::string& set, const std::string& report) {
  if (report.ends_with(".csv")) {
    const auto checksums = read_csv_checksums(report, 1);
    return checksums && !checksums->empty() ? checksum_text(checksums->front()) : "";
  }
  const Record record = read_report_of_set(set).record;
  const auto found = record.find(std::string(checksum_column));
  return found == record.end() ? "" : found->second;
}

}  // namespace

void require_one_run_of_solutions(const std::string& set) {
  const std::string report = report_beside(set);
  const std::string recorded = report.empty() ? "" : recorded_checksum(set, report);
  if (recorded.empty()) return;
  const bool is_table = is_coefficient_table(set);
  NumberHash of_all;
  std::vector<std::string> names;
  for (const char* dataset : datasets) {
    const std::unique_ptr<Reader> reader = open_solution_file(set, dataset, is_table);
    if (!reader) continue;
    of_all.add_word(is_fit(dataset) ? block_hash_of(*reader) : number_hash_of(*reader));
    names.push_back(escape(reader->source().file));
  }
  if (checksum_text(of_all.value()) == recorded) return;
  throw InputError(
      fmt::format("{}: {} are not the solutions that {} describes", escape(set),
                  is_table ? "these" : fmt::to_string(fmt::join(names, ", ")), escape(report)),
      "the files are of different runs, or were changed: solve again with --force" +
          (is_table ? ""
                    : fmt::format(", or remove {} to have X judged as it is", escape(report))));
}

void require_own_report(const std::string& set) {
  const std::string report = report_file(set, ".json");
  if (!std::filesystem::exists(report)) return;
  if (is_coefficient_table(set)) return require_one_run_of_solutions(set);
  const auto is_there = [&](const char* name) {
    return std::filesystem::exists(factor_file(set, name));
  };
  const bool has_report = has_text_ending(set)
                              ? begins_as_coefficients(set)
                              : std::any_of(set_names.begin(), set_names.end(), is_there);
  if (!has_report) return;
  Record record = read_report(report).record;
  const std::string& ending = record[described_ending];
  if (!is_of_other_files(ending, set)) return;
  throw InputError(fmt::format("{}: {} is the report of {}{}, which a later run wrote", escape(set),
                               escape(report), escape(set.substr(0, set.rfind('.'))), ending),
                   fmt::format("{} again, with another name before {}",
                               is_there("Q") || is_there("R") || is_there("V") ? "factor" : "solve",
                               escape(ending_of(set))));
}

}  // namespace qrtool
