// SPDX-License-Identifier: Apache-2.0
// group_system.hpp: what is solved for each group of a table, and what is found.
#pragma once

#include <string>
#include <vector>

#include "app/options/options.hpp"
#include "app/solve/groups/row_store.hpp"
#include "core/solve/packing.hpp"
#include "core/solve/system_solver.hpp"

namespace qrtool {

/// The use of the columns of a table, as places in the numbers of a row, and the problem of a
/// group, without its rows.
struct GroupSystem {
  std::string file;  // for messages
  std::vector<index_t> others = {}, responses = {};
  index_t weights = -1;       // -1: there are none
  index_t row = -1;           // the number of the row in its file; -1: it is not kept
  SolveProblem problem = {};  // m is that of no group
  bool skips_missing = false;
  WindowOptions window = {};  // complete, if there are windows

  index_t terms() const { return problem.n; }
  index_t count_responses() const { return static_cast<index_t>(responses.size()); }
  /// Returns the problem of a group of m rows.
  SolveProblem problem_of(index_t m) const;
  /// Whether a row counts for a response: its weight is above zero and, if missing numbers are
  /// skipped, it has none.
  bool counts(const double* numbers, index_t response) const;
  /// Copies the numbers of A, behind the 1 of an intercept, and those of the responses.
  void divide(const double* numbers, double* a, double* b) const;
  /// Whether no number of A is missing.
  bool has_a(const double* numbers) const;
};

/// The results for one response of one group.
struct GroupLine {
  index_t rows = 0;  // that count
  SolutionReport report = {};
  MatrixFindings findings = {};
  double r2 = not_measured;
};

/// The results for some groups, response by response for each group. Solutions are rows of n.
struct GroupAnswers {
  GroupAnswers(index_t count, index_t terms)
      : x(1, count, terms), se(1, count, terms), lines(static_cast<std::size_t>(count)) {}
  Batch<double> x, se;
  std::vector<GroupLine> lines;
};

/// Finds R^2 (core/solve/results/fit) of a response by the rows that count, and judges the solution
/// by it.
void find_r_squared(const GroupSystem& system, const GroupRows& rows, index_t response,
                    GroupLine& line);

}  // namespace qrtool
