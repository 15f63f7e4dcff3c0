// SPDX-License-Identifier: Apache-2.0
// factor_summary.hpp: prints the result of `qrtool factor` for people and for machines.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/options/options.hpp"
#include "app/process/wall_time.hpp"
#include "app/run/pipeline/pipeline.hpp"
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
  StageSeconds stages;
  ChunkSeconds chunks;
  int ranks = 1;                // processes that shared the work
  double start_seconds = 0;     // until the first read: files opened, device started, plan
  double leverage_seconds = 0;  // reads the input again
  double sync_seconds = 0;      // the output is brought to the disk and renamed
  double free_seconds = 0;      // memory is given back when all is written
  double total_seconds = 0;
  index_t wrong_leverages = 0;  // matrices whose leverages miss their bar

  bool is_good() const { return verdict.failed() == 0 && wrong_leverages == 0; }
};

/// Prints bad matrices to standard error, and then the result to standard output in the form that
/// the options ask for.
void print_result(const FactorOptions& options, const FactorResult& result);

/// The way that the matrices went where it is not the variant's usual one; else empty.
std::string way_text(const FactorResult& result);

/// Describes the run in a few lines for standard output. `verbose` adds the routes.
std::string summary(const FactorResult& result, bool verbose);

/// The last line of the summary, without the datasets: "all 3 pass; wrote q.npz".
std::string short_summary(const FactorResult& result);

/// Where the time of the run went.
WallTime seconds_of(const FactorResult& result);

/// Schema qrtool.factor/1.
nlohmann::ordered_json to_json(const FactorResult& result);

/// Prints one line to standard error for each kind of bad matrix.
void print_bad_matrices(const FactorResult& result);

}  // namespace qrtool
