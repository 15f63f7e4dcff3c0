// SPDX-License-Identifier: Apache-2.0
// tall_fits.cpp: a sweep over the rows of a group; one for each right side that is a row.
#include "app/solve/tall_fits.hpp"

#include <algorithm>

namespace qrtool {
namespace {

/// A chunk has about so many bytes: some blocks of rows for each thread.
constexpr index_t chunk_bytes = index_t{16} << 20;

}  // namespace

template <class T>
TallFits<T>::TallFits(const SolveJob& job, const SolveSink<T>& sink, StageSeconds& seconds)
    : job_(job),
      sink_(sink),
      seconds_(seconds),
      sides_(job.inputs.sides.as_rows ? 1 : std::max<index_t>(job.plan.group_size, 1)),
      engine_(job.problem, job.inputs.fits, job.plan.threads) {
  const SolveProblem& p = job.problem;
  const FitWishes& wishes = job.inputs.fits;
  const index_t block = fit_block_rows(p.n);
  const index_t of_row = (p.n + 4 * sides_) * static_cast<index_t>(sizeof(double));
  const auto budget = static_cast<index_t>(job.limits.host_bytes / 4);
  const index_t blocks = std::min(chunk_bytes, budget) / (block * of_row);
  rows_at_once_ = std::min(std::max<index_t>(blocks, 1) * block, p.m);
  const bool has_own_weights = job.inputs.w && !job.inputs.w_is_shared;
  const index_t of_w = !job.inputs.w ? 0 : has_own_weights ? sides_ : 1;
  const auto fit_bytes = static_cast<std::size_t>(rows_at_once_ * sides_) * size_of(wishes.type);
  for (int i = 0; i < 3; ++i)
    chunks_.push_back({.a = Batch<T>(1, rows_at_once_, p.n),
                       .b = Batch<T>(1, rows_at_once_, sides_),
                       .w = Batch<T>(1, rows_at_once_, of_w),
                       .fitted = wishes.fitted ? allocate_host(fit_bytes) : nullptr,
                       .residuals = wishes.residuals ? allocate_host(fit_bytes) : nullptr,
                       .given = GivenFits(wishes, rows_at_once_ * sides_)});
}

template <class T>
index_t TallFits<T>::item_of(index_t group) const {
  const RightSides& sides = job_.inputs.sides;
  return job_.plan.divides_items(sides) ? group : sides.b_of(group);
}

template <class T>
void TallFits<T>::Steps::begin(Chunk& chunk, index_t number) const {
  chunk.first = number * fits.rows_at_once_;
  chunk.count = std::min(fits.rows_at_once_, fits.job_.problem.m - chunk.first);
}

template <class T>
void TallFits<T>::Steps::read(Chunk& chunk) const {
  const SolveInputs& in = fits.job_.inputs;
  const index_t m = fits.job_.problem.m, sides = fits.sides_;
  const bool is_single = fits.job_.plan.divides_items(in.sides);
  if (fits.job_.problem.n > 0)
    in.a->read_rows(is_single ? 0 : in.sides.a_of(group), chunk.first,
                    chunk.a.view()[0].row_block(0, chunk.count));
  const index_t of_group = m * std::max<index_t>(fits.job_.plan.group_size, 1);
  const index_t start = fits.item_of(group) * of_group + first_side * m + chunk.first * sides;
  read_numbers(*in.b, start, chunk.count * sides, chunk.b.view().data);
  read_given(fits.job_, start, chunk.count * sides, 0, chunk.given);
  if (!in.w) return;
  T* const w = chunk.w.view().data;
  const index_t first = in.w_is_shared ? chunk.first : start;
  const index_t count = in.w_is_shared ? chunk.count : chunk.count * sides;
  read_numbers(*in.w, first, count, w);
  require_weights(*in.w, w, count, first);
}

template <class T>
void TallFits<T>::Steps::work(Chunk& chunk) {
  const MatrixView<const T> a = chunk.a.view()[0].row_block(0, chunk.count);
  if (again != nullptr && again->finds_largest) {
    again->largest_a = largest_finite<T>(a, again->largest_a);
    return;
  }
  const SolveInputs& in = fits.job_.inputs;
  const index_t sides = fits.sides_;
  const bool has_own_weights = in.w && !in.w_is_shared;
  fits.engine_.add({.a = a,
                    .count = sides,
                    .b = chunk.b.view().data,
                    .row_step = sides,
                    .side_step = 1,
                    .w = in.w ? chunk.w.view().data : nullptr,
                    .w_row_step = has_own_weights ? sides : 1,
                    .w_side_step = has_own_weights ? 1 : 0,
                    .x = x.data(),
                    .fitted = again == nullptr ? chunk.fitted.get() : nullptr,
                    .residuals = again == nullptr ? chunk.residuals.get() : nullptr,
                    .given_fitted = chunk.given.fitted.get(),
                    .given_residuals = chunk.given.residuals.get(),
                    .scale_a = again == nullptr ? 1 : again->scaled.a,
                    .scale_b = again == nullptr ? 1 : again->scaled.b},
                   sums);
}

template <class T>
void TallFits<T>::Steps::keep(Chunk& chunk) const {
  if (again != nullptr || !fits.sink_.keep_fitted) return;
  const index_t m = fits.job_.problem.m, sides = fits.sides_;
  const index_t of_group = m * std::max<index_t>(fits.job_.plan.group_size, 1);
  fits.sink_.keep_fitted(group * of_group + first_side * m + chunk.first * sides,
                         chunk.count * sides, chunk.residuals.get(), chunk.fitted.get());
}

template <class T>
void TallFits<T>::sweep(Steps& steps) {
  seconds_ += run_stages((job_.problem.m + rows_at_once_ - 1) / rows_at_once_, chunks_, steps);
}

/// Sweeps twice more, for a right side whose sums have left the range of float64.
template <class T>
FitReport TallFits<T>::judge_scaled(const Steps& first, index_t side, SolutionReport& report) {
  const index_t n = job_.problem.n;
  Again again;
  std::vector<FitSums> sums = engine_.worker().new_sums(sides_);
  Steps largest{*this, first.group, first.first_side, first.x, sums, &again};
  sweep(largest);
  again.finds_largest = false;
  const FitSums& found = first.sums[static_cast<std::size_t>(side)];
  again.scaled = scaled_fit(found.sums.b, again.largest_a, first.x);
  Steps scaled{*this, first.group, first.first_side, again.scaled.x, sums, &again};
  sweep(scaled);
  return engine_.worker().judge(sums[static_cast<std::size_t>(side)],
                                again.scaled.x.data() + side * n, report,
                                {again.scaled.a, again.scaled.b});
}

template <class T>
void TallFits<T>::run(index_t group, const std::vector<T>& x, std::span<SolutionReport> reports,
                      std::span<FitReport> fits) {
  const index_t n = job_.problem.n, size = std::max<index_t>(job_.plan.group_size, 1);
  const VectorPlaces places =
      job_.inputs.sides.as_rows ? VectorPlaces::rows(n) : VectorPlaces::columns(n, size);
  for (index_t first = 0; first < size; first += sides_) {
    std::vector<double> solutions;
    for (index_t c = first; c < first + sides_; ++c)
      for (index_t j = 0; j < n; ++j)
        solutions.push_back(
            static_cast<double>(x[static_cast<std::size_t>(places.start(c) + j * places.step)]));
    std::vector<FitSums> sums = engine_.worker().new_sums(sides_);
    Steps steps{*this, group, first, solutions, sums};
    sweep(steps);
    for (index_t c = 0; c < sides_; ++c) {
      SolutionReport& report = reports[first + c];
      fits[first + c] = engine_.worker().needs_scales(sums[c], report)
                            ? judge_scaled(steps, c, report)
                            : engine_.worker().judge(sums[c], solutions.data() + c * n, report);
    }
  }
}

template class TallFits<float>;
template class TallFits<double>;

}  // namespace qrtool
