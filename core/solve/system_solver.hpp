// SPDX-License-Identifier: Apache-2.0
// system_solver.hpp: solves the least-squares problems of one matrix A, checks every solution, and
// improves those that the check refuses.
//
//   x = R^-1 z  ->  check  ->  one correction d = R^-1 R^-H g  ->  Householder reflectors, float64
//
// A solution is replaced only by one with a smaller backward error. float64 and complex128 problems
// of a condition above 10^4 get their correction at once, with r and g in twice the precision, so
// that x is as accurate as the rounded data allow; where the rank is not full, the basic solution
// and the dependencies get it.
//
// All norms, g and R of the check are of A with columns of norm 1, to a factor of 2, and of x
// scaled so: a check of ||A|| sees nothing of columns that are small beside others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/problem/problem.hpp"
#include "core/report/report.hpp"
#include "core/solve/backward_error.hpp"
#include "core/solve/ranked/ranked_factor.hpp"
#include "core/solve/residual.hpp"

namespace qrtool {

/// The line of the report about each solution.
struct SolutionReport {
  double residual_norm = not_measured;   // ||b - A x||, measured
  double backward_error = not_measured;  // of x as it is stored
  double least_norm_error = not_measured;
  double bar = not_measured;          // for both errors
  double freedom = not_measured;      // degrees of freedom: rows that count, less the rank
  Status status = Status::unchecked;  // r_overflows: x is larger than its type can hold
  std::uint8_t tries = 1;             // 2: reflectors made x after another way had failed
};

/// The line of the report about each matrix A.
struct MatrixFindings {
  std::int32_t rank = -1;  // -1: A is not finite
  double condition = not_measured, scaled_condition = not_measured;
};

/// The problems of one shape, and how they are solved.
struct SolveRules {
  ElementType type = ElementType::float64;  // of X
  index_t m = 0, n = 0;                     // rows and columns as the bar counts them
  RankRule rank;
  bool wants_se = false;
  bool only_checks = false;  // solve() takes X as it is and checks it
  bool may_refine = true;    // false: the rows are too many to be read a third time
};

/// Below this condition, with columns scaled to norm 1, a correction in twice the precision cannot
/// be seen in x.
constexpr double least_refined_condition = 1e4;

/// Whether R may be corrected by sums in twice the precision.
inline bool has_precise_sums(const SolveRules& rules) {
  return rules.may_refine && real_of(rules.type) == ElementType::float64;
}
/// Whether solutions of problems above that condition are corrected at once.
inline bool is_refined(const SolveRules& rules) {
  return has_precise_sums(rules) && !rules.only_checks;
}

/// The rows of A and B, wherever they are, for sums in S. Everything is scaled: column j of A by
/// 2^-scale_a[j], right side j by 2^-scale_b[j], so that the largest entries are about 1.
template <class S>
class SystemRows {
 public:
  virtual ~SystemRows() = default;

  /// Sums for the right sides first .. first + x.cols - 1. x is n x p, packed.
  virtual void add_residual(index_t first, MatrixView<const S> x, ResidualSums<S>& sums) = 0;
  /// Adds sums for one right side in twice the precision, or for zeros if j < 0. Only for float64
  /// and complex128.
  virtual void add_precise_residual(index_t j, const S* x, std::vector<S>& gradient,
                                    double& r_squares) = 0;
  /// Computes R of A (k x n) and z = Q^H b (k) by reflectors in float64. Returns false if the rows
  /// cannot do that.
  virtual bool factor_again(index_t j, MatrixView<S> r, S* z) = 0;
};

/// Solves for the right sides of one matrix, p at a time at most. Each thread needs its own object.
template <class T>
class SystemSolver {
 public:
  using S = Wide<T>;
  using Rows = SystemRows<S>;

  explicit SystemSolver(const SolveRules& rules) : rules_(rules) {}

  /// Copies R (k x n) of A, whose columns are scaled by 2^-scales; empty: they are not scaled.
  template <class C>
  void take_factor(MatrixView<const C> r, std::span<const int> scales = {});
  const RankedFactor<S>& factor() const { return factor_; }
  MatrixFindings findings() const;

  struct Places {
    MatrixView<T> x;         // n x p
    MatrixView<Real<T>> se;  // n x p; empty: not wanted
    std::span<SolutionReport> reports;
    std::span<const index_t> rows_used;  // of each right side, for the degrees of freedom
  };
  /// Solves for right sides first .. first + p - 1, given z = Q^H B (k x p), and checks. scales:
  /// the scales of the p right sides.
  void solve(Rows& rows, index_t first, MatrixView<const S> z, std::span<const int> scales,
             const Places& places);

 private:
  void check(Rows& rows, index_t first, std::span<const int> scales, const Places& places);
  /// A solution for one right side, and the findings of the check.
  struct Candidate {
    std::vector<S> x;  // of the scaled A and b, as stored: every entry is a T
    std::vector<S> g;
    SolutionNorms norms;
    double data_residual = 0, error = 0, least_norm_error = 0, bar = 0;
    bool fits = true;  // in the range of T

    bool passes() const { return fits && error <= bar && least_norm_error <= bar; }
    bool is_better_than(const Candidate& other) const;
  };

  /// Returns the exponent of a stored x_i, for a right side of this scale.
  int shift_of(index_t i, int scale_b) const {
    return scale_b - (scales_.empty() ? 0 : scales_[static_cast<std::size_t>(i)]);
  }
  void correct_dependencies(Rows& rows);
  void find_solutions(Rows& rows, index_t first, MatrixView<const S> z, MatrixView<S> x);
  Candidate candidate(const std::vector<S>& x, int scale_b) const;
  void measure(Rows& rows, index_t j, Candidate& c) const;
  void judge(const ResidualSums<S>& sums, index_t column, Candidate& c) const;
  void refine(Rows& rows, index_t j, int scale_b, Candidate& best) const;
  void correct(Rows& rows, index_t j, int scale_b, Candidate& best) const;
  void correct_least(Rows& rows, index_t j, int scale_b, Candidate& best) const;
  bool try_again(Rows& rows, index_t j, int scale_b, Candidate& best) const;
  void store(const Candidate& c, index_t column, int scale_b, const Places& places) const;

  SolveRules rules_;
  Batch<S> r_;
  std::vector<int> scales_;  // of A's columns; empty: none
  RankedFactor<S> factor_;
  bool has_dependencies_ = false;  // corrected, where that is wanted
  std::vector<double> row_norms_;  // of R^-1, for standard errors
};

}  // namespace qrtool
