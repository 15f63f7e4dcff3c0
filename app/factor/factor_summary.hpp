// SPDX-License-Identifier: Apache-2.0
// factor_summary.hpp: the result of `qrtool factor` for people and for machines.
#pragma once

#include <string>
#include <vector>

#include "app/options/options.hpp"
#include "app/run/verdict/outcome.hpp"
#include "app/run/verdict/verdict.hpp"
#include "core/backend/backend.hpp"
#include "io/read/reader.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Everything that is known when the output is complete.
struct FactorResult {
  const Source& source;
  Plan plan;
  std::string backend, device;
  std::string shown_device;             // in the summary
  std::vector<std::string> files;       // that were written
  std::vector<MatrixDataset> datasets;  // in them
  std::string name = {};                // of the dataset in a file of several: Q/NAME, ...
  Verdict verdict;
  ChunkSeconds chunks;
  RunTimes times = {};
  int ranks = 1;                // processes that shared the work
  index_t wrong_leverages = 0;  // matrices whose leverages miss their bar

  bool is_good() const { return verdict.failed() == 0 && wrong_leverages == 0; }
};

/// Returns the routes of the matrices, or an empty text if all took the variant's usual one.
std::string way_text(const FactorResult& result);

/// Describes the run. Its document has the schema qrtool.factor/1.
Outcome outcome_of(const FactorOptions& options, const FactorResult& result);

}  // namespace qrtool
