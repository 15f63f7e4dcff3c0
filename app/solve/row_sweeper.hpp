// SPDX-License-Identifier: Apache-2.0
// row_sweeper.hpp: the rows of one tall system, weighted and scaled, from the files to a visitor,
// as often as TallSystem asks for them.
#pragma once

#include <algorithm>
#include <vector>

#include "app/engine/tall_rows.hpp"
#include "app/run/pipeline/pipeline.hpp"
#include "app/solve/solve_stages.hpp"
#include "core/solve/engines/tall_system.hpp"
#include "core/solve/results/fit.hpp"

namespace qrtool {

/// Some rows of one system.
template <class T>
struct RowsChunk {
  index_t first = 0, count = 0;
  Batch<T> a, b, ab;
  Batch<Real<T>> w;
};

/// Sweeps over the rows of one system with a few right sides, from the files or from memory.
template <class T>
class RowSweeper {
 public:
  RowSweeper(const SolveJob& job, index_t p, StageSeconds& seconds)
      : job_(job), p_(p), shape_(job.problem.packed_rows(), job.problem.n + p), seconds_(seconds) {
    const Plan& plan = job.plan.factor;
    rows_at_once_ = plan.by_rows() ? plan.chunk_rows : shape_.leaves() * shape_.leaf_rows();
    const index_t buffers = plan.by_rows() ? plan.buffers : 1;
    const index_t rows = std::min(rows_at_once_, shape_.m());
    for (index_t i = 0; i < buffers; ++i)
      chunks_.push_back({.a = Batch<T>(1, rows, job.problem.n),
                         .b = Batch<T>(1, rows, p),
                         .ab = Batch<T>(1, rows, shape_.n()),
                         .w = Batch<Real<T>>(1, job.inputs.w ? rows : 0, 1)});
  }

  /// Goes to the system of this group. Its right sides are the columns first_column, ...
  void go_to(index_t group, index_t first_column) {
    place_ = job_.inputs.sides.place(group * job_.plan.group_size + first_column);
    found_ = {};
    in_memory_ = false;
    before_ = job_.inputs.before ? job_.inputs.before->sums_of(place_.a)
                                 : StateSums{.spreads = std::vector<Spread>(parts_of<T> * p_)};
    spread_exponents_.assign(static_cast<std::size_t>(p_), 0);
    forget_spreads();
  }
  void sweep(const RowScales& scales, const VisitRows<T>& visit);
  const SweepFindings& found() const { return found_; }
  /// Returns R^2 of right side c, whose x has this report and is judged by it, after a sweep.
  /// Squares that leave the range of float64 need one sweep more.
  FitReport fit_of(index_t c, SolutionReport& report);
  /// Returns the counts and sums of the rows, and of those for which a state stands.
  StateSums sums() const {
    return {.rows = before_.rows + static_cast<double>(job_.problem.m - job_.problem.state_rows),
            .used = static_cast<double>(found_.rows_used),
            .spreads = spreads_};
  }

 private:
  void read(RowsChunk<T>& chunk);
  void read_weights(index_t first, index_t rows, Real<T>* w);
  void add_spreads(const TallRows<T>& rows, const RowFactors& factors);
  void forget_spreads() {
    spreads_ = before_.spreads;
    has_spreads_ = false;
  }
  Spread spread_of_side(index_t c) const {
    if constexpr (is_complex_number<T>)
      return joined(spreads_[2 * c], spreads_[2 * c + 1]);
    else
      return spreads_[c];
  }
  void bring_into_range();
  void pack(RowsChunk<T>& chunk, const RowScales& scales, SweepFindings& found);
  index_t data_rows(const RowsChunk<T>& chunk) const {
    return std::clamp<index_t>(job_.problem.m - chunk.first, 0, chunk.count);
  }

  const SolveJob& job_;
  index_t p_, rows_at_once_ = 0;
  SidePlace place_;  // of the first right side
  TallShape shape_;
  StageSeconds& seconds_;
  StateSums before_;
  std::vector<RowsChunk<T>> chunks_;
  SweepFindings found_;
  std::vector<Spread> spreads_;  // how the parts of right sides times 2^exponent spread
  std::vector<int> spread_exponents_;
  bool has_spreads_ = false;
  bool in_memory_ = false;  // the only chunk holds all rows, packed without scales
};

}  // namespace qrtool
