// SPDX-License-Identifier: Apache-2.0
// solve.cpp: `qrtool solve` opens A and B, plans, solves and checks every right side, commits the
// output and says what came of it.
#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/solve/solve_run.hpp"
#include "core/host.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"

namespace qrtool {
namespace {

void check_names(const SolveOptions& o) {
  for (const std::string& input : {o.a, o.b, o.system.weights})
    if (!input.empty()) refuse_same_file(input, o.output);
  const std::string ending = ending_of(o.output);
  if (ending == ".npy" || ending == ".npz")
    throw UsageError(fmt::format("'{}': solutions are written to HDF5 or CSV", escape(o.output)),
                     fmt::format("write {}.h5, which h5py reads",
                                 escape(o.output.substr(0, o.output.size() - ending.size()))));
  check_output_names(o.output, /*report=*/"", o.force);
}

}  // namespace

ExitCode run_solve(const SolveOptions& o) {
  const Stopwatch watch;
  check_names(o);
  const Limits limits = host_limits(o.memory_bytes, o.threads);
  const SolveInputs inputs = open_solve_inputs({o.a, o.b}, o.system, o.order, limits.threads);
  SolveRun run(o, inputs, limits, watch);
  run.make_plan();
  run.create_output();
  run.run_stages();
  run.commit();
  const SolveResult result = run.finish();
  print_result(o, result);
  return result.verdict.failed() > 0 ? ExitCode::answer_is_no : ExitCode::good;
}

}  // namespace qrtool
