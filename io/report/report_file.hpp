// SPDX-License-Identifier: Apache-2.0
// report_file.hpp: writes the report of every matrix to a separate file (--report), as CSV or JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/report/report.hpp"
#include "core/report/report_columns.hpp"
#include "io/file/file_set.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// A report file. CSV has a header line and one line per matrix. JSON is {"schema":
/// "qrtool.report/1", "matrices": [...]}, with null for NaN. The report goes to a temporary file,
/// which commit() renames. Errors: OutputError.
class ReportFile {
 public:
  virtual ~ReportFile() = default;
  /// Adds the next matrices. `checksums` has one entry for each of them, or none at all.
  virtual void write(std::span<const MatrixReport> report,
                     std::span<const std::uint64_t> checksums = {}) = 0;
  /// Writes the rest and adds the file to `files`, which are committed together.
  virtual void finish(FileSet& files) = 0;
  /// Adds an attribute of the factors, if the report has attributes.
  virtual void add_attribute(const std::string& /*name*/, const AttributeValue& /*value*/) {}
  /// Sets the checksum of the leverages beside the factors, if ReportOfSet announced them.
  virtual void bind_leverages(std::uint64_t checksum) = 0;
  void commit();
};

/// The column of a CSV report, and the key of a JSON report, that holds the checksums of the
/// factors.
inline constexpr std::string_view checksum_column = "checksum";
/// Returns the checksum as text. With 0x no program takes it for a number.
std::string checksum_text(std::uint64_t checksum);

/// The attribute of a report in JSON with the ending of the files that the report describes:
/// out.npy and out.mtx would have one report.
inline constexpr const char* described_ending = "described_ending";
/// Returns the attributes that the JSON report of an output holds: the root attributes, and the
/// ending of its files.
Attributes attributes_of_report(const OutputSpec& spec);

/// Refuses a report whose name ends neither in .csv nor in .json. Errors: UsageError.
void check_report_ending(const std::string& path);

/// Returns one JSON object in ASCII.
std::string to_json(const Attributes& attributes);

/// What else the report of a set of files holds: a checksum of each matrix and, in JSON, the
/// attributes of the factors as the object "qrtool". The checksum of their leverages is an
/// attribute; in CSV it stands in the first line.
struct ReportOfSet {
  Attributes attributes;
  bool has_leverages = false;
};

/// Creates a report file, whose name ends in .csv or .json. With `set`, it is the report of a set.
/// Errors: UsageError for other names.
std::unique_ptr<ReportFile> create_report_file(const std::string& path, bool force,
                                               std::vector<ReportColumn> columns,
                                               const ReportOfSet* set = nullptr);

}  // namespace qrtool
