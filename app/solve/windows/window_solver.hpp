// SPDX-License-Identifier: Apache-2.0
// window_solver.hpp: a regression for every row of a table, over the last rows of its group.
//
//   row            0 1 2 3 4 5 6
//   window of 2    . . .            absent rows stand before the first row of a group
//   window of 6            . . .    neighbouring windows share all rows but one
//
// The windows are the matrices of a batch that lie one row apart, so that none of them is copied.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "app/solve/groups/group_system.hpp"
#include "app/solve/windows/window_results.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "core/solve/results/fit.hpp"

namespace qrtool {

/// Rows of one group, at each of which a window ends.
struct WindowRun {
  GroupRows rows;
  index_t group = 0, first = 0, count = 0;
};

/// Solves windows. The results of a window depend on its own rows alone: neither on others, nor on
/// threads and memory.
class WindowSolver {
 public:
  /// `longest`: the most rows of a group. `system` must outlive the solver. Errors: LimitError if
  /// one window is too large for the memory.
  WindowSolver(const GroupSystem& system, index_t longest, const Limits& limits);

  /// Returns the most windows that solve() takes together.
  index_t most_windows() const { return most_windows_; }
  std::size_t memory_bytes() const;
  /// Solves for all responses of the windows of some runs, of which only the first may go on in a
  /// group that it does not begin. The results stand until the next call.
  const WindowResults& solve(std::span<const WindowRun> runs);

 private:
  /// A window, and its place: the number of its last row in memory.
  struct Window {
    index_t place = 0, present = 0;  // rows
  };
  void load(std::span<const WindowRun> runs);
  void solve_response(index_t response);
  void count_rows(index_t response);
  bool counts(index_t row, index_t response) const;
  void finish(index_t window, index_t response, FitWorker<double>& worker);
  FitReport fit_of(const Window& window, index_t response, FitWorker<double>& worker);
  /// Returns the numbers of row `row` in memory; those of absent rows come before row 0.
  double* a(index_t row) const { return &a_.view()[0](rows_ - 1 + row, 0); }
  double* b(index_t row) const { return &b_.view()[0](rows_ - 1 + row, 0); }
  double* w(index_t row) const {
    return has_weights_ ? &w_.view()[0](rows_ - 1 + row, 0) : nullptr;
  }

  const GroupSystem& system_;
  index_t rows_, most_windows_;  // rows of a window
  bool has_weights_;
  Limits limits_;
  SolveProblem problem_;
  CpuBackend cpu_;
  std::optional<SystemEngine<double>> engine_;
  std::vector<FitWorker<double>> fits_;  // one for each thread
  Batch<double> a_, b_, w_, x_, se_;
  std::vector<SolutionReport> reports_;
  std::vector<MatrixFindings> findings_;
  std::vector<index_t> counted_;  // rows that count among those before each row
  std::vector<Window> windows_;
  std::vector<SystemRef<double>> systems_;
  WindowResults results_;
};

}  // namespace qrtool
