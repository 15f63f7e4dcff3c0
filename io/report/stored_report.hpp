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

/// The attributes that are strings.
using Record = std::map<std::string, std::string>;

/// The content of out.report.json, for factors or for solutions.
struct StoredReport {
  Record record;
  std::vector<std::uint8_t> tries;       // of factors: one for each matrix
  std::vector<std::uint64_t> checksums;  // the same; empty where the report has none
};

/// Reads a report. Errors: InputError where the file cannot be read or is no report.
StoredReport read_report(const std::string& path);

/// Whether a report was written beside other files than those of `set`: with the record of out.mtx,
/// out.report.json is not that of out.npy.
bool is_of_other_files(const std::string& described, const std::string& set);

/// The report beside the files of `set`, such as out.npy; empty where there is none, or one of
/// other files.
StoredReport read_report_of_set(const std::string& set);
/// Some attributes of that report, as recorded_attributes() gives them.
std::vector<std::string> attributes_of_set(const std::string& set,
                                           const std::vector<const char*>& names);
/// What that report says of the matrices that the factors were made from.
RecordedInput recorded_input_of_set(const std::string& set);

/// Returns the first `most` checksums that a report in CSV records, or nothing where it has no such
/// column. Errors: InputError where the file cannot be read.
std::optional<std::vector<std::uint64_t>> read_csv_checksums(const std::string& report,
                                                             std::size_t most = SIZE_MAX);

/// Returns the field of a column in the first line of a report in CSV; empty where there is none.
/// Errors: InputError where the file cannot be read.
std::string read_first_in_column(const std::string& report, std::string_view column);

/// Returns the values of these attributes, with empty texts for those that this tool has not
/// recorded.
std::vector<std::string> values_of(const Record& record, const std::vector<const char*>& names);

/// Returns the attributes in a JSON string, or none where it is something else.
Record parse_record(std::string_view json);

/// Returns what the record says about the matrices that the factors were made from.
RecordedInput recorded_input(const Record& record);

/// Enters what the record says of the factors. Errors: InputError where factors of the recorded
/// mode are missing. `shown` names them in messages.
void apply_record(const Record& record, const std::string& shown, StoredFactors& factors);

}  // namespace qrtool
