// SPDX-License-Identifier: Apache-2.0
// expanding_solver.hpp: a regression for every row of a table, over all rows of its group up to it.
#pragma once

#include <span>
#include <vector>

#include "app/solve/groups/group_solver.hpp"
#include "app/solve/windows/window_solver.hpp"
#include "core/solve/engines/growing_system.hpp"

namespace qrtool {

/// Solves windows that only grow, from an R that grows with them
/// (core/solve/engines/growing_system). Those in doubt are solved again from all their rows: an
/// error above its bar, and one in 1,000 if its rows do not confirm its error. The results depend
/// neither on other groups, nor on threads and memory.
class ExpandingSolver {
 public:
  /// `system` must outlive the solver.
  ExpandingSolver(const GroupSystem& system, const Limits& limits);

  /// As of WindowSolver.
  index_t most_windows() const { return most_windows_; }
  /// Solves for some runs, each of which begins its group or goes on where the last call ended.
  const WindowResults& solve(std::span<const WindowRun> runs);

 private:
  /// The rows of a group so far, for one response.
  struct Growth {
    GrowingSystem system;
    Spread b = {};  // of scaled numbers
    index_t rows = 0;
    bool is_finite = true;
  };
  void begin(const WindowRun& run);
  void load(const WindowRun& run, index_t window);
  void grow(const WindowRun& run, index_t response);
  void add_row(const double* numbers, index_t response);
  // The i-th window of a run is window `window` of the results.
  WindowLine solve_grown(index_t i, index_t window, index_t response);
  void compare_with_rows(const WindowRun& run, index_t first, index_t response,
                         std::vector<char>& is_in_doubt);
  void solve_from_rows(const WindowRun& run, index_t first, const std::vector<char>& is_in_doubt);
  void set(index_t i, index_t window, index_t response, std::span<const double> x,
           std::span<const double> se, WindowLine line);

  const GroupSystem& system_;
  Limits limits_;
  index_t most_windows_ = 1;
  SolveProblem problem_;
  FitWorker<double> fits_;
  std::vector<int> scales_;      // of the columns of A, and of the responses, in the group
  std::vector<Growth> growths_;  // of the responses
  std::vector<RowTree> trees_;
  std::vector<Growth> grown_;  // at each window of a run
  Batch<double> a_, b_;        // the last row of each of them
  WindowResults results_;
};

}  // namespace qrtool
