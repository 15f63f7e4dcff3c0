// SPDX-License-Identifier: Apache-2.0
// report_file.hpp: the report of every matrix as a file of its own (--report), CSV or JSON by name.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/report.hpp"

namespace qrtool {

/// CSV: a header line, then one line a matrix. JSON: {"schema": "qrtool.report/1", "matrices":
/// [...]}, NaN as null. Written to a temporary file and renamed by commit(). Errors: OutputError.
class ReportFile {
 public:
  virtual ~ReportFile() = default;
  virtual void write(std::span<const MatrixReport> report) = 0;  // the next matrices
  virtual void commit() = 0;
};

/// UsageError where the name ends in neither .csv nor .json.
std::unique_ptr<ReportFile> create_report_file(const std::string& path, bool force);

}  // namespace qrtool
