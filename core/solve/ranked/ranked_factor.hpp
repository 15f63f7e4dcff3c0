// SPDX-License-Identifier: Apache-2.0
// ranked_factor.hpp: R of A = Q R with its numerical rank, ready to solve least-squares problems in
// float64 or complex128.
//
//   full column rank     x = R^-1 z                                z = Q^H b
//   less, or m < n       R D^-1 P = Q2 [U V; 0 W],  W is dropped
//                        y = U^-1 (Q2^H z)[:rank]                  basic
//                        D P'x = [y - N t; t],  N = U^-1 V         least norm (least_norm.hpp)
//   at most n / 2, and U well-conditioned
//                        [U V] D P'x = (Q2^H z)[:rank]             least norm (wide_least_norm.hpp)
//
// D: the norms of R's columns, rounded to powers of two, so that neither the rank nor A x depends
// on the units of the columns. All that a solution is judged by is of R D^-1, which has columns of
// norm 1 to a factor of 2, and of D x. Source of the pivoting: LAPACK gelsy.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/problem/problem.hpp"
#include "core/solve/ranked/triangular.hpp"

namespace qrtool {

/// Returns u max(16, 2n), where u is 2^-23 or 2^-52 by the parts of `type`. It does not depend on
/// m, so that more rows do not make independent columns look dependent.
double default_rank_tolerance(ElementType type, index_t n);

/// If the estimate of the smallest singular value is this many times the tolerance, the rank is
/// full and no pivoting is needed: no pivot is smaller than the smallest singular value, and the
/// estimate, after three steps of inverse iteration, exceeds it by much less than this factor.
constexpr double rank_margin = 10;

struct RankRule {
  double tolerance = 0;   // the rank counts the |s_ii| > tolerance |s_11|
  bool is_basic = false;  // zeros in place of the solution of least norm

  bool operator==(const RankRule&) const = default;
};

/// Decides the rank of one R after another, and solves with it. Each thread needs its own object.
/// `r` must outlive its use here. Solutions and gradients belong to r's columns.
template <class S>
class RankedFactor {
 public:
  RankedFactor();
  ~RankedFactor();
  RankedFactor(RankedFactor&&) noexcept;

  /// Sets the upper trapezoidal r (k x n), k = min(m, n), of the columns of A 2^-scales. The least
  /// norm and the condition refer to A's own columns. Empty scales mean that all are 0.
  void set(MatrixView<const S> r, const RankRule& rule, std::span<const int> scales = {});

  index_t rank() const { return rank_; }
  bool has_full_column_rank() const { return !complete_; }
  /// Whether solve() gives the solution of least norm among several.
  bool has_least_norm() const { return complete_ && !is_basic_; }
  /// Whether solutions could gain from a correction: the rank is not full, and the condition of the
  /// independent columns is above `least`.
  bool has_hard_basis(double least) const;
  /// Return the Frobenius norms ||R D^-1|| and ||W||, the part that is taken as zero if the rank is
  /// less than k.
  double norm() const { return norm_; }
  double dropped_norm() const { return dropped_norm_; }
  /// Return estimates of the condition number, and of the condition number with columns scaled to
  /// norm 1; both are infinite if the second is beyond 2^64.
  double condition() const { return condition_; }
  double scaled_condition() const { return scaled_condition_; }
  /// Return R D^-1 and the exponents of D.
  MatrixView<const S> r() const { return r_; }
  std::span<const int> exponents() const { return exponents_; }

  /// X (n x p) for Z = Q^H B (its first k rows).
  void solve(MatrixView<const S> z, MatrixView<S> x) const;
  /// Which of two ways gives an entry of the least-norm solution if they differ: the way that keeps
  /// A x, or the way that keeps the norm.
  enum class Choice { fit, least };
  /// g := the d that minimises ||A d - r||, for g = A^H r; of least norm, or basic, like solve().
  void correct(std::vector<S>& g, Choice choice = Choice::fit) const;
  /// Return the basic solution for z, and correct() for basic solutions. The rank must not be full.
  std::vector<S> basic_solution(MatrixView<const S> z) const;
  void correct_basic(std::vector<S>& g) const;
  /// Replaces x by the solution that solve() gives, for any x with the same A x.
  void choose_among_equals(std::vector<S>& x, Choice choice = Choice::fit) const;
  /// Corrects the dependencies N, whose errors are the errors of R times the condition of the
  /// independent columns. gradient(x) returns -A^H A x in r's columns.
  void correct_dependencies(const std::function<std::vector<S>(const std::vector<S>& x)>& gradient);

  /// Returns D x and D^-1 g, by which x is judged.
  std::vector<S> times_sizes(std::vector<S> x) const;
  std::vector<S> over_sizes(std::vector<S> g) const;
  /// Returns ||R^-H g||, and infinity without full column rank.
  double adjoint_solution_norm(const std::vector<S>& g) const;
  /// Returns ||D^-1 (x - A^H w)|| / (||A D^-1|| ||w||) for the w that makes it least. 0 with full
  /// column rank, and for basic solutions. A bound up to `clear` is not sharpened.
  double least_norm_error(const S* x, double clear = 0) const;
  /// Returns the norm of each row of R^-1. R must have full column rank.
  std::vector<double> inverse_row_norms() const;
  /// Returns inverse_row_correlations(R), or nothing without full column rank.
  std::vector<S> correlations() const {
    return complete_ ? std::vector<S>{} : inverse_row_correlations(r_);
  }

 private:
  struct Complete;

  void take_columns(MatrixView<const S> r, std::span<const int> scales);
  void find_condition(MatrixView<const S> r, std::span<const int> scales);
  void decompose(const RankRule& rule);
  std::vector<S> reduced(MatrixView<const S> z) const;
  std::vector<S> wide_solution(const std::vector<S>& c) const;

  Batch<S> scaled_;
  MatrixView<const S> r_;       // scaled_
  std::vector<int> exponents_;  // of D
  std::vector<int> sizes_;      // of A's columns
  index_t rank_ = 0;
  double norm_ = 0, dropped_norm_ = 0, condition_ = 0, scaled_condition_ = 0;
  bool is_basic_ = false;
  std::unique_ptr<Complete> complete_;  // null with full column rank
};

}  // namespace qrtool
