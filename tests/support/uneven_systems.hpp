// SPDX-License-Identifier: Apache-2.0
// uneven_systems.hpp: hard systems whose rows do not all count the same: rows with weights, and
// rows in which an entry is missing.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/solve/packing.hpp"
#include "core/solve/system.hpp"
#include "tests/support/hard_systems.hpp"

namespace qrtool::test {

enum class Weights { none, of_all, of_each };

/// Which rows of a system count, with which weights, and whether a ridge adds rows.
struct RowRule {
  Weights weights = Weights::none;
  bool has_gaps = false;
  double ridge = 0;
};
constexpr std::array<RowRule, 6> row_rules{{{Weights::none, false},
                                            {Weights::of_all, false},
                                            {Weights::of_each, false},
                                            {Weights::none, true},
                                            {Weights::of_all, true},
                                            {Weights::of_each, true}}};
/// Returns the name of a rule, without its ridge: "plain", "weights of all and gaps", ..
std::string name_of(const RowRule& rule);
template <class T>
SolveProblem problem_of(const HardSystems<T>& systems, const RowRule& rule);

template <class T>
struct UnevenSystems {
  RowRule rule;
  HardSystems<T> systems;
  std::vector<T> w;             // m weights, or m of each system
  std::vector<double> factors;  // of the rows of all systems: the root of the weight; 0: left out

  SolveProblem problem() const { return problem_of(systems, rule); }
  std::vector<SystemRef<T>> refs() const;
  /// Describes the right sides, and places for one result of each.
  RightSideBlock<T> block(std::vector<T>& x, std::vector<SolutionReport>& reports,
                          std::vector<MatrixFindings>& findings) const;
  index_t rows_used(index_t system) const;
  /// Returns these problems in float64 without weights and gaps: rows are multiplied by their
  /// factors.
  UnevenSystems<double> evened() const;
};

/// Weights are from 1e-12 to 1e12 or 0, and rows of weight 0 may hold NaN and infinities. A missing
/// entry is NaN in A, in b, or in both. Seven of eight systems keep n rows that count, if they have
/// them; of the others any number may be left out.
template <class T>
UnevenSystems<T> make_uneven_systems(const HardSystems<T>& systems, const RowRule& rule,
                                     std::uint64_t seed);

/// Solutions, and what the solver says of them.
template <class T>
struct SystemAnswers {
  std::vector<T> x;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
  std::vector<index_t> refused;  // systems that a device leaves to the CPU, in rising order
};
/// Solves on the CPU by core's engine.
template <class T>
SystemAnswers<T> solve_on_cpu(const UnevenSystems<T>& systems);
/// x is given.
template <class T>
SystemAnswers<T> check_on_cpu(const UnevenSystems<T>& systems, std::vector<T> x);

}  // namespace qrtool::test
