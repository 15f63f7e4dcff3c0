// SPDX-License-Identifier: Apache-2.0
// fit.hpp: fitted values f = A x, residuals r = b - f and R^2 of solutions as they are stored, in
// float64. The residuals are measured as they are stored, too:
//
//   min(||D^-1 (A^H W r - l x)|| / (a ||r||), ||r|| / hypot(a ||D x||, ||b||)),  a = ||W^1/2 A
//   D^-1||
//
// with norms weighted by W, and l the ridge, whose rows count in a and in ||r||; D: the norms of
// the columns, rounded to powers of two. These are the bounds by which x was judged
// (core/solve/backward_error.hpp), without the one that takes R.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/cpu/solve/fit_kernel.hpp"
#include "core/solve/packing.hpp"

namespace qrtool {

/// The spread of b over the rows that count.
using fit::Spread;

/// Adds the rows of `other`, by the formula of Chan, Golub, LeVeque (1979), which loses nothing if
/// the mean is far from 0.
void merge(Spread& spread, const Spread& other);

/// Returns the spread of complex numbers |b - c|^2 around their mean c, from the spreads of their
/// parts in the same rows; it has no mean. It is exactly 0 if they are constant.
Spread joined(const Spread& re, const Spread& im);

/// The spread of `count` numbers times `scale`, `step` apart, with the squares of factors as
/// weights.
template <class T>
Spread spread_of(MatrixView<const T> column, double scale, const RowFactors& rows, index_t first);

/// Whether sums of squares between 0 and infinity have lost nothing to the range of float64.
bool is_in_range(double squares);
/// Returns the exponent of the power of two by which right sides of this spread are multiplied if
/// their squares are out of range. Returns nothing if that cannot help: all are 0, or one is not
/// finite.
std::optional<int> exponent_into_range(const Spread& b);

/// Returns R^2 = 1 - residual_norm^2 / total, where total is sum w (b - mean)^2 with an intercept,
/// else sum w b^2. NaN if total is 0, which means that b is constant.
double r_squared(const Spread& b, double residual_norm, bool has_intercept);

/// The findings about the fit of each right side.
struct FitReport {
  double r_squared = not_measured;
  double orthogonality = not_measured;  // of the residuals, by the formula above
  // Whether given numbers differ from the numbers that x gives.
  bool has_other_fitted = false, has_other_residuals = false;
  bool is_below_mean = false;  // no least-squares fit: see explain()
  bool is_perfect = false;     // what is left of b is rounding errors, though rows are spare
};

/// Finds R^2 and what it says of a solution with this report and, of b as it is spread, this
/// residual norm. The status becomes above_bar where R^2 is that of no least-squares fit with an
/// intercept: the mean m of b is a fit, so that ||b - f|| <= ||b - m|| for the best f. Where fitted
/// values f + d are off by ||d|| <= c ||b||, with q = ||b|| / ||b - m|| >= 1,
///
///   R^2 = 1 - ||b - f - d||^2 / ||b - m||^2 >= 1 - (1 + c q)^2 = -c q (2 + c q) >= -3 c q^2
///
/// since c <= 1 <= q. With c = bar / 3 that is -t, t = bar q^2: where R^2 is below it, the fitted
/// values are off by more than a third of the bar of ||b||. A ridge leaves the intercept alone, so
/// that the mean is a fit without a penalty, and the same holds.
FitReport explain(const Spread& b, double residual_norm, bool has_intercept,
                  SolutionReport& report);

/// The powers of two by which A and b were multiplied.
struct FitScales {
  double a = 1, b = 1;
};

/// The sums of one right side.
struct FitSums {
  fit::Sums sums = {};
  std::vector<double> gradient = {};  // A'W r; empty: residuals are not formed
  std::vector<double> columns = {};   // sum w a_j^2 of the columns, beside it
};

/// Some rows of one matrix and some right sides. The places of entries are as in fit::Sides. A and
/// b are multiplied by powers of two first; x solves the scaled problem.
template <class T>
struct FitRows {
  MatrixView<const T> a = {};
  index_t count = 0;
  const T* b = nullptr;
  index_t row_step = 1, side_step = 0;
  const Real<T>* w = nullptr;
  index_t w_row_step = 1, w_side_step = 0;
  const double* x = nullptr;                                       // count x n
  void *fitted = nullptr, *residuals = nullptr;                    // null: not wanted
  const void *given_fitted = nullptr, *given_residuals = nullptr;  // are checked; null: none
  double scale_a = 1, scale_b = 1;
};

/// Which outputs of a fit are wanted.
struct FitWishes {
  bool fitted = false, residuals = false;
  ElementType type = ElementType::float64;  // of both
  // The arrays are given and checked, and nothing is written to them.
  bool checks_fitted = false, checks_residuals = false;
  bool any() const { return arrays() > 0; }
  /// The numbers in memory for each number of b.
  int arrays() const { return fitted + residuals + checks_fitted + checks_residuals; }
};

/// Returns the bar of the residuals: the bar of solutions of the coarser type of X and the
/// residuals.
double fit_bar(const SolveProblem& problem, const FitWishes& wishes);

/// The sums of all rows of a right side, its gradient A^H W r (n), the squares of the columns (n)
/// and x (n). A and b were multiplied by the scales.
template <class S>
struct SummedFit {
  const fit::Sums& sums;
  const S* gradient;
  const double* columns;
  const S* x;
  FitScales scales = {};
};

/// Judges the fit of a right side whose x has this report. The status becomes above_bar if the
/// residuals differ from those that were judged, if given fitted values are not A x, or if R^2 is
/// too small.
template <class S>
FitReport judge_fit(const SolveProblem& problem, const FitWishes& wishes, const SummedFit<S>& fit,
                    SolutionReport& report);

/// Returns the number of rows that are summed together. The sums of blocks are added in order, so
/// that their bits depend neither on the threads nor on how many rows are in memory at a time.
index_t fit_block_rows(index_t n);

/// Forms and measures fits for one SolveProblem. Each thread needs its own object.
template <class T>
class FitWorker {
 public:
  /// `problem` must outlive the worker.
  FitWorker(const SolveProblem& problem, const FitWishes& wishes);
  static std::size_t workspace_bytes(const SolveProblem& problem, const FitWishes& wishes);

  /// Adds the rows, which begin with a block, to the sums of their right sides.
  void add(const FitRows<T>& rows, std::span<FitSums> sums);
  std::vector<FitSums> new_sums(index_t sides) const;
  /// Returns empty sums in memory of the worker, which the next call uses again.
  std::span<FitSums> empty_sums(index_t sides);
  /// Whether the sums of a solved right side have left the range of float64, so that they must be
  /// computed again from scaled data.
  bool needs_scales(const FitSums& sums, const SolutionReport& report) const;
  /// Calls judge_fit() for a right side, all of whose rows were added.
  FitReport judge(const FitSums& sums, const double* x, SolutionReport& report,
                  const FitScales& scales = {}) const {
    return judge_fit<double>(problem_, wishes_,
                             {sums.sums, sums.gradient.data(), sums.columns.data(), x, scales},
                             report);
  }

 private:
  void widen(MatrixView<const T> a, double scale);
  void add_block(const FitRows<T>& rows, std::span<FitSums> sums);

  const SolveProblem& problem_;
  FitWishes wishes_;
  Batch<double> a_, counts_, workspace_;
  fit::Rows tile_;
  std::vector<double> gradient_, columns_;
  std::vector<FitSums> of_block_, sums_;
};

/// The powers of two for FitRows, and the x of the scaled problem.
struct ScaledFit {
  double a = 1, b = 1;
  std::vector<double> x;
};
/// Returns scales for a right side whose sums would leave the range of float64. largest_a: the
/// largest finite |a_ij|; x: its solution, n numbers.
ScaledFit scaled_fit(const Spread& b, double largest_a, std::span<const double> x);
/// Returns the largest finite |a_ij|, or `largest` if that is larger.
template <class T>
double largest_finite(MatrixView<const T> a, double largest);

/// Some right sides in memory with their solutions. Right side s belongs to the matrix
/// a[s / group_size].
template <class T>
struct FitBlock {
  std::vector<const T*> a;
  index_t group_size = 1;
  RightSideBlock<T> sides = {};                                    // with x and reports
  void *fitted = nullptr, *residuals = nullptr;                    // in the places of b
  const void *given_fitted = nullptr, *given_residuals = nullptr;  // so, too
  std::span<FitReport> reports = {};
};

/// Forms and measures fits on several threads.
template <class T>
class FitEngine {
 public:
  FitEngine(const SolveProblem& problem, const FitWishes& wishes, int threads);
  static std::size_t workspace_bytes(const SolveProblem& problem, const FitWishes& wishes,
                                     int threads);
  void run(const FitBlock<T>& block);
  /// As FitWorker::add(), for a part of the rows, which begins with a block.
  void add(const FitRows<T>& rows, std::span<FitSums> sums);
  FitWorker<T>& worker() { return workers_.front(); }

 private:
  /// Right sides of one matrix, whose places are one step apart.
  struct Range {
    index_t first = 0, count = 0;
  };
  std::vector<Range> ranges_of(const FitBlock<T>& block) const;
  FitRows<T> rows_of(const FitBlock<T>& block, Range range, const std::vector<double>& x) const;
  std::vector<double> solutions_of(const FitBlock<T>& block, Range range) const;
  void run_range(const FitBlock<T>& block, Range range, FitWorker<T>& worker);
  void judge(const FitBlock<T>& block, Range range, std::span<const FitSums> sums,
             const std::vector<double>& x, FitWorker<T>& worker) const;
  FitReport judge_in_range(const FitBlock<T>& block, index_t side, const FitSums& sums,
                           const double* x, FitWorker<T>& worker) const;

  const SolveProblem& problem_;
  FitWishes wishes_;
  std::vector<FitWorker<T>> workers_;
};

/// The engine for complex systems, one right side after another in complex128. An intercept is
/// ignored.
template <class R>
class FitEngine<std::complex<R>> {
 public:
  using T = std::complex<R>;
  using S = std::complex<double>;

  FitEngine(const SolveProblem& problem, const FitWishes& wishes, int threads)
      : problem_(problem), wishes_(wishes), threads_(threads) {}
  static std::size_t workspace_bytes(const SolveProblem& problem, const FitWishes&, int threads);
  void run(const FitBlock<T>& block);

 private:
  struct Side;

  Side side_of(const FitBlock<T>& block, index_t s) const;
  void find_weights(Side& side) const;
  void scale(Side& side) const;
  void spread_around_mean(Side& side) const;
  template <class Out>
  void add_rows(const FitBlock<T>& block, Side& side) const;
  FitReport fit(const FitBlock<T>& block, index_t s) const;

  const SolveProblem& problem_;
  FitWishes wishes_;
  int threads_;
};

}  // namespace qrtool
