// SPDX-License-Identifier: Apache-2.0
// report_file.hpp: writes the report of every matrix to a separate file (--report), as CSV or JSON.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/report.hpp"

namespace qrtool {

/// A report file. CSV has a header line and one line per matrix. JSON is {"schema":
/// "qrtool.report/1", "matrices": [...]}, with null for NaN. The report goes to a temporary file,
/// which commit() renames. Errors: OutputError.
class ReportFile {
 public:
  virtual ~ReportFile() = default;
  virtual void write(std::span<const MatrixReport> report) = 0;  // the next matrices
  virtual void commit() = 0;
};

/// Creates the report file for a name that ends in .csv or .json. Errors: UsageError for other
/// names.
std::unique_ptr<ReportFile> create_report_file(const std::string& path, bool force);

}  // namespace qrtool
