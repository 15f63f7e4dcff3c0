// SPDX-License-Identifier: Apache-2.0
// factor_into.cpp: opens, factors and commits one input after another, by one backend where it
// fits all.
#include "app/commands/factor_into.hpp"

#include <memory>

#include "app/commands/factor.hpp"
#include "app/factor/factor_run.hpp"
#include "app/run/backends/make_backend.hpp"
#include "app/run/files/into.hpp"
#include "core/machine/host.hpp"

namespace qrtool {
namespace {

OutcomeInto outcome_of(const FactorOptions& o, const FactorResult& result) {
  print_bad_matrices(result);
  OutcomeInto outcome{
      .code = result.is_good() ? ExitCode::good : ExitCode::answer_is_no,
      .text = o.verbose ? "\n" + summary(result, /*verbose=*/true) : short_summary(result),
      .json = {}};
  if (o.json) outcome.json = to_json(result);
  return outcome;
}

}  // namespace

ExitCode factor_into(const FactorOptions& o) {
  require_named_device(o.backend);
  start_device(o.backend);
  Limits limits = host_limits(o.memory_bytes, o.threads);
  limits.has_scratch = !o.scratch.empty();
  std::shared_ptr<Backend> backend;
  const auto run = [&](const std::string& input, const std::string& output) {
    Laps laps;
    FactorOptions one = o;
    one.input = input;
    one.output = output;
    one.progress = ProgressMode::never;  // the files are counted
    const std::unique_ptr<Reader> reader = open_input_of(one, limits);
    return outcome_of(one, factor_input(one, *reader, limits, laps, /*shared=*/nullptr, &backend));
  };
  return run_into({.options = o,
                   .command = "factor",
                   .schema = "qrtool.factor-into/1",
                   .folder = o.into,
                   .inputs = o.inputs,
                   .others = {},
                   .run = run});
}

}  // namespace qrtool
