// SPDX-License-Identifier: Apache-2.0
// solve.cpp: `qrtool solve` opens A and B, plans, solves and checks every right side, commits the
// output and says what came of it.
#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/run/attempts.hpp"
#include "app/run/make_backend.hpp"
#include "app/solve/solve_dry_run.hpp"
#include "app/solve/solve_notes.hpp"
#include "app/solve/solve_run.hpp"
#include "app/solve/weight_scale.hpp"
#include "core/error.hpp"
#include "core/host.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"

namespace qrtool {
namespace {

void check_names(const SolveOptions& o) {
  for (const std::string& input : {o.a, o.b, o.system.weights})
    if (!input.empty()) refuse_same_file(input, o.output);
  require_named_device(o.backend);
  check_output_names(o.output, /*report=*/"", o.force);
}

SolveResult solve_systems(const SolveOptions& o, const SolveInputs& inputs, const Limits& limits,
                          const Stopwatch& watch) {
  for (Attempts attempts(o.backend, o.backend.is_automatic());;) {
    SolveOptions options = o;
    options.backend = attempts.request();
    SolveRun run(options, inputs, limits, watch);
    try {
      run.make_plan();
      run.create_output();
      run.run_stages();
      run.commit();
      return run.finish();
    } catch (const Error& error) {
      attempts.go_on(error, run.has_device());
    }
  }
}

/// Plans, and says what the run would need and take.
ExitCode dry_run(const SolveOptions& o, const SolveInputs& inputs, const Limits& limits,
                 const Stopwatch& watch) {
  require_place(o.output, /*report=*/"", o.force);
  SolveRun run(o, inputs, limits, watch);
  run.make_plan();
  print_costs(o, "solve", o.output, {cost_of(o, inputs, limits, run)});
  return ExitCode::good;
}

}  // namespace

ExitCode run_solve(const SolveOptions& o) {
  const Stopwatch watch;
  check_names(o);
  const Limits limits = host_limits(o.memory_bytes, o.threads);
  SolveInputs inputs = open_solve_inputs(
      {.a = o.a, .b = o.b, .csv = o.csv, .raw_values = o.raw_values}, o.system, o.order, limits);
  if (!o.quiet) print_notes(inputs, o.verbose);
  fit_weights(inputs, o.precision.value_or(type_of(inputs)));
  if (o.dry_run) return dry_run(o, inputs, limits, watch);
  const SolveResult result = solve_systems(o, inputs, limits, watch);
  print_result(o, result);
  return result.verdict.failed() > 0 ? ExitCode::answer_is_no : ExitCode::good;
}

}  // namespace qrtool
