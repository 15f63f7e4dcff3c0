// SPDX-License-Identifier: Apache-2.0
// outputs.hpp: the files that a run writes, which appear together or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/machine/host.hpp"
#include "core/report/report.hpp"
#include "io/report/report_file.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// The factors with their report, and the report of --report. A process that writes nothing has
/// neither.
struct Outputs {
  std::unique_ptr<Writer> factors;
  std::unique_ptr<ReportFile> report;  // only with --report
  bool is_part = false;
  std::string name = {};                 // of the part
  std::vector<std::int32_t> ranks = {};  // as the report says them; empty: nobody needs them

  /// Creates the temporary files. `report`: the file of --report; empty: none.
  static Outputs create(const OutputSpec& spec, const std::string& report);
  /// Returns the outputs of one dataset in a file of several, which the caller commits.
  static Outputs create_in(OutputFile& file, const OutputSpec& spec);

  void write_report(index_t first, std::span<const MatrixReport> lines);
  /// Gives the files their names. An interrupt afterwards says that they are complete.
  void commit();
};

/// Returns the limits less `bytes`, which reading and writing files need. Errors: LimitError, which
/// names `file`, if nothing is left.
Limits limits_beside(const std::string& file, std::size_t bytes, Limits limits);

}  // namespace qrtool
