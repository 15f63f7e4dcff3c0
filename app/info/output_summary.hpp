// SPDX-License-Identifier: Apache-2.0
// output_summary.hpp: sums up the stored report of an output of this tool.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/info/histogram.hpp"
#include "app/run/verdict/verdict.hpp"
#include "core/report/report.hpp"
#include "io/report/stored_output.hpp"
#include "io/source/entry.hpp"

namespace qrtool {

/// The summary of one error of the report.
struct ErrorSummary {
  std::string name;
  double worst = 0;
  index_t where = -1;  // of the worst; -1: none was measured
  double bar = 0;      // 0: not known
};

struct OutputSummary {
  StoredOutput stored;
  bool has_solutions = false;         // else factors
  std::vector<index_t> leading = {};  // dimensions of the matrices or solutions
  index_t count = 0;                  // of matrices, or of solutions
  std::array<index_t, solution_status_names.size()> status{};  // by Status
  index_t second_tries = 0;
  std::vector<ErrorSummary> errors = {};
  Histogram histogram = {};  // no columns where no bar is known

  const Subject& subject() const { return has_solutions ? subject_of_solve : subject_of_factors; }
};

/// Sums up a report. `entries` are the datasets of the output; their shapes give the bars if none
/// are stored. The name of an entry is the name of a factor: Q, /Q, R, ...
OutputSummary sum_up(StoredOutput stored, std::span<const Entry> entries);

}  // namespace qrtool
