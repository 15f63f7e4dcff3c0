// SPDX-License-Identifier: Apache-2.0
// packing.hpp: makes the system that is factored from A, b, weights and options: rows that count
// nothing are zero, weighted rows are multiplied, a ridge adds rows, and powers of two bring every
// column of A to a norm of about 1, and every right side to a largest part of about 1. So no column
// loses digits beside a larger one.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/problem/problem.hpp"
#include "core/solve/system_solver.hpp"

namespace qrtool {

/// The problem that is solved for every A (m x n) of a run.
struct SolveProblem {
  ElementType type = ElementType::float64;
  index_t m = 0, n = 0;
  RankRule rank;
  double ridge = 0;            // min ||A x - b||^2 + ridge ||x||^2
  bool has_intercept = false;  // column 0 of A is all ones, and a ridge leaves its x alone
  bool has_weights = false;    // of the rows
  bool weighs_each = false;    // with has_weights: each right side has weights of its own
  bool skips_missing = false;  // a row with NaN in A or b is left out of that problem
  bool wants_se = false;
  bool wants_covariance = false;  // with wants_se
  bool wants_state = false;       // further rows may be appended: see system_state.hpp
  index_t state_rows = 0;         // the first of the m rows, which are those of a state
  bool only_checks = false;       // X is given
  /// Whether x is the solution of least norm, not NaN, if the rows that count do not determine it.
  bool takes_few_rows = false;

  bool operator==(const SolveProblem&) const = default;

  /// The rows that are factored. The ridge is n rows sqrt(ridge) I below A, with zeros in b; the
  /// row of an intercept is zero.
  index_t packed_rows() const { return m + (ridge > 0 ? n : 0); }
  /// Returns the entry on the diagonal of row `j` of the ridge.
  double penalty(index_t j) const { return has_intercept && j == 0 ? 0 : std::sqrt(ridge); }
  index_t k() const { return std::min(packed_rows(), n); }
  /// Returns the least number of rows that must count for a right side to have a solution. With a
  /// ridge, or if A itself has fewer rows than columns, one row is enough.
  index_t least_rows() const {
    if (takes_few_rows) return 0;
    return ridge > 0 || m < n ? std::min({m, n, index_t{1}}) : n;
  }
  SolveRules rules() const {
    return {.type = type,
            .m = packed_rows(),
            .n = n,
            .rank = rank,
            .wants_se = wants_se,
            .only_checks = only_checks};
  }
};

/// The places of vectors in an array: entry i of vector s is at (s / group) group_stride + (s %
/// group) stride + i step.
struct VectorPlaces {
  index_t group = 1, group_stride = 0, stride = 0, step = 1;

  index_t start(index_t s) const { return s / group * group_stride + s % group * stride; }
  /// Return the places of the columns of m x p matrices, one after another, and of rows of m
  /// neighbours.
  static VectorPlaces columns(index_t m, index_t p) { return {p, m * p, 1, p}; }
  static VectorPlaces rows(index_t m) { return {1, m, 0, 1}; }
};

/// Right sides in memory, and the places of their results. If one vector of weights serves all
/// right sides, w_places is {1, 0, 0, step}.
template <class T>
struct RightSideBlock {
  index_t count = 0;
  const T* b = nullptr;
  VectorPlaces b_places = {};
  const Real<T>* w = nullptr;  // weights of the squared residuals; null: all 1
  VectorPlaces w_places = {};
  T* x = nullptr;
  Real<T>* se = nullptr;  // null: not wanted
  VectorPlaces x_places = {};
  std::span<SolutionReport> reports = {};
  std::span<MatrixFindings> findings = {};  // one for each right side, or empty
  T* covariance = nullptr;  // n x n for each right side, one after another; null: not wanted

  /// Returns whether there are weights, and one vector of them does not serve all right sides.
  bool has_own_weights() const { return w != nullptr && w_places.group_stride != 0; }
};

/// The factor of each row: the root of its weight, or 0 for a row that is left out.
class RowFactors {
 public:
  explicit RowFactors(index_t m) : roots_(m, 1.0) {}

  /// Makes all rows count once.
  void reset();
  /// Multiplies the rows by the roots of m weights, `step` apart. No weight is negative.
  template <class R>
  void weigh(const R* w, index_t step);
  void leave_out_first(index_t rows) { std::fill_n(roots_.begin(), rows, 0.0); }
  /// Leaves out the rows in which A, or b, has a NaN.
  template <class T>
  void leave_out(MatrixView<const T> a);
  template <class T>
  void leave_out(const T* b, index_t step);

  index_t used() const;
  double operator[](index_t i) const { return roots_[i]; }

 private:
  std::vector<double> roots_;
};

/// A power of two as two factors, each of which is in range.
class PowerOfTwoFactor {
 public:
  explicit PowerOfTwoFactor(int exponent)
      : half_(std::ldexp(1.0, exponent / 2)), rest_(std::ldexp(1.0, exponent - exponent / 2)) {}
  double operator()(double x) const { return x * half_ * rest_; }

 private:
  double half_, rest_;
};

/// A scale, and whether all entries that count are finite.
struct PackedScale {
  int scale = 0;
  bool is_finite = true;
};

/// to := A with factored rows and the rows of the ridge (packed_rows x n), and column j times
/// 2^-scales[j], which brings its norm to [1/2, 1). Returns false, with `to` zero, if A is not
/// finite.
template <class T>
bool pack_matrix(const SolveProblem& problem, MatrixView<const T> a, const RowFactors& rows,
                 MatrixView<T> to, std::vector<int>& scales);
/// Column `column` of `to` := b 2^-scale with factored rows.
template <class T>
PackedScale pack_right_side(const SolveProblem& problem, const T* b, index_t step,
                            const RowFactors& rows, MatrixView<T> to, index_t column);

/// Reads a packed system in memory: A (rows x n) and B (rows x p).
template <class T>
class PackedRows final : public SystemRows<Wide<T>> {
 public:
  using S = Wide<T>;

  PackedRows(const SolveProblem& problem, MatrixView<const T> a, MatrixView<const T> b)
      : problem_(problem), a_(a), b_(b) {}

  void add_residual(index_t first, MatrixView<const S> x, ResidualSums<S>& sums) override;
  void add_precise_residual(index_t j, const S* x, std::vector<S>& gradient,
                            double& r_squares) override;
  bool factor_again(index_t j, MatrixView<S> r, S* z) override;

 private:
  const SolveProblem& problem_;
  MatrixView<const T> a_, b_;
};

}  // namespace qrtool
