// SPDX-License-Identifier: Apache-2.0
// stored_report.hpp: reads the report that lies beside a set of files: the root attributes, tries
// and checksums of one in JSON, and the checksums of one in CSV.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/read/reader.hpp"
#include "io/read/stored_factors.hpp"

namespace qrtool {

/// Attributes whose values are strings.
using Record = std::map<std::string, std::string>;

/// The content of out.report.json, for factors or for solutions.
struct StoredReport {
  Record record;
  std::vector<std::uint8_t> tries;       // of factors: one for each matrix
  std::vector<std::uint64_t> checksums;  // the same; empty where the report has none
};

/// Reads a report. Errors: InputError if the file cannot be read or is no report.
StoredReport read_report(const std::string& path);

/// Whether a report belongs to other files than those of `set`: an out.report.json that names
/// out.mtx does not belong to out.npy.
bool is_of_other_files(const std::string& described, const std::string& set);

/// Returns the report beside the files of `set`, such as out.npy; empty if it does not exist or
/// belongs to other files.
StoredReport read_report_of_set(const std::string& set);
/// Returns some attributes of that report, as recorded_attributes() gives them.
std::vector<std::string> attributes_of_set(const std::string& set,
                                           const std::vector<const char*>& names);
/// Returns the input that this report records.
RecordedInput recorded_input_of_set(const std::string& set);

/// Returns the first `most` checksums in a report in CSV, or nothing if it has no such column.
/// Errors: InputError if the file cannot be read.
std::optional<std::vector<std::uint64_t>> read_csv_checksums(const std::string& report,
                                                             std::size_t most = SIZE_MAX);

/// Returns the field of a column in the first line of a report in CSV, or an empty text. Errors:
/// InputError if the file cannot be read.
std::string read_first_in_column(const std::string& report, std::string_view column);

/// Returns the values of these attributes. An attribute that is not recorded gives an empty text.
std::vector<std::string> values_of(const Record& record, const std::vector<const char*>& names);

/// Returns the attributes in a JSON string; none if it is no JSON object.
Record parse_record(std::string_view json);

/// Returns the input that the record names.
RecordedInput recorded_input(const Record& record);

/// Copies the recorded properties to `factors`. Errors: InputError if factors of the recorded mode
/// are missing. `shown` names them in messages.
void apply_record(const Record& record, const std::string& shown, StoredFactors& factors);

}  // namespace qrtool
