// SPDX-License-Identifier: Apache-2.0
// solve.cpp: `qrtool solve` opens A and B, plans, solves and checks every right side, commits the
// output and says what came of it.
#include "app/commands/solve.hpp"

#include <fmt/format.h>

#include <utility>

#include "app/commands/commands.hpp"
#include "app/process/console.hpp"
#include "app/process/process_clock.hpp"
#include "app/run/backends/attempts.hpp"
#include "app/run/backends/make_backend.hpp"
#include "app/run/files/earlier_output.hpp"
#include "app/run/files/into.hpp"
#include "app/run/files/source_notes.hpp"
#include "app/solve/side_numbers.hpp"
#include "app/solve/solve_notes.hpp"
#include "app/solve/solve_run.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/text_output.hpp"
#include "io/open/formats.hpp"
#include "io/open/output.hpp"

namespace qrtool {
namespace {

/// Plans, and returns what the run would need.
RunCost cost_of(const SolveOptions& o, const SolveInputs& inputs, const Limits& limits,
                Laps& laps) {
  if (is_there(o.into)) require_place(o.output, /*report=*/"", o.force);
  SolveRun run(o, inputs, limits, laps);
  run.make_plan();
  const double start = laps.lap();
  RunCost cost = cost_of(o, inputs, limits, run);
  cost.start_seconds += start;
  return cost;
}

/// Returns the runs of --into, which `run` does one after another.
JobInto job_into(const SolveOptions& o, decltype(JobInto::run) run) {
  const bool are_tables = !o.system.response.empty();
  return {.options = o,
          .command = "solve",
          .schema = "qrtool.solve-into/1",
          .folder = o.into,
          .inputs = o.inputs,
          .others = {are_tables ? "" : o.a, o.system.weights},
          .taken = o.taken,
          .run = std::move(run)};
}

/// Returns the options of one of these runs.
SolveOptions options_of(const SolveOptions& o, const InputInto& each) {
  SolveOptions one = o;
  (o.system.response.empty() ? one.b : one.a) = each.input;
  one.output = each.output;
  one.force = o.force || each.replaces;
  one.progress = ProgressMode::never;  // the files are counted
  return one;
}

/// Solves for one B, or one table, after another, into its own files. A device is started once.
ExitCode solve_into(const SolveOptions& o, const Limits& limits) {
  require_named_device(o.backend);
  start_device(o.backend);
  std::shared_ptr<Backend> backend;
  return run_into(
      job_into(o, [&](const std::string& input, const std::string& output, bool replaces) {
        Laps laps;
        SolveOptions one = options_of(o, {input, output, replaces});
        const SolveInputs inputs = open_inputs_of(one, limits);
        return outcome_of(one, solve_inputs(one, inputs, limits, laps, &backend));
      }));
}

/// Prints what the runs of all inputs would need.
ExitCode dry_run_into(const SolveOptions& o, const Limits& limits) {
  std::vector<RunCost> costs;
  for (const InputInto& each : plan_into(job_into(o, {})).inputs) {
    Laps laps;
    const SolveOptions one = options_of(o, each);
    const SolveInputs inputs = open_inputs_of(one, limits);
    costs.push_back(cost_of(one, inputs, limits, laps));
  }
  print_costs(o, "solve", o.into, costs);
  return ExitCode::good;
}

}  // namespace

SolveInputs open_inputs_of(const SolveOptions& o, const Limits& limits) {
  for (const std::string& input : {o.a, o.b, o.system.weights})
    if (!input.empty()) refuse_same_file(input, o.output);
  require_named_device(o.backend);
  if (o.state && (is_standard_output(o.output) || !format_of_output(o.output).own_order.empty()))
    throw UsageError(fmt::format("a state is a group of HDF5, which '{}' is not", escape(o.output)),
                     "let the name of OUT end in .h5");
  check_output_names(o.output, /*report=*/"", o.force);
  if (!o.system.response.empty()) check_table_names(o.output, o.force);
  SolveInputs inputs = open_solve_inputs(
      {.a = o.a, .b = o.b, .csv = o.csv, .raw_values = o.raw_values}, o.system, o.order, limits);
  if (!o.quiet) print_notes(inputs, o.verbose);
  fit_weights(inputs, real_of(type_of(inputs, o.precision)));
  const ElementType of_b = inputs.b->source().type;
  const ElementType of_fits = o.precision.value_or(real_of(of_b));
  inputs.fits = {.fitted = o.fitted,
                 .residuals = o.residuals,
                 .type = is_complex(of_b) ? complex_of(of_fits) : of_fits};
  if (o.state) require_state(inputs, o);
  if (!o.before.empty()) append_to_state(o.before, inputs);
  return inputs;
}

SolveResult solve_inputs(const SolveOptions& o, const SolveInputs& inputs, const Limits& limits,
                         Laps& laps, std::shared_ptr<Backend>* kept) {
  for (Attempts attempts(o.backend, o.backend.is_automatic());;) {
    SolveOptions options = o;
    options.backend = attempts.request();
    SolveRun run(options, inputs, limits, laps);
    try {
      std::shared_ptr<Backend> last = kept != nullptr ? std::exchange(*kept, nullptr) : nullptr;
      run.make_plan(last);
      if (run.has_device()) last = run.device()->backend;
      run.create_output();
      run.run_stages();
      run.compare_ranks();
      run.write_leverages();
      run.commit();
      if (kept != nullptr) *kept = last;
      for (const Reader* reader : {inputs.a.get(), inputs.b.get(), inputs.w.get()})
        if (reader != nullptr && !o.quiet) note_rounded(reader->source());
      return run.finish();
    } catch (const Error& error) {
      attempts.go_on(error, run.has_device());
    }
  }
}

namespace {

/// Whether an output may be replaced although nobody says so: nothing in it has passed.
bool holds_nothing(const SolveOptions& o) {
  if (o.force || !o.into.empty() || o.output.empty()) return false;
  const EarlierOutput earlier = find_earlier(o.output);
  return earlier.failed > 0 && earlier.passed == 0;
}

}  // namespace

ExitCode run_solve(const SolveOptions& given) {
  SolveOptions o = given;
  if (holds_nothing(o)) {
    o.force = true;
    if (!o.quiet)
      print_message(
          fmt::format("note: '{}' is replaced: nothing in it has passed", escape(o.output)));
  }
  if (!o.by.empty() || !o.groups.empty() || o.window.are_given()) return solve_by(o);
  Laps laps(process_seconds());
  const Limits limits = host_limits(o.memory_bytes, o.threads);
  if (!o.into.empty()) return o.dry_run ? dry_run_into(o, limits) : solve_into(o, limits);
  start_device(o.backend);
  const SolveInputs inputs = open_inputs_of(o, limits);
  if (o.dry_run) {
    print_costs(o, o.before.empty() ? "solve" : "append", o.output,
                {cost_of(o, inputs, limits, laps)});
    return ExitCode::good;
  }
  return print(o, outcome_of(o, solve_inputs(o, inputs, limits, laps, &backend_until_exit())));
}

}  // namespace qrtool
