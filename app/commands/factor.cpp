// SPDX-License-Identifier: Apache-2.0
// factor.cpp: `qrtool factor` opens the input, plans, factors and checks every matrix, commits the
// output and says what came of it.
#include "app/commands/commands.hpp"
#include "app/ranks/factor_on_ranks.hpp"
#include "app/run/factor_run.hpp"
#include "core/host.hpp"

namespace qrtool {
namespace {

ExitCode factor_alone(const FactorOptions& o) {
  const Stopwatch watch;
  Limits limits = host_limits(o.memory_bytes, o.threads);
  limits.has_scratch = !o.scratch.empty();
  const std::unique_ptr<Reader> input = open_input_of(o, limits);
  const auto choose = [&] {
    return choose_backend(o.backend, problem_of(input->source(), o), limits, o.verbose);
  };
  const auto factor_on = [&](Backend& backend) {
    SingleComm alone;
    FactorRun run(o, *input, backend, watch);
    run.make_plan();
    run.say_plan();
    run.create_outputs();
    run.run_stages(alone);
    run.commit();
    return run.finish();
  };
  const FactorResult result =
      factor_with_fallback(o.backend.is_automatic(), limits, choose, factor_on);
  print_result(o, result);
  return result.verdict.failed() > 0 ? ExitCode::answer_is_no : ExitCode::good;
}

}  // namespace

ExitCode run_factor(const FactorOptions& o, Comm& comm) {
  return comm.size() == 1 ? factor_alone(o) : factor_on_ranks(o, comm);
}

}  // namespace qrtool
