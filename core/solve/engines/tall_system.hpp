// SPDX-License-Identifier: Apache-2.0
// tall_system.hpp: solves for a few right sides of one matrix with many rows, which are visited a
// few at a time: once for R of [A B], and once to check the solutions.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/cpu/tall/tall.hpp"
#include "core/problem/tall_shape.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "core/solve/engines/system_state.hpp"
#include "core/solve/packing.hpp"

namespace qrtool {

/// Receives rows [A B] (rows x (n + p)), beginning with row `first_row`. Every call except the last
/// brings whole leaves.
template <class T>
using VisitRows = std::function<void(index_t first_row, MatrixView<const T> ab)>;

/// Calls a visitor for all rows, in order. A row that is left out is zero. Entries are multiplied
/// by powers of two: 2^-scale_a in A, 2^-scale_b[j] in right side j; a column of B is zero if
/// `is_zero` names it.
struct RowScales {
  int a = 0;
  std::vector<int> b;
  std::vector<char> is_zero;
};
template <class T>
using SweepRows = std::function<void(const RowScales& scales, const VisitRows<T>& visit)>;

/// The findings of the first sweep over the rows.
struct SweepFindings {
  bool a_is_finite = true;
  std::vector<char> b_is_finite;
  index_t rows_used = 0;
};

/// The bits do not depend on how many rows a visit brings, nor on the threads.
template <class T>
class TallSystem final : private SystemRows<Wide<T>> {
  using S = Wide<T>;

 public:
  /// Each call of `sweep` fills `found`.
  TallSystem(const SolveProblem& problem, index_t p, int threads, SweepRows<T> sweep,
             const SweepFindings& found);

  /// Returns how the rows are cut into leaves; a visit brings whole leaves.
  const TallShape& shape() const { return shape_; }
  static std::size_t workspace_bytes(const SolveProblem& problem, index_t p, int threads);

  /// Solves for the p right sides of the block.
  SolveSeconds run(const RightSideBlock<T>& block);
  /// After run() of a problem that wants its state: R of [A B], n + p rows, and G of the rows that
  /// are no rows of a state. Columns that are not finite are NaN.
  void put_state(MatrixView<T> r, MatrixView<S> gram) const;

 private:
  LeafOutcome factor(bool by_reflectors, MatrixView<T> r);
  LeafOutcome factor_in_range(MatrixView<T> r);
  void add_residual(index_t first, MatrixView<const S> x, ResidualSums<S>& sums) override;
  void add_precise_residual(index_t j, const S* x, std::vector<S>& gradient,
                            double& r_squares) override;
  bool factor_again(index_t j, MatrixView<S> r, S* z) override;
  void choose_scales(MatrixView<T> r);
  void add_rows(index_t first_row, MatrixView<const T> ab);

  const SolveProblem& problem_;
  index_t p_;
  int threads_;
  TallShape shape_;
  SweepRows<T> sweep_;
  const SweepFindings& found_;
  RowScales scales_;  // of the sweeps that check
  Batch<T> factors_;  // R of [A B], scaled so
  std::shared_ptr<RowSum<S>> gram_;
  int gram_scale_ = 0;  // of the rows in it
};

}  // namespace qrtool
