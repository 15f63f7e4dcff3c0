// SPDX-License-Identifier: Apache-2.0
// stages.hpp: numbered chunks through the pipeline, by one process.
#pragma once

#include <vector>

#include "app/run/pipeline.hpp"
#include "core/batch.hpp"

namespace qrtool {

/// Passes chunks 0 .. count - 1 through the steps of a run, which are
///
///     begin(chunk, number)   says which matrices or rows the chunk holds
///     read(chunk)            fills in A
///     work(chunk)            computes
///     keep(chunk)            takes the result, in ascending order
///
/// They overlap as in run_pipeline; keep() has its own thread.
template <class Chunk, class Steps>
StageSeconds run_stages(index_t count, std::vector<Chunk>& buffers, Steps& steps) {
  index_t next = 0;
  const auto read = [&](Chunk& chunk) {
    if (next == count) return false;
    steps.begin(chunk, next++);
    steps.read(chunk);
    return true;
  };
  const auto work = [&](Chunk& chunk) { steps.work(chunk); };
  const auto keep = [&](Chunk& chunk) { steps.keep(chunk); };
  return run_pipeline(buffers, read, work, keep);
}

}  // namespace qrtool
