// SPDX-License-Identifier: Apache-2.0
// factor_summary.hpp: what `qrtool factor` says at its end, for people and for machines.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/cli/options.hpp"
#include "app/run/pipeline.hpp"
#include "app/run/verdict.hpp"
#include "core/backend.hpp"
#include "io/reader.hpp"
#include "io/writer.hpp"

namespace qrtool {

/// Everything that is known when the output is complete.
struct FactorResult {
  const Source& source;
  Plan plan;
  std::string backend, device;
  std::vector<std::string> files;       // that were written
  std::vector<MatrixDataset> datasets;  // in them
  Verdict verdict;
  StageSeconds stages;
  ChunkSeconds chunks;
  double start_seconds = 0;  // until the first read: files opened, device started, plan, buffers
  double sync_seconds = 0;   // the output brought to the disk and renamed
  double total_seconds = 0;
};

/// Everything that a run says at its end: bad matrices on standard error, then the result on
/// standard output as the options want it.
void print_result(const FactorOptions& options, const FactorResult& result);

/// A few lines for standard output.
std::string summary(const FactorResult& result);

/// Schema qrtool.factor/1.
nlohmann::ordered_json to_json(const FactorResult& result);

/// One line for each kind of bad matrix, for standard error.
void print_bad_matrices(const FactorResult& result);

}  // namespace qrtool
