// SPDX-License-Identifier: Apache-2.0
// solve_leverage.cpp: which leverages there are, and where weights and right sides come from.
#include "app/solve/solve_leverage.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {

void require_one_leverage(const SolveInputs& inputs, const SolveProblem& problem) {
  const bool has_one =
      inputs.sides.p == 1 && inputs.sides.items() == count_of(inputs.sides.a_leading);
  if (has_one) return;
  const std::string file = escape(inputs.a->source().file);
  if (inputs.w && !inputs.w_is_shared)
    throw UsageError(
        fmt::format("{}: --leverage and weights of its own for each right side contradict each "
                    "other: every right side would have leverages of its own",
                    file),
        "give one weight for each row, or one right side for each A");
  if (problem.skips_missing)
    throw UsageError(
        fmt::format("{}: --leverage and --missing skip contradict each other where an A has "
                    "several right sides: each leaves out rows of its own",
                    file),
        "leave --missing skip away, or give one right side for each A");
}

LeverageJob leverage_job(const SolveInputs& inputs, const SolveProblem& problem,
                         const Limits& limits, bool has_report) {
  const auto read_of = [&problem](Reader& reader, bool is_shared) -> ReadOfRows {
    return [&reader, is_shared, m = problem.m](index_t matrix, index_t first, index_t count,
                                               double* numbers) {
      read_numbers(reader, is_shared ? first : matrix * m + first, count, numbers);
    };
  };
  LeverageJob job{.a = *inputs.a,
                  .matrices = count_of(inputs.sides.a_leading),
                  .problem = problem,
                  .limits = limits,
                  .has_report = has_report};
  if (problem.skips_missing) job.b = read_of(*inputs.b, false);
  if (inputs.w) job.w = read_of(*inputs.w, inputs.w_is_shared);
  return job;
}

}  // namespace qrtool
