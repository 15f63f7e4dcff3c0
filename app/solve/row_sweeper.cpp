// SPDX-License-Identifier: Apache-2.0
// row_sweeper.cpp: read | pack and visit, overlapped.
#include "app/solve/row_sweeper.hpp"

#include <cmath>
#include <optional>

#include "app/engine/tall_rows.hpp"
#include "app/process/stopwatch.hpp"
#include "app/solve/side_numbers.hpp"

namespace qrtool {

template <class T>
void RowSweeper<T>::read(RowsChunk<T>& chunk) {
  const index_t rows = data_rows(chunk);
  if (rows == 0) return;
  const SolveInputs& in = job_.inputs;
  in.a->read_rows(place_.a, chunk.first, interleaved(chunk.a.view()[0].row_block(0, rows)));
  read_sides<T>(*in.b, place_, chunk.first, {chunk.b.view().data, rows, p_, p_});
  if (in.w) read_weights(chunk.first, rows, chunk.w.view().data);
}

template <class T>
void RowSweeper<T>::read_weights(index_t first, index_t rows, Real<T>* w) {
  const SolveInputs& in = job_.inputs;
  const SidePlace place = in.w_is_shared ? SidePlace{} : place_;
  read_sides<Real<T>>(*in.w, place, first, {w, rows, 1, 1});
  require_weights(*in.w, w, rows, place.in_b + first * place.step, place.step);
}

/// Rows are visited leaf by leaf, so that the bits do not depend on how many leaves are in memory.
/// The rows of a state are no numbers of b, whose sums it holds.
template <class T>
void RowSweeper<T>::add_spreads(const TallRows<T>& part, const RowFactors& factors) {
  const MatrixView<const Real<T>> parts = interleaved(part.b);
  const index_t of_state = job_.problem.state_rows - part.first;
  for (index_t leaf = 0; leaf < parts.rows; leaf += shape_.leaf_rows()) {
    const index_t i = std::max(leaf, of_state);
    const index_t rows = std::min(leaf + shape_.leaf_rows(), parts.rows) - i;
    if (rows <= 0) continue;
    for (index_t c = 0; c < parts.cols; ++c)
      merge(spreads_[c],
            spread_of<Real<T>>({&parts(i, c), rows, 1, parts.ld},
                               std::ldexp(1.0, spread_exponents_[c / parts_of<T>]), factors, i));
  }
}

template <class T>
void RowSweeper<T>::bring_into_range() {
  if (job_.problem.wants_state) return;  // which has sums of b as it is
  bool is_in = true;
  for (index_t c = 0; c < p_; ++c) {
    const Spread spread = spread_of_side(c);
    const std::optional<int> exponent = exponent_into_range(spread);
    if (is_in_range(spread.b_squares) || !exponent || spread_exponents_[c] != 0) continue;
    spread_exponents_[c] = *exponent;
    is_in = is_in && *exponent == 0;
  }
  if (is_in) return;
  forget_spreads();
  in_memory_ = false;
  const auto sides = static_cast<std::size_t>(p_);
  sweep({.a = 0, .b = std::vector<int>(sides), .is_zero = std::vector<char>(sides)},
        [](index_t, MatrixView<const T>) {});
}

template <class T>
FitReport RowSweeper<T>::fit_of(index_t c, SolutionReport& report) {
  bring_into_range();
  return explain(spread_of_side(c), std::ldexp(report.residual_norm, spread_exponents_[c]),
                 job_.problem.has_intercept, report);
}

template <class T>
void RowSweeper<T>::pack(RowsChunk<T>& chunk, const RowScales& scales, SweepFindings& found) {
  const SolveProblem& p = job_.problem;
  const index_t rows = data_rows(chunk);
  const TallRows<T> part{.first = chunk.first,
                         .a = {chunk.a.view().data, rows, p.n, p.n},
                         .b = {chunk.b.view().data, rows, p_, p_}};
  const RowFactors factors =
      factors_of_rows(p, part, job_.inputs.w ? chunk.w.view().data : nullptr);
  if (!has_spreads_) add_spreads(part, factors);
  pack_tall_rows(p, part, factors, scales, chunk.ab.view()[0].row_block(0, chunk.count), found);
}

template <class T>
void RowSweeper<T>::sweep(const RowScales& scales, const VisitRows<T>& visit) {
  struct Steps {
    RowSweeper& sweeper;
    const RowScales& scales;
    const VisitRows<T>& visit;
    SweepFindings found;
    void begin(RowsChunk<T>& chunk, index_t number) const {
      chunk.first = number * sweeper.rows_at_once_;
      chunk.count = std::min(sweeper.rows_at_once_, sweeper.shape_.m() - chunk.first);
    }
    void read(RowsChunk<T>& chunk) { sweeper.read(chunk); }
    void work(RowsChunk<T>& chunk) {
      sweeper.pack(chunk, scales, found);
      visit(chunk.first, chunk.ab.view()[0].row_block(0, chunk.count));
    }
    void keep(RowsChunk<T>&) {}
  };
  const bool is_plain =
      scales.a == 0 && std::all_of(scales.b.begin(), scales.b.end(), [](int s) { return s == 0; });
  const bool has_zeros = std::any_of(scales.is_zero.begin(), scales.is_zero.end(),
                                     [](char zero) { return zero != 0; });
  if (in_memory_ && is_plain && !has_zeros) {
    visit(0, chunks_[0].ab.view()[0]);
    return;
  }
  Steps steps{*this, scales, visit, {.a_is_finite = true, .b_is_finite = {}, .rows_used = 0}};
  steps.found.b_is_finite.assign(static_cast<std::size_t>(p_), 1);
  // The findings must be known when the visitor asks for them, after the sweep.
  const index_t count = (shape_.m() + rows_at_once_ - 1) / rows_at_once_;
  StageSeconds seconds;
  if (count == 1) {  // nothing overlaps, and threads would take longer than small systems
    const Stopwatch watch;
    steps.begin(chunks_[0], 0);
    steps.read(chunks_[0]);
    seconds.read = watch.seconds();
    steps.work(chunks_[0]);
  } else {
    seconds = run_stages(count, chunks_, steps);
  }
  // The steps of the solver that visit the rows count the wall time of this one.
  seconds_.read += seconds.read;
  seconds_.overlap += seconds.read;
  found_ = steps.found;
  found_.rows_used += static_cast<index_t>(before_.used) - job_.problem.state_rows;
  has_spreads_ = true;
  in_memory_ = count == 1 && is_plain && !has_zeros;
}

template class RowSweeper<float>;
template class RowSweeper<double>;
template class RowSweeper<std::complex<float>>;
template class RowSweeper<std::complex<double>>;

}  // namespace qrtool
