// SPDX-License-Identifier: Apache-2.0
// solve_leverage.cpp: which leverages there are, and where weights and right sides come from.
#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <vector>

#include "app/solve/side_numbers.hpp"
#include "app/solve/solve_run.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// Reads right sides, which are NaN if a row is missing.
ReadOfRows gaps_of(const SolveInputs& inputs) {
  Reader& reader = *inputs.b;
  const RightSides& sides = inputs.sides;
  if (!is_complex(reader.source().type))
    return [&](index_t side, index_t first, index_t count, double* numbers) {
      read_sides<double>(reader, sides.place(side), first, {numbers, count, 1, 1});
    };
  return [&](index_t side, index_t first, index_t count, double* numbers) {
    std::vector<std::complex<double>> b(static_cast<std::size_t>(count));
    read_sides<std::complex<double>>(reader, sides.place(side), first, {b.data(), count, 1, 1});
    std::ranges::transform(b, numbers, [](auto x) { return is_nan(x) ? not_measured : 0; });
  };
}

}  // namespace

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
                         const Limits& limits, std::span<const std::int32_t> ranks) {
  LeverageJob job{.a = *inputs.a,
                  .matrices = count_of(inputs.sides.a_leading),
                  .problem = problem,
                  .limits = limits,
                  .ranks = ranks};
  if (problem.skips_missing) job.b = gaps_of(inputs);
  if (inputs.w)
    job.w = [&inputs](index_t side, index_t first, index_t count, double* numbers) {
      const SidePlace place = inputs.w_is_shared ? SidePlace{} : inputs.sides.place(side);
      read_sides<double>(*inputs.w, place, first, {numbers, count, 1, 1});
    };
  return job;
}

LeverageJob job_of_sides(const SolveInputs& inputs, const SolveProblem& problem,
                         const Limits& limits) {
  LeverageJob job = leverage_job(inputs, problem, limits, {});
  job.a_of = [&sides = inputs.sides](index_t side) { return sides.place(side).a; };
  return job;
}

}  // namespace qrtool
