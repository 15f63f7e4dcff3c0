// SPDX-License-Identifier: Apache-2.0
// solve.cpp: `qrtool solve` opens A and B, plans, solves and checks every right side, commits the
// output and says what came of it.
#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/process/console.hpp"
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

SolveResult solve_systems(SolveRun& run) {
  run.make_plan();
  run.create_output();
  run.run_stages();
  run.commit();
  return run.finish();
}

/// The CPU does it where the tool has chosen a device, and that fails.
SolveResult solve_with_fallback(const SolveOptions& o, const SolveInputs& inputs,
                                const Limits& limits, const Stopwatch& watch) {
  const auto on_cpu = [&](const Error& error) {
    print_message(fmt::format("note: {}; the CPU does it", error.what()));
    SolveOptions options = o;
    options.backend.name = "cpu";
    SolveRun run(options, inputs, limits, watch);
    return solve_systems(run);
  };
  SolveRun run(o, inputs, limits, watch);
  try {
    return solve_systems(run);
  } catch (const DeviceError& error) {
    if (!o.backend.is_automatic()) throw;
    return on_cpu(error);
  } catch (const LimitError& error) {
    if (!o.backend.is_automatic() || !run.has_device()) throw;
    return on_cpu(error);
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
  const SolveResult result = solve_with_fallback(o, inputs, limits, watch);
  print_result(o, result);
  return result.verdict.failed() > 0 ? ExitCode::answer_is_no : ExitCode::good;
}

}  // namespace qrtool
