// SPDX-License-Identifier: Apache-2.0
// tall_fits.cpp: a sweep over the rows of a group; one for each right side that is a row.
#include "app/solve/tall_fits.hpp"

#include <algorithm>

#include "app/solve/side_numbers.hpp"

namespace qrtool {
namespace {

/// The approximate size of a chunk in bytes, enough for several blocks of rows for each thread.
constexpr index_t chunk_bytes = index_t{16} << 20;

/// Returns the problem of the parts, which has twice as many real columns if numbers are complex.
SolveProblem in_real_numbers(SolveProblem problem) {
  problem.n *= parts_in(problem.type);
  problem.type = real_of(problem.type);
  return problem;
}
FitWishes in_real_numbers(FitWishes wishes) {
  wishes.type = real_of(wishes.type);
  return wishes;
}

/// A number is missing if one of its parts is.
template <class R>
void make_missing(std::complex<R>* numbers, index_t count) {
  for (index_t i = 0; i < count; ++i)
    if (is_nan(numbers[i])) numbers[i] = not_a_number<std::complex<R>>();
}
template <class R>
void make_missing(R*, index_t) {}

}  // namespace

template <class T>
TallFits<T>::TallFits(const SolveJob& job, const SolveSink<T>& sink, StageSeconds& seconds)
    : job_(job),
      sink_(sink),
      seconds_(seconds),
      sides_(job.inputs.sides.as_rows ? 1 : std::max<index_t>(job.plan.group_size, 1)),
      in_parts_(in_real_numbers(job.problem)),
      engine_(in_parts_, in_real_numbers(job.inputs.fits), job.plan.threads) {
  const SolveProblem& p = job.problem;
  const FitWishes& wishes = job.inputs.fits;
  const index_t block = fit_block_rows(in_parts_.n);
  const index_t of_row = (p.n + 4 * sides_) * parts * static_cast<index_t>(sizeof(double));
  const auto budget = static_cast<index_t>(job.limits.host_bytes / 4);
  const index_t blocks = std::min(chunk_bytes, budget) / (block * of_row);
  rows_at_once_ = std::min(std::max<index_t>(blocks, 1) * block, p.m);
  const bool has_own_weights = job.inputs.w && !job.inputs.w_is_shared;
  const index_t of_w = !job.inputs.w ? 0 : has_own_weights ? parts * sides_ : 1;
  const auto fit_bytes = static_cast<std::size_t>(rows_at_once_ * sides_) * size_of(wishes.type);
  for (int i = 0; i < 3; ++i)
    chunks_.push_back({.a = Batch<T>(1, rows_at_once_, p.n),
                       .b = Batch<T>(1, rows_at_once_, sides_),
                       .w = Batch<R>(1, rows_at_once_, of_w),
                       .fitted = wishes.fitted ? allocate_host(fit_bytes) : nullptr,
                       .residuals = wishes.residuals ? allocate_host(fit_bytes) : nullptr,
                       .given = GivenFits(wishes, rows_at_once_ * sides_)});
}

template <class T>
SidePlace TallFits<T>::Steps::place() const {
  const SolveJob& job = fits.job_;
  return job.inputs.sides.place(group * job.plan.group_size + first_side);
}

template <class T>
void TallFits<T>::Steps::begin(Chunk& chunk, index_t number) const {
  chunk.first = number * fits.rows_at_once_;
  chunk.count = std::min(fits.rows_at_once_, fits.job_.problem.m - chunk.first);
}

template <class T>
void TallFits<T>::Steps::read(Chunk& chunk) const {
  const SolveInputs& in = fits.job_.inputs;
  const SidePlace at = place();
  const index_t numbers = chunk.count * fits.sides_;
  if (fits.job_.problem.n > 0)
    in.a->read_rows(at.a, chunk.first, interleaved(chunk.a.view()[0].row_block(0, chunk.count)));
  read_sides<T>(*in.b, at, chunk.first, fits.rows_of(chunk, chunk.b.view().data));
  if (fits.job_.problem.skips_missing) make_missing(chunk.b.view().data, numbers);
  read_given(fits.job_, at.in_fits + chunk.first * at.step, numbers, 0, chunk.given);
  if (in.w) fits.read_weights(chunk, at);
}

/// Reads the weights of the right sides from `place` on. A complex right side has its weights
/// twice, for the real and for the imaginary part.
template <class T>
void TallFits<T>::read_weights(Chunk& chunk, SidePlace place) const {
  const SolveInputs& in = job_.inputs;
  R* const w = chunk.w.view().data;
  if (in.w_is_shared) place = {};
  MatrixView<R> to = rows_of(chunk, w);
  if (in.w_is_shared) to.cols = to.ld = 1;
  read_sides<R>(*in.w, place, chunk.first, to);
  const index_t count = to.rows * to.cols;
  require_weights(*in.w, w, count, place.in_b + chunk.first * place.step);
  for (index_t i = count; !in.w_is_shared && i-- > 0;) std::fill_n(w + parts * i, parts, w[i]);
}

template <class T>
void TallFits<T>::Steps::work(Chunk& chunk) {
  const MatrixView<const R> a = interleaved(chunk.a.view()[0].row_block(0, chunk.count));
  if (again != nullptr && again->finds_largest) {
    again->largest_a = largest_finite<R>(a, again->largest_a);
    return;
  }
  const SolveInputs& in = fits.job_.inputs;
  const index_t sides = parts * fits.sides_;
  const bool has_own_weights = in.w && !in.w_is_shared;
  fits.engine_.add({.a = a,
                    .count = sides,
                    .b = interleaved(chunk.b.view()).data,
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
  const SidePlace at = place();
  fits.sink_.keep_fitted(at.in_fits + chunk.first * at.step, chunk.count * fits.sides_,
                         chunk.residuals.get(), chunk.fitted.get());
}

template <class T>
typename TallFits<T>::Side TallFits<T>::side_of(const std::vector<FitSums>& sums,
                                                const std::vector<double>& x, index_t side) const {
  const FitSums& first = sums[static_cast<std::size_t>(parts * side)];
  const double* const of_first = x.data() + parts * side * in_parts_.n;
  Side found{.sums = first.sums, .gradient = {}, .columns = first.columns, .x = {}};
  if constexpr (is_complex_number<T>) {
    const FitSums& second = sums[static_cast<std::size_t>(2 * side + 1)];
    // The parts of a number are neighbours.
    found.columns.resize(first.columns.size() / 2);
    for (std::size_t j = 0; j < found.columns.size(); ++j)
      found.columns[j] = first.columns[2 * j] + first.columns[2 * j + 1];
    found.sums.b = joined(first.sums.b, second.sums.b);
    found.sums.r_squares += second.sums.r_squares;
    found.sums.apart_squares += second.sums.apart_squares;
    found.sums.fitted_apart_squares += second.sums.fitted_apart_squares;
    for (std::size_t j = 0; j < first.gradient.size(); j += 2)
      found.gradient.emplace_back(first.gradient[j] + second.gradient[j + 1],
                                  second.gradient[j] - first.gradient[j + 1]);
    for (index_t j = 0; j < in_parts_.n; j += 2)
      found.x.emplace_back(of_first[j], -of_first[j + 1]);
  } else {
    found.gradient = first.gradient;
    found.x.assign(of_first, of_first + in_parts_.n);
  }
  return found;
}

template <class T>
void TallFits<T>::sweep(Steps& steps) {
  seconds_ += run_stages((job_.problem.m + rows_at_once_ - 1) / rows_at_once_, chunks_, steps);
}

/// Sweeps twice more, for a right side whose sums have left the range of float64.
template <class T>
FitReport TallFits<T>::judge_scaled(const Steps& first, index_t side, SolutionReport& report) {
  Again again;
  std::vector<FitSums> sums = engine_.worker().new_sums(parts * sides_);
  Steps largest{*this, first.group, first.first_side, first.x, sums, &again};
  sweep(largest);
  again.finds_largest = false;
  again.scaled = scaled_fit(side_of(first.sums, first.x, side).sums.b, again.largest_a, first.x);
  Steps scaled{*this, first.group, first.first_side, again.scaled.x, sums, &again};
  sweep(scaled);
  return judge(side_of(sums, again.scaled.x, side), report, {again.scaled.a, again.scaled.b});
}

template <class T>
void TallFits<T>::run(index_t group, const std::vector<T>& x, std::span<SolutionReport> reports,
                      std::span<FitReport> fits) {
  const index_t n = job_.problem.n, size = std::max<index_t>(job_.plan.group_size, 1);
  const VectorPlaces places =
      job_.inputs.sides.as_rows ? VectorPlaces::rows(n) : VectorPlaces::columns(n, size);
  for (index_t first = 0; first < size; first += sides_) {
    std::vector<double> solutions;
    for (index_t c = first; c < first + sides_; ++c) {
      const auto entry = [&](index_t j) {
        return static_cast<S>(x[static_cast<std::size_t>(places.start(c) + j * places.step)]);
      };
      for (index_t part = 0; part < parts; ++part) {
        for (index_t j = 0; j < n; ++j) {
          const S xj = entry(j);
          const double re = real_part(xj), im = imaginary_part(xj);
          solutions.push_back(part == 0 ? re : im);
          if (is_complex_number<T>) solutions.push_back(part == 0 ? -im : re);
        }
      }
    }
    std::vector<FitSums> sums = engine_.worker().new_sums(parts * sides_);
    Steps steps{*this, group, first, solutions, sums};
    sweep(steps);
    for (index_t c = 0; c < sides_; ++c) {
      SolutionReport& report = reports[first + c];
      const Side side = side_of(sums, solutions, c);
      fits[first + c] =
          engine_.worker().needs_scales({.sums = side.sums, .columns = side.columns}, report)
              ? judge_scaled(steps, c, report)
              : judge(side, report);
    }
  }
}

template class TallFits<float>;
template class TallFits<double>;
template class TallFits<std::complex<float>>;
template class TallFits<std::complex<double>>;

}  // namespace qrtool
