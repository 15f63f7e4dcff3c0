// SPDX-License-Identifier: Apache-2.0
// factor_on_ranks.cpp: what the ranks must agree on before, between and after the steps of a run.
#include "app/ranks/factor_on_ranks.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "app/process/process_clock.hpp"
#include "app/ranks/agreement.hpp"
#include "app/run/backends/attempts.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/file/atomic_file.hpp"
#include "io/file/rereadable.hpp"

namespace qrtool {
namespace {

/// Returns the answer of rank 0 on every rank.
bool answer_of_root(Comm& comm, bool answer) {
  std::uint64_t number = answer ? 1 : 0;
  broadcast(comm, &number, 1);
  return number != 0;
}

/// Each rank chooses for itself, since each has its own device or none. Results of two backends are
/// never mixed: if the choices differ, it is a failure of all ranks, after which `auto` uses the
/// CPU on all.
BackendChoice choose_together(BackendRequest request, const Problem& problem, const Limits& limits,
                              bool says_why, Comm& comm) {
  request.rank = comm.rank();
  request.ranks = comm.size();
  BackendChoice choice;
  together(comm, [&] { choice = choose_backend(request, problem, limits, says_why); });
  agree_on_backend(comm, *choice.backend);
  return choice;
}

/// If rank 0 is killed, another rank removes the files that rank 0 was writing, and says so.
void share_temporary_files(Comm& comm) {
  std::string paths;
  if (comm.is_root()) {
    for (const std::string& path : live_temporary_files()) paths += path + '\0';
  }
  paths = text_of_root(comm, paths);
  if (comm.is_root()) return;
  for (std::size_t at = 0; at < paths.size(); at = paths.find('\0', at) + 1)
    adopt_temporary_file(paths.data() + at);
}

}  // namespace

FactorResult factor_together(FactorRun run, Comm& comm) {
  together(comm, [&] { run.make_plan(); });
  agree_on_plan(comm, run.backend(), run.plan());
  run.say_plan();
  together(comm, [&] {
    if (comm.is_root()) run.take_outputs(run.create_outputs());
  });
  share_temporary_files(comm);
  run.run_stages(comm);
  together(comm, [&] {
    if (comm.is_root()) run.commit();
  });
  return run.finish();
}

namespace {

FactorResult factor_input_together(const FactorOptions& o, Reader& input, const Limits& limits,
                                   Laps& laps, Comm& comm) {
  const Problem problem = problem_of(input.source(), o);
  const bool is_automatic = answer_of_root(comm, o.backend.is_automatic());
  for (Attempts attempts(o.backend, is_automatic);;) {
    BackendChoice choice;
    try {
      const bool says_why = attempts.is_first() && (o.verbose || o.explain);
      choice = choose_together(attempts.request(), problem, limits, says_why, comm);
      return factor_together(FactorRun(o, input, *choice.backend, laps), comm);
    } catch (const Error& error) {
      attempts.go_on(error, choice.is_device());
    }
  }
}

}  // namespace

ExitCode factor_on_ranks(const FactorOptions& o, Comm& comm) {
  Laps laps(process_seconds());
  Limits limits = rank_limits(o.memory_bytes, o.threads, comm);
  limits.has_scratch = !o.scratch.empty();
  std::unique_ptr<Reader> input;
  together(comm, [&] {
    if (o.datasets.size() > 1)
      throw UsageError("several ranks factor one dataset", "give one --dataset, or use qrtool");
    if (is_standard_input(o.input))
      throw UsageError("several ranks cannot share standard input", "name a file");
    input = open_input_of(o, limits);
    if (input->source().needs_copy) {
      throw InputError(
          fmt::format("{}: its numbers must be copied before they are read, by each rank",
                      escape(input->source().file)),
          "store the array in C order, not compressed: numpy.save('a.npy', "
          "numpy.ascontiguousarray(a))");
    }
  });
  agree_on_source(comm, *input, o.input);
  limits = limits_beside_files(o, *input, limits);
  const FactorResult result = factor_input_together(o, *input, limits, laps, comm);
  const bool has_failed = answer_of_root(comm, result.verdict.failed() > 0);
  print(o, outcome_of(o, result));
  return has_failed ? ExitCode::answer_is_no : ExitCode::good;
}

}  // namespace qrtool
