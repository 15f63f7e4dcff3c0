// SPDX-License-Identifier: Apache-2.0
// factor.cpp: `qrtool factor` opens the input, plans, factors and checks every matrix, commits the
// output and says what came of it.
#include "app/commands/factor.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/commands/commands.hpp"
#include "app/factor/factor_run.hpp"
#include "app/process/process_clock.hpp"
#include "app/ranks/factor_on_ranks.hpp"
#include "app/run/backends/attempts.hpp"
#include "app/run/backends/run_cost.hpp"
#include "app/run/files/into.hpp"
#include "core/machine/host.hpp"
#include "io/open/contents.hpp"

namespace qrtool {

FactorResult factor_input(const FactorOptions& o, Reader& input, const Limits& all, Laps& laps,
                          OutputFile* shared, std::shared_ptr<Backend>* kept) {
  const Limits limits = limits_beside_files(o, input, all);
  const Problem problem = problem_of(input.source(), o);
  SingleComm alone;
  for (Attempts attempts(o.backend, o.backend.is_automatic());;) {
    BackendChoice choice;
    try {
      const bool says_why = attempts.is_first() && (o.verbose || o.explain);
      Outputs outputs = create_outputs_of(o, input.source(), limits.threads, shared);
      std::shared_ptr<Backend> last = kept != nullptr ? std::exchange(*kept, nullptr) : nullptr;
      choice = choose_backend(attempts.request(), problem, limits, says_why, last);
      if (!o.quiet) note_advice(choice);
      if (choice.is_device()) last = choice.backend;
      FactorRun run(o, input, *choice.backend, laps);
      run.make_plan();
      run.say_plan();
      run.take_outputs(std::move(outputs));
      run.run_stages(alone);
      run.compare_ranks();
      run.write_leverages();
      run.commit();
      if (kept != nullptr) *kept = last;
      return run.finish();
    } catch (const Error& error) {
      attempts.go_on(error, choice.is_device());
    }
  }
}

namespace {

/// Whether a name of --dataset stands for several.
bool has_pattern(const std::vector<std::string>& datasets) {
  return std::ranges::any_of(datasets, [](const std::string& name) {
    return name.find_first_of("*?") != std::string::npos;
  });
}

/// Returns the options with the names of the matrices that --dataset stands for.
FactorOptions with_datasets(FactorOptions o) {
  std::vector<std::string> names;
  for (const std::string& dataset : o.datasets)
    for (std::string& name : datasets_like(o.input, dataset))
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  o.datasets = names;
  o.dataset = names.front();
  o.is_of_several = true;
  return o;
}

/// Refuses options that only one process can obey. Errors: UsageError.
void refuse_for_ranks(const FactorOptions& o) {
  if (o.dry_run) throw UsageError("--dry-run speaks of one process", "use qrtool, without mpirun");
  if (!o.into.empty()) throw UsageError("--into is for one process", "use qrtool, without mpirun");
  if (o.leverage) throw UsageError("--leverage is for one process", "use qrtool, without mpirun");
}

/// Returns the runs of --into, which `run` does one after another.
JobInto job_into(const FactorOptions& o, decltype(JobInto::run) run) {
  return {.options = o,
          .command = "factor",
          .schema = "qrtool.factor-into/1",
          .folder = o.into,
          .inputs = o.inputs,
          .others = {},
          .taken = o.taken,
          .run = std::move(run)};
}

/// Factors one input after another into its own files. A device is started once.
ExitCode factor_into(const FactorOptions& o, const Limits& limits) {
  require_named_device(o.backend);
  start_device(o.backend);
  std::shared_ptr<Backend> backend;
  return run_into(job_into(o, [&](const std::string& input, const std::string& output,
                                  bool replaces) {
    Laps laps;
    FactorOptions one = o;
    one.input = input;
    one.output = output;
    one.force = o.force || replaces;
    one.progress = ProgressMode::never;  // the files are counted
    const std::unique_ptr<Reader> reader = open_input_of(one, limits);
    return outcome_of(one, factor_input(one, *reader, limits, laps, /*shared=*/nullptr, &backend));
  }));
}

/// Prints what the runs of all inputs would need.
ExitCode dry_run_into(const FactorOptions& o) {
  std::vector<RunCost> costs;
  for (const InputInto& each : plan_into(job_into(o, {})).inputs) {
    FactorOptions one = o;
    one.input = each.input;
    one.output = each.output;
    one.force = o.force || each.replaces;
    std::ranges::move(costs_of_factor(one), std::back_inserter(costs));
  }
  print_costs(o, "factor", o.into, costs);
  return ExitCode::good;
}

}  // namespace

ExitCode run_factor(const FactorOptions& o, Comm& comm) {
  if (comm.size() > 1) {
    together(comm, [&] { refuse_for_ranks(o); });
    return factor_on_ranks(o, comm);
  }
  if (o.dry_run && !o.into.empty()) return dry_run_into(o);
  if (!o.is_of_several && has_pattern(o.datasets)) return run_factor(with_datasets(o), comm);
  if (o.dry_run) {
    print_costs(o, "factor", o.output, costs_of_factor(o));
    return ExitCode::good;
  }
  if (o.is_of_several || o.datasets.size() > 1) return factor_several(o);
  Laps laps(process_seconds());
  Limits limits = host_limits(o.memory_bytes, o.threads);
  limits.has_scratch = !o.scratch.empty();
  if (!o.into.empty()) return factor_into(o, limits);
  start_device(o.backend);
  const std::unique_ptr<Reader> input = open_input_of(o, limits);
  return print(o, outcome_of(o, factor_input(o, *input, limits, laps, /*shared=*/nullptr,
                                             &backend_until_exit())));
}

}  // namespace qrtool
