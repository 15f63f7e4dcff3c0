// SPDX-License-Identifier: Apache-2.0
// factor.cpp: `qrtool factor` opens the input, plans, factors and checks every matrix, commits the
// output and says what came of it.
#include "app/commands/commands.hpp"
#include "app/ranks/factor_on_ranks.hpp"
#include "app/run/dry_run.hpp"
#include "app/run/factor_run.hpp"
#include "app/run/factor_several.hpp"
#include "core/host.hpp"

namespace qrtool {
namespace {

ExitCode factor_alone(const FactorOptions& o) {
  const Stopwatch watch;
  Limits limits = host_limits(o.memory_bytes, o.threads);
  limits.has_scratch = !o.scratch.empty();
  const std::unique_ptr<Reader> input = open_input_of(o, limits);
  const FactorResult result = factor_one(o, *input, limits, watch);
  print_result(o, result);
  return result.verdict.failed() > 0 ? ExitCode::answer_is_no : ExitCode::good;
}

}  // namespace

ExitCode run_factor(const FactorOptions& o, Comm& comm) {
  if (o.dry_run && comm.size() > 1)
    throw UsageError("--dry-run speaks of one process", "use qrtool, without mpirun");
  if (o.dry_run) return dry_run_factor(o);
  if (comm.size() > 1) return factor_on_ranks(o, comm);
  return o.datasets.size() > 1 ? factor_several(o) : factor_alone(o);
}

}  // namespace qrtool
