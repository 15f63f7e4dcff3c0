// SPDX-License-Identifier: Apache-2.0
// stages.hpp: numbered chunks through the pipeline, by one process.
#pragma once

#include <vector>

#include "app/run/pipeline/pipeline.hpp"
#include "core/batch.hpp"

namespace qrtool {

/// The steps of a run as stages of the pipeline, for chunks 0 .. count - 1.
template <class Chunk, class Steps>
struct NumberedStages {
  index_t count;
  Steps& steps;
  index_t next = 0;

  bool read(Chunk& chunk) {
    if (next == count) return false;
    steps.begin(chunk, next++);
    steps.read(chunk);
    return true;
  }
  void work(Chunk& chunk) { steps.work(chunk); }
  void write(Chunk& chunk) { steps.keep(chunk); }
  void after_work(std::vector<Chunk>& chunks) requires requires { steps.after_work(chunks); }
  { steps.after_work(chunks); }
};

/// Passes chunks 0 .. count - 1 through the steps of a run, which are
///
///     begin(chunk, number)   says which matrices or rows the chunk holds
///     read(chunk)            fills in A
///     work(chunk)            computes
///     keep(chunk)            takes the result, in ascending order
///     after_work(buffers)    where they have it: frees what keep() does not need
///
/// They overlap as in run_pipeline; keep() has its own thread.
template <class Chunk, class Steps>
StageSeconds run_stages(index_t count, std::vector<Chunk>& buffers, Steps& steps) {
  NumberedStages<Chunk, Steps> stages{count, steps};
  return run_pipeline(buffers, stages);
}

}  // namespace qrtool
