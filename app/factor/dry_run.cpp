// SPDX-License-Identifier: Apache-2.0
// dry_run.cpp: the steps of `factor` up to its plan, and the cost of the rest.
#include <fmt/format.h>

#include "app/factor/factor_run.hpp"
#include "app/process/process_clock.hpp"
#include "app/run/backends/attempts.hpp"
#include "app/run/backends/run_cost.hpp"
#include "app/run/files/into.hpp"
#include "core/factor/ranked_backend.hpp"
#include "core/machine/host.hpp"

namespace qrtool {
namespace {

/// Returns the backend of the run, or the CPU if the tool has chosen a device that cannot start.
BackendChoice choose(const FactorOptions& o, const Problem& problem, const Limits& limits) {
  for (Attempts attempts(o.backend, o.backend.is_automatic());;) {
    try {
      const bool says_why = attempts.is_first() && o.verbose;
      BackendChoice choice = choose_backend(attempts.request(), problem, limits, says_why);
      if (!attempts.is_first()) choice.reason = "the device cannot start";
      return choice;
    } catch (const Error& error) {
      attempts.go_on(error, /*had_device=*/false);
    }
  }
}

}  // namespace

RunCost cost_of(const FactorOptions& o, Reader& input, const Limits& all, Laps& laps) {
  const Limits limits = limits_beside_files(o, input, all);
  const Source& source = input.source();
  const BackendChoice choice = choose(o, problem_of(source, o), limits);
  FactorRun run(o, input, *choice.backend, laps);
  run.make_plan();
  run.refuse_columns();
  const Plan& plan = run.plan();
  const Problem& problem = plan.problem;
  const Limits planned = choice.backend->limits();
  RunCost cost{.input = source.dataset.empty() ? source.file : source.file + ":" + source.dataset,
               .plan = fmt::format("backend   {}: {}\n", choice.backend->name(), choice.reason) +
                       explain(plan, planned),
               .input_bytes = static_cast<std::uint64_t>(problem.count) * problem.input_bytes(),
               .memory_bytes = plan.host_bytes + planned.file_bytes,
               .memory_limit_bytes = planned.host_bytes + planned.file_bytes,
               .device_bytes = plan.device_bytes,
               .scratch_bytes = plan.scratch_bytes};
  enter_programs(problem, *choice.backend, plan.variant, cost);
  cost.chunks = plan.by_rows() ? (problem.m + plan.chunk_rows - 1) / plan.chunk_rows
                               : (problem.count + plan.chunk_matrices - 1) / plan.chunk_matrices;
  const index_t passes = plan.by_rows() && problem.wants_q() ? 2 : 1;
  cost.start_seconds = laps.lap();
  cost.read_seconds = seconds_to_read(input, problem.type, passes);
  SecondTry tries(*choice.backend);
  RankedBackend ranks(tries);
  Backend& backend = problem.ranks() ? static_cast<Backend&>(ranks) : tries;
  enter_compute(backend, problem, o.backend.variant, cost);
  OutputSpec output = planned_output(source, problem);
  output.path = o.output;
  enter_output(output, cost);
  return cost;
}

std::vector<RunCost> costs_of_factor(const FactorOptions& o) {
  Limits limits = host_limits(o.memory_bytes, o.threads);
  limits.has_scratch = !o.scratch.empty();
  std::vector<RunCost> costs;
  FactorOptions one = o;
  const std::vector<std::string> datasets =
      o.datasets.empty() ? std::vector<std::string>{o.dataset} : o.datasets;
  for (const std::string& dataset : datasets) {
    one.dataset = dataset;
    Laps laps(costs.empty() ? process_seconds() : 0);
    const std::unique_ptr<Reader> input = open_input_of(one, limits);
    if (is_there(o.into)) require_place(o.output, o.report, o.force);
    costs.push_back(cost_of(one, *input, limits, laps));
  }
  return costs;
}

}  // namespace qrtool
