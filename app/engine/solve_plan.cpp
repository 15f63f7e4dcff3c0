// SPDX-License-Identifier: Apache-2.0
// solve_plan.cpp: the route follows from the shapes alone, never from the memory.
#include "app/engine/solve_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/solve/engines/pack_solver.hpp"
#include "core/solve/engines/shared_engine.hpp"
#include "core/solve/engines/tall_system.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// The usual bytes of a chunk, and the number of buffers that take turns.
struct Cut {
  std::size_t bytes;
  int buffers;
};

/// Chunks stay in the last cache.
constexpr Cut cut_for_cpu = {std::size_t{8} << 20, 3};
/// Returns how chunks for a device are cut. The device cuts a chunk again into parts that overlap.
/// Locking memory takes half a second per gigabyte. If systems have their own A, little is written,
/// and small buffers are faster: 65,536 of 288x97 took 1.01 s with 2 buffers of 128 MiB, 1.12 s
/// with 2 of 256, 1.14 s with 3 of 128, and 1.17 s with 3 of 64 (H100). If all right sides share
/// one A, X is large, and more buffers are faster: 8 million of one 120x4 took 3.1 s with 3 buffers
/// of 256 MiB, 3.5 s with 2 of 256, and 3.3 s with 3 of 128.
Cut cut_for_device(const RightSides& sides) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  return sides.shares_a() ? Cut{256 * mebibyte, 3} : Cut{128 * mebibyte, 2};
}

/// Returns the bytes of a group in a chunk: A if the group has its own, b, weights, x and its
/// error, and the report.
std::size_t group_bytes(const SystemsShape& shape, const SolveProblem& p, const SolvePlan& plan) {
  const index_t of_a = shape.sides.shares_a() || plan.route == SolveRoute::shared ? 0 : p.m * p.n;
  const index_t of_b = p.m * plan.group_size * (shape.has_own_weights() ? 2 : 1);
  // The memory for fitted values and residuals, whose type may differ from b's.
  const auto of_fit = static_cast<std::size_t>(p.m * plan.group_size) * size_of(shape.fits.type);
  const index_t of_x =
      p.n * plan.group_size * ((p.wants_se ? 2 : 1) + (p.wants_covariance ? p.n : 0));
  return static_cast<std::size_t>(of_a + of_b + of_x) * size_of(p.type) +
         of_fit * static_cast<std::size_t>(shape.fits.arrays()) +
         static_cast<std::size_t>(plan.group_size) *
             (sizeof(SolutionReport) + sizeof(MatrixFindings) + sizeof(FitReport) +
              6 * sizeof(double));
}

void fit_chunks(const SystemsShape& shape, const SolveProblem& problem, const Limits& limits,
                const Cut& cut, SolvePlan& plan) {
  const std::size_t group = std::max<std::size_t>(group_bytes(shape, problem, plan), 1);
  std::size_t fixed = limits.host_bytes / 2;
  if (plan.route == SolveRoute::shared)
    fixed = with_type(problem.type, [&](auto zero) {
      using T = decltype(zero);
      return SharedEngine<T>::workspace_bytes(problem, limits.threads) +
             FitEngine<T>::workspace_bytes(problem, shape.fits, limits.threads);
    });
  const std::size_t least = plan.route == SolveRoute::shared ? fixed + group : 2 * group;
  const bool may_be_rows = !shape.sides.as_rows && !shape.is_table;
  if (fixed + group > limits.host_bytes)
    throw LimitError(
        fmt::format("{}: {} right sides of one {}x{} A need {} of host memory; the limit is {}",
                    shape.name, format_count(plan.group_size), problem.m, problem.n,
                    format_bytes(least + limits.file_bytes),
                    format_bytes(limits.host_bytes + limits.file_bytes)),
        hint_of_memory(least + limits.file_bytes) +
            (may_be_rows ? "; or store each right side as a row, [..., m]" : ""));
  const std::size_t room = limits.host_bytes - fixed;
  for (plan.buffers = cut.buffers; plan.buffers > 1 && group * plan.buffers > room;
       --plan.buffers) {
  }
  const std::size_t bytes = std::min(room / plan.buffers, std::max(cut.bytes, group));
  plan.chunk_groups = std::clamp<index_t>(static_cast<index_t>(bytes / group), 1,
                                          std::max<index_t>(plan.groups, 1));
  const std::size_t buffers = group * static_cast<std::size_t>(plan.chunk_groups * plan.buffers);
  const std::size_t engine = plan.route == SolveRoute::shared ? fixed : plan.factor.host_bytes;
  plan.host_bytes = std::min(buffers + engine, limits.host_bytes);
}

/// Returns the bytes that a tall matrix needs besides its rows. There are two copies of the rows:
/// as they are read, and packed.
std::size_t tree_bytes(const Problem& factored, const Limits& limits) {
  const Variant* const variant = least_costly(factored, cpu_variants(), limits);
  const bool has_rows = variant != nullptr && variant->row_state_bytes != nullptr;
  return has_rows ? variant->row_state_bytes(factored) : 0;
}

/// Calls make_plan(), with the advice in its errors replaced by advice for `solve`.
Plan plan_factors(const Problem& factored, const Limits& limits, std::string_view variant) {
  try {
    return make_plan(factored, cpu_variants(), limits, variant);
  } catch (const LimitError& error) {
    throw LimitError(error.what(), "raise --memory; some of it holds the rows a second time");
  }
}

}  // namespace

Plan plan_factor(const SolveProblem& problem, index_t systems, index_t p, const Limits& limits,
                 std::string_view forced) {
  const Problem factored = with_type(problem.type, [&](auto zero) {
    return SystemEngine<decltype(zero)>::factored_problem(problem, systems, p);
  });
  // The route tall takes systems of any size, and those of many rows a few rows at a time.
  for (const Variant& each : cpu_variants())
    if (problem.wants_state && each.row_state_bytes != nullptr && each.takes(factored, limits).ok)
      forced = each.name;
  const bool is_free = forced.empty() && pays_as_pack(problem, systems, p);
  Limits own = limits;
  own.host_bytes = (limits.host_bytes + tree_bytes(factored, limits)) / 2;
  return plan_factors(factored, own, is_free ? "cpu/batched" : forced);
}

SolvePlan plan_solve(const SystemsShape& shape, const SolveProblem& problem, const Limits& limits,
                     std::string_view forced) {
  const RightSides& sides = shape.sides;
  const index_t all = sides.items() * sides.p;
  const bool has_own_weights = shape.has_own_weights();
  const bool shares = sides.shares_a() && pays_as_shared(problem.n, all);
  SolvePlan plan;
  plan.threads = limits.threads;
  plan.splits = has_own_weights || problem.skips_missing;
  // Right sides of one A that are rows in the file may be taken one by one.
  const bool are_single = sides.shares_a() && sides.as_rows && (shares || plan.splits);
  plan.groups = are_single ? all : sides.items();
  plan.group_size = are_single ? 1 : sides.p;
  const bool is_shared =
      !problem.wants_state && ((shares && (!has_own_weights || takes_own_weights(problem))) ||
                               (!plan.splits && pays_as_shared(problem.n, sides.p)));
  plan.route = is_shared ? SolveRoute::shared : SolveRoute::each;
  const auto plan_systems = [&](index_t p) { return plan_factor(problem, all, p, limits, forced); };
  if (!is_shared) {
    plan.factor = plan_systems(plan.system_size());
    if (problem.wants_state || plan.factor.variant->row_state_bytes != nullptr) {
      plan.route = SolveRoute::tall;
      plan.host_bytes = plan.factor.host_bytes;
      return plan;
    }
  } else if (plan.splits) {
    plan.factor = plan_systems(1);
  }
  fit_chunks(shape, problem, limits, cut_for_cpu, plan);
  return plan;
}

void take_device(const SystemsShape& shape, const SolveProblem& problem, const Limits& limits,
                 SolvePlan& plan) {
  if (!shape.sides.shares_a() || problem.weighs_each) plan.route = SolveRoute::each;
  fit_chunks(shape, problem, limits, cut_for_device(shape.sides), plan);
}

}  // namespace qrtool
