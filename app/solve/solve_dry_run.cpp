// SPDX-License-Identifier: Apache-2.0
// solve_dry_run.cpp: the cost of a run of `solve`, from its plan.
#include <fmt/format.h>

#include <algorithm>

#include "app/engine/opencl.hpp"
#include "app/solve/solve_run.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/cpu/cpu_rates.hpp"
#include "core/problem/operations.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

double read_seconds(const SolveInputs& inputs, ElementType type) {
  double seconds = 0;
  for (Reader* reader : {inputs.a.get(), inputs.b.get(), inputs.w.get()})
    if (reader != nullptr) seconds += seconds_to_read(*reader, type, /*passes=*/1);
  return seconds;
}

std::uint64_t bytes_of(const Reader& reader, ElementType type) {
  const Source& source = reader.source();
  return static_cast<std::uint64_t>(source.count() * source.m * source.n) * size_of(type);
}

/// Returns the problem of R for A of every place of the batch.
Problem factored_problem(const SolveInputs& inputs, const SolveProblem& p, const SolvePlan& plan) {
  const bool is_shared = plan.route == SolveRoute::shared;
  return {.count = is_shared ? std::max<index_t>(count_of(inputs.sides.a_leading), 1)
                             : plan.groups * std::max<index_t>(plan.systems_of_group(), 1),
          .m = p.packed_rows(),
          .n = p.n,
          .type = p.type,
          .mode = Mode::r};
}

/// Returns the ratio of the time for the solutions to the time for R, both with their checks, by
/// the tables of --backend auto.
double solutions_by_r(const Work& solutions, const Backend& backend) {
  Problem factored = solutions.problem;
  if (factored.is_empty()) return 1;
  if (const std::optional<DeviceInfo> device = started_device(backend))
    return device_work(solutions, *device).run_seconds / device_work(factored, *device).run_seconds;
  factored.type = real_of(factored.type);  // the tables have no complex matrices
  const int threads = backend.limits().threads;
  return cpu_seconds({factored, solutions.right_sides}, threads) / cpu_seconds(factored, threads);
}

/// Returns the operations for Q'b, x and the error of every right side, which are products with A
/// and Q. If right sides have weights of their own, A'WA is formed for each.
double product_flops(const SolveInputs& inputs, const SolveProblem& p) {
  const auto n = static_cast<double>(p.n);
  return (8 * n + (p.weighs_each ? n * (n + 1) : 0)) * static_cast<double>(p.packed_rows()) *
         static_cast<double>(count_of(inputs.sides.solution_dims));
}

std::string plan_text(const SolveInputs& inputs, const SolveProblem& p, const SolveRun& run,
                      const RunCost& cost) {
  const SolvePlan& plan = run.plan();
  const index_t right_sides = count_of(inputs.sides.solution_dims);
  const index_t at_once = std::min(plan.chunk_groups * plan.group_size, right_sides);
  std::string text =
      fmt::format("problem   {} right side{} with {} of {}x{}, {}\n", format_count(right_sides),
                  right_sides == 1 ? "" : "s", inputs.sides.shares_a() ? "one A" : "an A each", p.m,
                  p.n, name_of(p.type));
  text += fmt::format("variant   {} on {}\n", run.variant(), run.backend_name());
  text += fmt::format("chunks    {} right side{} at a time, {} in flight, {} thread{}\n",
                      format_count(at_once), at_once == 1 ? "" : "s", plan.buffers, plan.threads,
                      plan.threads == 1 ? "" : "s");
  return text + fmt::format("memory    {} of {} on the host\n", format_bytes(cost.memory_bytes),
                            format_bytes(cost.memory_limit_bytes));
}

}  // namespace

RunCost cost_of(const SolveOptions& o, const SolveInputs& inputs, const Limits& limits,
                SolveRun& run) {
  const SolveProblem& p = run.problem();
  const SolvePlan& plan = run.plan();
  const bool is_table = !o.system.response.empty();
  RunCost cost{
      .input = is_table ? o.a : o.a + " and " + o.b,
      .plan = {},
      .input_bytes = bytes_of(*inputs.a, p.type) + bytes_of(*inputs.b, p.type),
      .memory_bytes = plan.host_bytes + run.limits().file_bytes,
      .memory_limit_bytes = limits.host_bytes,
      .chunks = (plan.groups + plan.chunk_groups - 1) / std::max<index_t>(plan.chunk_groups, 1)};
  cost.plan = plan_text(inputs, p, run, cost);
  cost.read_seconds = read_seconds(inputs, p.type);
  CpuBackend cpu(limits);
  Backend& backend = run.device() != nullptr ? *run.device()->backend : cpu;
  const bool solves_each = run.device() != nullptr && !run.device()->is_shared;
  const Problem factored =
      solves_each ? run.device()->factor.problem : factored_problem(inputs, p, plan);
  const bool is_shared = plan.route == SolveRoute::shared;
  Work solutions = solve_work_of(inputs.shape(), p, plan);
  solutions.problem = factored;
  solutions.right_sides = is_shared ? count_of(inputs.sides.solution_dims) : plan.system_size();
  enter_programs(solutions, backend, /*variant=*/nullptr, cost);
  enter_compute(backend, factored, o.backend.variant, cost);
  if (!is_shared)
    cost.compute_seconds *= solutions_by_r(solutions, backend);
  else if (!factored.is_empty())
    cost.compute_seconds *=
        1 + product_flops(inputs, p) / std::max(lapack_operations(factored), 1.0);
  enter_output(run.output_spec(), cost);
  return cost;
}

}  // namespace qrtool
