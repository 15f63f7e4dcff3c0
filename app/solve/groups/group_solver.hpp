// SPDX-License-Identifier: Apache-2.0
// group_solver.hpp: solves for many groups of different sizes. Groups with the same number of rows
// go through the engine of many systems together; a large one is solved as a system of its own, by
// all threads, and its rows are read again where they are not in memory.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "app/solve/groups/group_system.hpp"
#include "core/plan/plan.hpp"
#include "core/problem/problem.hpp"
#include "core/solve/engines/system_engine.hpp"

namespace qrtool {

/// Solves for groups. The results of a group depend on its own rows alone: neither on the other
/// groups, nor on threads and memory.
class GroupSolver {
 public:
  /// `system` must outlive the solver.
  explicit GroupSolver(const GroupSystem& system) : system_(system) {}

  /// Solves for some groups, within the limits of the solver alone. Errors: LimitError if a group
  /// is too large for the memory.
  GroupAnswers solve(std::span<const GroupRows> groups, const Limits& limits);

 private:
  /// One response of one group, and its place among the answers.
  struct Item {
    index_t rows = 0, place = 0;
  };
  /// All groups with the same number of rows.
  struct SizeClass {
    SolveProblem problem;
    Plan plan;
    bool is_small = false;
  };
  /// Some items of a class, which one thread solves together.
  struct Task {
    const SizeClass* of = nullptr;
    std::span<const Item> items;
  };
  const SizeClass& class_of(index_t rows);
  std::vector<Item> items_of(std::span<const GroupRows> groups, GroupAnswers& answers) const;
  void solve_task(const Task& task, std::span<const GroupRows> groups, GroupAnswers& answers) const;
  void solve_alone(const Item& item, const GroupRows& rows, GroupAnswers& answers) const;
  index_t response_of(const Item& item) const { return item.place % system_.count_responses(); }
  const GroupRows& rows_of(const Item& item, std::span<const GroupRows> groups) const {
    return groups[static_cast<std::size_t>(item.place / system_.count_responses())];
  }

  const GroupSystem& system_;
  Limits limits_;
  std::map<index_t, SizeClass> classes_;  // by rows
};

}  // namespace qrtool
