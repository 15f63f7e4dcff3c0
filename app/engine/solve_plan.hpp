// SPDX-License-Identifier: Apache-2.0
// solve_plan.hpp: which way the systems of a run are solved, and how many at a time.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "core/plan/plan.hpp"
#include "core/solve/packing.hpp"
#include "core/solve/results/fit.hpp"
#include "core/solve/shapes.hpp"

namespace qrtool {

/// The shapes of A, B and weights that a plan depends on.
struct SystemsShape {
  RightSides sides;
  bool has_weights = false, shares_weights = false;  // m weights serve all right sides
  FitWishes fits = {};
  std::string name = {};  // of B, in messages
  bool is_table = false;  // whose columns B is

  bool has_own_weights() const { return has_weights && !shares_weights; }
};

/// The way of a run. each: R of [A b] for every system; shared: one QR of A, and products for all
/// right sides; tall: one system after another, all threads on its rows.
enum class SolveRoute { each, shared, tall };

/// The plan of a run. A group is read and written together: the right sides of one place of the
/// batch or, if right sides of one A are rows in the file, one right side.
struct SolvePlan {
  SolveRoute route = SolveRoute::each;
  Plan factor;  // of [A b], for the routes each and tall, and for right sides with gaps
  /// Whether every right side is a system of its own, because rows are missing or have weights.
  bool splits = false;
  index_t groups = 0, group_size = 1;  // right sides of a group
  index_t chunk_groups = 1;
  int buffers = 1, threads = 1;
  std::size_t host_bytes = 0;  // at the most, about

  /// The right sides of a system, at least one, and the systems of a group.
  index_t system_size() const { return splits ? 1 : std::max<index_t>(group_size, 1); }
  index_t systems_of_group() const { return group_size / system_size(); }
};

/// Plans how the CPU factors [A b] of `systems` systems with p right sides each. `forced` as in
/// plan_solve(), and so are the errors.
Plan plan_factor(const SolveProblem& problem, index_t systems, index_t p, const Limits& limits,
                 std::string_view forced);

/// Errors: LimitError if one group does not fit the memory; UsageError if the forced variant cannot
/// run the problem. `forced`: the CPU's variant that factors; empty: the planner's choice.
SolvePlan plan_solve(const SystemsShape& shape, const SolveProblem& problem, const Limits& limits,
                     std::string_view forced = {});

/// Changes a plan for a device: every matrix that serves not all right sides is a system in memory,
/// and chunks are larger.
void take_device(const SystemsShape& shape, const SolveProblem& problem, const Limits& limits,
                 SolvePlan& plan);

}  // namespace qrtool
