// SPDX-License-Identifier: Apache-2.0
// factor_files.hpp: the names of the files of a set, for formats that need a file for each factor.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "io/write/writer.hpp"

namespace qrtool {

/// The datasets that factors of any --mode may have.
inline constexpr std::array factor_names{"Q", "R", "P", "V", "tau"};
/// Whether a dataset of factors has one dimension.
inline bool is_vector_factor(std::string_view name) { return name == "tau" || name == "P"; }
/// The names of the datasets of factors and of solutions. Each of them is a file of the set.
inline constexpr std::array set_names{"Q",  "R",          "P",         "V",      "tau",     "X",
                                      "se", "covariance", "residuals", "fitted", "leverage"};
/// Whether a dataset has a number for each entry of B or each row of A: one of the last three.
inline bool is_fit(std::string_view name) {
  return name == "residuals" || name == "fitted" || name == "leverage";
}

/// The attribute of a JSON report of factors, and the column of one in CSV, that has the checksum
/// of their leverages.
inline constexpr const char* leverage_checksum = "leverage_checksum";

/// Returns the file of a dataset: out.Q.csv for out.csv and "Q", with the ending kept. The file of
/// dataset "A" has the name itself, and so has standard output.
std::string factor_file(const std::string& path, const std::string& dataset);

/// Returns the file of the report: out.report.csv for out.tsv and ".csv".
std::string report_file(const std::string& path, std::string_view ending);

/// Returns all files that a set may have if its report has this ending; none for standard output.
std::vector<std::string> files_of_set(const std::string& path, std::string_view report_ending);

/// Returns the files that an earlier run with another --mode may have left and that would
/// contradict the files of `spec`; none for standard output. Errors: OutputError if one exists and
/// `spec.force` is not set.
std::vector<std::string> find_obsolete(const OutputSpec& spec);

/// Returns the hint if no set of files is found. For a path that names one file of a set, such as
/// out.Q.csv, the hint is to name the set; for another path it says for which files the name
/// stands.
std::string hint_for_missing_set(const std::string& path);

}  // namespace qrtool
