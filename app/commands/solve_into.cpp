// SPDX-License-Identifier: Apache-2.0
// solve_into.cpp: opens, solves and commits one B or one table after another, by one backend where
// it fits all.
#include "app/commands/solve_into.hpp"

#include <memory>

#include "app/commands/solve.hpp"
#include "app/run/backends/make_backend.hpp"
#include "app/run/files/into.hpp"
#include "core/machine/host.hpp"

namespace qrtool {
namespace {

OutcomeInto outcome_of(const SolveOptions& o, const SolveResult& result) {
  print_bad_solutions(o, result);
  OutcomeInto outcome{
      .code = result.is_good() ? ExitCode::good : ExitCode::answer_is_no,
      .text = o.verbose ? "\n" + summary(result, /*verbose=*/true) : short_summary(result),
      .json = {}};
  if (o.json) outcome.json = to_json(o, result);
  return outcome;
}

}  // namespace

ExitCode solve_into(const SolveOptions& o) {
  require_named_device(o.backend);
  start_device(o.backend);
  const Limits limits = host_limits(o.memory_bytes, o.threads);
  const bool are_tables = !o.system.response.empty();
  std::shared_ptr<Backend> backend;
  const auto run = [&](const std::string& input, const std::string& output) {
    Laps laps;
    SolveOptions one = o;
    (are_tables ? one.a : one.b) = input;
    one.output = output;
    one.progress = ProgressMode::never;  // the files are counted
    const SolveInputs inputs = open_inputs_of(one, limits);
    return outcome_of(one, solve_inputs(one, inputs, limits, laps, &backend));
  };
  return run_into({.options = o,
                   .command = "solve",
                   .schema = "qrtool.solve-into/1",
                   .folder = o.into,
                   .inputs = o.inputs,
                   .others = {are_tables ? "" : o.a, o.system.weights},
                   .run = run});
}

}  // namespace qrtool
