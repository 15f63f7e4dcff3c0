// SPDX-License-Identifier: Apache-2.0
// fit.cpp: tiles of rows through the kernel, blocks of rows merged in order, and the judgement.
#include "core/solve/results/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "core/machine/parallel.hpp"
#include "core/simd/instruction_sets.hpp"
#include "core/solve/backward_error.hpp"

namespace qrtool {
namespace {

const fit::Kernels& best_fit_kernels() {
  static constexpr std::array all{QRTOOL_EACH_SET(fit, kernels)};
  return *supported(all).front();
}

/// The most numbers in a vector of a kernel.
constexpr index_t vector_numbers = 8;

/// Returns the rows of a tile: A stays in the second-level cache, beside three copies of the right
/// sides.
index_t tile_rows(index_t n) {
  constexpr index_t numbers = 1 << 13, least = 64, most = 256;
  return std::clamp(numbers / std::max<index_t>(n, 1) / least * least, least, most);
}

void add_sums(FitSums& to, const fit::Sums& from, const double* gradient, const double* columns) {
  merge(to.sums.b, from.b);
  to.sums.r_squares += from.r_squares;
  to.sums.apart_squares += from.apart_squares;
  to.sums.fitted_apart_squares += from.fitted_apart_squares;
  for (std::size_t j = 0; j < to.gradient.size(); ++j) {
    to.gradient[j] += gradient[j];
    to.columns[j] += columns[j];
  }
}
void add_sums(std::span<FitSums> to, std::span<const FitSums> from) {
  for (std::size_t c = 0; c < to.size(); ++c)
    add_sums(to[c], from[c].sums, from[c].gradient.data(), from[c].columns.data());
}

template <class T>
void run_kernel(const fit::Rows& rows, const fit::Sides<T>& sides, double* workspace) {
  if constexpr (sizeof(T) == 4) {
    best_fit_kernels().in_float(rows, sides, workspace);
  } else {
    best_fit_kernels().in_double(rows, sides, workspace);
  }
}

void clear(std::span<FitSums> all) {
  for (FitSums& each : all) {
    each.sums = {};
    std::fill(each.gradient.begin(), each.gradient.end(), 0.0);
    std::fill(each.columns.begin(), each.columns.end(), 0.0);
  }
}

/// Returns the place of entry (i, side) of an array that is wanted or given.
template <class Void>
Void* place_in(Void* all, ElementType type, index_t entry) {
  using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
  if (all == nullptr) return nullptr;
  return static_cast<Byte*>(all) + static_cast<std::size_t>(entry) * size_of(type);
}

/// Some of the rows.
template <class T>
FitRows<T> part_of(const FitRows<T>& rows, index_t first, index_t count, ElementType type) {
  FitRows<T> part = rows;
  const index_t entry = first * rows.row_step;
  part.a = rows.a.row_block(first, count);
  part.b += entry;
  if (rows.w != nullptr) part.w += first * rows.w_row_step;
  part.fitted = place_in(rows.fitted, type, entry);
  part.residuals = place_in(rows.residuals, type, entry);
  part.given_fitted = place_in(rows.given_fitted, type, entry);
  part.given_residuals = place_in(rows.given_residuals, type, entry);
  return part;
}

}  // namespace

void merge(Spread& spread, const Spread& other) {
  if (other.weight > 0) {
    const double all = spread.weight + other.weight, apart = other.mean - spread.mean;
    const double share = other.weight / all;
    spread.squares += other.squares + apart * apart * spread.weight * share;
    spread.mean += apart * share;
    spread.weight = all;
  }
  spread.b_squares += other.b_squares;
  spread.least = std::min(spread.least, other.least);
  spread.most = std::max(spread.most, other.most);
}

Spread joined(const Spread& re, const Spread& im) {
  const auto squares = [](const Spread& part) { return part.least < part.most ? part.squares : 0; };
  Spread both = re;
  both.mean = 0;
  both.squares = squares(re) + squares(im);
  both.b_squares += im.b_squares;
  both.least = std::min(re.least, im.least);
  both.most = std::max(re.most, im.most);
  return both;
}

template <class T>
Spread spread_of(MatrixView<const T> column, double scale, const RowFactors& rows, index_t first) {
  Spread spread;
  double sum = 0;
  const auto for_each = [&](auto use) {
    for (index_t i = 0; i < column.rows; ++i) {
      const double root = rows[first + i];
      if (root != 0) use(root * root, static_cast<double>(column(i, 0)) * scale);
    }
  };
  for_each([&](double w, double value) {
    spread.weight += w;
    sum += w * value;
    spread.b_squares += w * value * value;
    spread.least = std::min(spread.least, value);
    spread.most = std::max(spread.most, value);
  });
  if (spread.weight > 0) spread.mean = sum / spread.weight;
  for_each([&](double w, double value) {
    spread.squares += w * (value - spread.mean) * (value - spread.mean);
  });
  return spread;
}
template Spread spread_of(MatrixView<const float>, double, const RowFactors&, index_t);
template Spread spread_of(MatrixView<const double>, double, const RowFactors&, index_t);

bool is_in_range(double squares) { return squares > 1e-250 && squares < 1e250; }

std::optional<int> exponent_into_range(const Spread& b) {
  const double largest = std::max(std::abs(b.least), std::abs(b.most));
  if (!(largest > 0) || !std::isfinite(largest) || !std::isfinite(b.weight)) return {};
  return -std::ilogb(largest) - std::ilogb(b.weight) / 2;
}

ScaledFit scaled_fit(const Spread& b, double largest_a, std::span<const double> x) {
  const int of_b = exponent_into_range(b).value_or(0);
  const int of_a = largest_a > 0 ? -std::ilogb(largest_a) - std::ilogb(b.weight) / 2 : 0;
  ScaledFit scaled{.a = std::ldexp(1.0, of_a), .b = std::ldexp(1.0, of_b), .x = {}};
  for (const double xj : x) scaled.x.push_back(std::ldexp(xj, of_b - of_a));
  return scaled;
}

template <class T>
double largest_finite(MatrixView<const T> a, double largest) {
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j)
      if (const double aij = std::abs(static_cast<double>(a(i, j))); std::isfinite(aij))
        largest = std::max(largest, aij);
  return largest;
}
template double largest_finite(MatrixView<const float>, double);
template double largest_finite(MatrixView<const double>, double);

double r_squared(const Spread& b, double residual_norm, bool has_intercept) {
  const double total = has_intercept ? b.squares : b.b_squares;
  const bool is_constant = has_intercept ? !(b.least < b.most) : b.least == 0 && b.most == 0;
  if (is_constant || !(total > 0) || !std::isfinite(total)) return not_measured;
  const double ratio = residual_norm / std::sqrt(total);
  return 1 - ratio * ratio;
}

FitReport explain(const Spread& b, double residual_norm, bool has_intercept,
                  SolutionReport& report) {
  FitReport fit{.r_squared = r_squared(b, residual_norm, has_intercept)};
  fit.is_below_mean = has_intercept && fit.r_squared < -report.bar * (b.b_squares / b.squares);
  fit.is_perfect = report.freedom > 0 && residual_norm <= report.bar * std::sqrt(b.b_squares);
  if (fit.is_below_mean && report.status == Status::ok) report.status = Status::above_bar;
  return fit;
}

double fit_bar(const SolveProblem& problem, const FitWishes& wishes) {
  const bool is_single =
      real_of(problem.type) == ElementType::float32 || real_of(wishes.type) == ElementType::float32;
  return solution_bar(is_single ? ElementType::float32 : ElementType::float64,
                      problem.packed_rows(), problem.n);
}

index_t fit_block_rows(index_t n) {
  constexpr index_t numbers = index_t{1} << 22, least = 512, most = 4096;
  return std::clamp(numbers / std::max<index_t>(n, 1) / least * least, least, most);
}

template <class T>
FitWorker<T>::FitWorker(const SolveProblem& problem, const FitWishes& wishes)
    : problem_(problem), wishes_(wishes) {
  const index_t n = problem.n, most = tile_rows(n);
  a_ = Batch<double>(1, wishes.any() ? n : 0, most);
  counts_ = Batch<double>(1, 1, most);
  workspace_ = Batch<double>(1, 1, best_fit_kernels().workspace_size(most));
  gradient_.resize(static_cast<std::size_t>(wishes.any() ? n * fit::most_sides : 0));
  columns_.resize(gradient_.size());
}

template <class T>
std::size_t FitWorker<T>::workspace_bytes(const SolveProblem& problem, const FitWishes& wishes) {
  const index_t rows = tile_rows(problem.n), n = wishes.any() ? problem.n : 0;
  const index_t numbers =
      (n + 1) * rows + best_fit_kernels().workspace_size(rows) + 2 * n * fit::most_sides;
  return static_cast<std::size_t>(numbers) * sizeof(double);
}

template <class T>
std::vector<FitSums> FitWorker<T>::new_sums(index_t sides) const {
  const auto n = static_cast<std::size_t>(wishes_.any() ? problem_.n : 0);
  return std::vector<FitSums>(
      static_cast<std::size_t>(sides),
      FitSums{.gradient = std::vector<double>(n, 0.0), .columns = std::vector<double>(n, 0.0)});
}

template <class T>
std::span<FitSums> FitWorker<T>::empty_sums(index_t sides) {
  if (std::ssize(sums_) < sides) sums_ = new_sums(sides);
  const std::span<FitSums> sums = std::span(sums_).first(static_cast<std::size_t>(sides));
  clear(sums);
  return sums;
}

/// tile_ := some rows of A, transposed. A row with NaN or infinity holds zeros and does not count;
/// if its weight is not 0, x is NaN unless missing rows are skipped.
template <class T>
void FitWorker<T>::widen(MatrixView<const T> a, double scale) {
  const index_t stride = (a.rows + vector_numbers - 1) / vector_numbers * vector_numbers;
  tile_ = {.rows = a.rows,
           .stride = stride,
           .n = problem_.n,
           .a = a_.view().data,
           .counts = counts_.view().data};
  std::fill_n(tile_.counts, stride, 0.0);
  std::fill_n(tile_.counts, a.rows, 1.0);
  const bool needs_a = wishes_.any();
  if (!needs_a && !problem_.skips_missing) return;
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t j = 0; j < a.cols; ++j) {
      if (needs_a) tile_.a[j * stride + i] = static_cast<double>(a(i, j)) * scale;
      if (!std::isfinite(a(i, j))) tile_.counts[i] = 0;
    }
    for (index_t j = 0; needs_a && tile_.counts[i] == 0 && j < a.cols; ++j)
      tile_.a[j * stride + i] = 0;
  }
  for (index_t j = 0; needs_a && j < a.cols; ++j)
    std::fill(tile_.a + j * stride + a.rows, tile_.a + (j + 1) * stride, 0.0);
}

template <class T>
void FitWorker<T>::add_block(const FitRows<T>& rows, std::span<FitSums> sums) {
  const index_t n = problem_.n, step = tile_rows(n);
  std::array<fit::Sums, fit::most_sides> found;
  for (index_t i = 0; i < rows.a.rows; i += step) {
    widen(rows.a.row_block(i, std::min(step, rows.a.rows - i)), rows.scale_a);
    for (index_t c = 0; c < rows.count; c += fit::most_sides) {
      const index_t count = std::min(fit::most_sides, rows.count - c);
      const index_t entry = i * rows.row_step + c * rows.side_step;
      const bool is_single = wishes_.type == ElementType::float32;
      const fit::Sides<T> sides{
          .count = count,
          .b = rows.b + entry,
          .row_step = rows.row_step,
          .side_step = rows.side_step,
          .w = rows.w == nullptr ? nullptr : rows.w + i * rows.w_row_step + c * rows.w_side_step,
          .w_row_step = rows.w_row_step,
          .w_side_step = rows.w_side_step,
          .scale = rows.scale_b,
          .x = wishes_.any() ? rows.x + c * n : nullptr,
          .skips_missing = problem_.skips_missing,
          .is_single = is_single,
          .fitted = place_in(rows.fitted, wishes_.type, entry),
          .residuals = place_in(rows.residuals, wishes_.type, entry),
          .given_fitted = place_in(rows.given_fitted, wishes_.type, entry),
          .given_residuals = place_in(rows.given_residuals, wishes_.type, entry),
          .sums = found.data(),
          .gradient = gradient_.data(),
          .columns = columns_.data()};
      run_kernel(tile_, sides, workspace_.view().data);
      for (index_t q = 0; q < count; ++q)
        add_sums(sums[c + q], found[q], gradient_.data() + q * n, columns_.data() + q * n);
    }
  }
}

template <class T>
void FitWorker<T>::add(const FitRows<T>& rows, std::span<FitSums> sums) {
  const index_t step = fit_block_rows(problem_.n);
  if (std::ssize(of_block_) < rows.count) of_block_ = new_sums(rows.count);
  const std::span<FitSums> of_block = std::span(of_block_).first(sums.size());
  for (index_t i = 0; i < rows.a.rows; i += step) {
    clear(of_block);
    add_block(part_of(rows, i, std::min(step, rows.a.rows - i), wishes_.type), of_block);
    add_sums(sums, of_block);
  }
}

template <class T>
bool FitWorker<T>::needs_scales(const FitSums& sums, const SolutionReport& report) const {
  const bool is_solved = report.status == Status::ok || report.status == Status::above_bar;
  // Columns whose squares vanish beside the squares of others would be lost.
  const double of_a = std::accumulate(sums.columns.begin(), sums.columns.end(), 0.0);
  const bool fits = is_in_range(sums.sums.b.b_squares) &&
                    (!wishes_.any() || is_in_range(of_a) || problem_.n == 0);
  return is_solved && !fits && exponent_into_range(sums.sums.b).has_value();
}

template <class S>
FitReport judge_fit(const SolveProblem& problem, const FitWishes& wishes,
                    const SummedFit<S>& summed, SolutionReport& report) {
  const fit::Sums& sums = summed.sums;
  const double residual_norm = report.residual_norm * summed.scales.b;
  FitReport fit = explain(sums.b, residual_norm, problem.has_intercept, report);
  const bool is_solved = report.status == Status::ok || report.status == Status::above_bar;
  if (!wishes.any() || !is_solved) return fit;
  double a_squares = 0, r_squares = sums.r_squares, x_squares = 0, g_squares = 0;
  for (index_t j = 0; j < problem.n; ++j) {
    const double penalty = problem.penalty(j) * summed.scales.a;
    const S term = penalty * summed.x[j];
    const double squares = summed.columns[j] + penalty * penalty;
    int exponent = 0;
    std::frexp(std::sqrt(squares), &exponent);
    a_squares += std::ldexp(squares, -2 * exponent);
    r_squares += square_of(term);
    x_squares += square_of(scaled_by(summed.x[j], exponent));
    g_squares += square_of(scaled_by(summed.gradient[j] - penalty * term, -exponent));
  }
  const SolutionNorms norms{.a = std::sqrt(a_squares),
                            .b = std::sqrt(sums.b.b_squares),
                            .x = std::sqrt(x_squares),
                            .r = std::sqrt(r_squares),
                            .g = std::sqrt(g_squares)};
  fit.orthogonality = backward_error_bound(norms, std::numeric_limits<double>::infinity());
  const double bar = std::max(report.bar, fit_bar(problem, wishes));
  // Where a closer bound was needed for x, the residuals must be those from which it was found.
  const double apart = std::abs(std::sqrt(sums.r_squares) - residual_norm);
  const double largest_apart = bar * std::hypot(norms.a * norms.x, norms.b);
  const bool has_own = fit.orthogonality <= bar || apart <= largest_apart;
  fit.has_other_fitted = !(std::sqrt(sums.fitted_apart_squares) <= largest_apart);
  fit.has_other_residuals =
      !(std::sqrt(sums.apart_squares) <= largest_apart) || (wishes.checks_residuals && !has_own);
  if (report.status == Status::ok && (fit.has_other_fitted || fit.has_other_residuals || !has_own))
    report.status = Status::above_bar;
  return fit;
}
template FitReport judge_fit(const SolveProblem&, const FitWishes&, const SummedFit<double>&,
                             SolutionReport&);
template FitReport judge_fit(const SolveProblem&, const FitWishes&,
                             const SummedFit<std::complex<double>>&, SolutionReport&);

template class FitWorker<float>;
template class FitWorker<double>;

template <class T>
FitEngine<T>::FitEngine(const SolveProblem& problem, const FitWishes& wishes, int threads)
    : problem_(problem), wishes_(wishes) {
  for (int i = 0; i < std::max(threads, 1); ++i) workers_.emplace_back(problem, wishes);
}

/// Right sides that a thread takes at a time, so that A is widened once for all of them.
constexpr index_t most_range = 64;

template <class T>
std::size_t FitEngine<T>::workspace_bytes(const SolveProblem& problem, const FitWishes& wishes,
                                          int threads) {
  const index_t of_sums = 4 * most_range * ((wishes.any() ? 2 * problem.n : 0) + 16);
  return static_cast<std::size_t>(threads) * (FitWorker<T>::workspace_bytes(problem, wishes) +
                                              static_cast<std::size_t>(of_sums) * sizeof(double));
}

template <class T>
auto FitEngine<T>::ranges_of(const FitBlock<T>& block) const -> std::vector<Range> {
  const VectorPlaces& places = block.sides.b_places;
  const auto matrix_of = [&](index_t s) {
    return block.a[static_cast<std::size_t>(s / block.group_size)];
  };
  std::vector<Range> ranges;
  for (index_t s = 0; s < block.sides.count;) {
    Range range{.first = s, .count = 1};
    const auto belongs = [&](index_t next) {
      return next < block.sides.count && range.count < most_range &&
             matrix_of(next) == matrix_of(s) &&
             (places.group == 1 || next / places.group == s / places.group);
    };
    while (belongs(s + range.count)) ++range.count;
    ranges.push_back(range);
    s += range.count;
  }
  return ranges;
}

template <class T>
std::vector<double> FitEngine<T>::solutions_of(const FitBlock<T>& block, Range range) const {
  const VectorPlaces& places = block.sides.x_places;
  std::vector<double> x;
  x.reserve(static_cast<std::size_t>(range.count * problem_.n));
  for (index_t c = 0; c < range.count; ++c)
    for (index_t j = 0; j < problem_.n; ++j)
      x.push_back(
          static_cast<double>(block.sides.x[places.start(range.first + c) + j * places.step]));
  return x;
}

template <class T>
FitRows<T> FitEngine<T>::rows_of(const FitBlock<T>& block, Range range,
                                 const std::vector<double>& x) const {
  const auto side_step = [](const VectorPlaces& places) {
    return places.group == 1 ? places.group_stride : places.stride;
  };
  const VectorPlaces &b = block.sides.b_places, &w = block.sides.w_places;
  const index_t m = problem_.m, n = problem_.n, start = b.start(range.first);
  const T* a = block.a[static_cast<std::size_t>(range.first / block.group_size)];
  const ElementType type = wishes_.type;
  return {.a = {a, m, n, n},
          .count = range.count,
          .b = block.sides.b + start,
          .row_step = b.step,
          .side_step = side_step(b),
          .w = block.sides.w == nullptr ? nullptr : block.sides.w + w.start(range.first),
          .w_row_step = w.step,
          .w_side_step = side_step(w),
          .x = x.data(),
          .fitted = place_in(block.fitted, type, start),
          .residuals = place_in(block.residuals, type, start),
          .given_fitted = place_in(block.given_fitted, type, start),
          .given_residuals = place_in(block.given_residuals, type, start)};
}

template <class T>
void FitEngine<T>::run_range(const FitBlock<T>& block, Range range, FitWorker<T>& worker) {
  const std::vector<double> x = solutions_of(block, range);
  const std::span<FitSums> sums = worker.empty_sums(range.count);
  worker.add(rows_of(block, range, x), sums);
  judge(block, range, sums, x, worker);
}

/// All threads take blocks of rows.
template <class T>
void FitEngine<T>::add(const FitRows<T>& rows, std::span<FitSums> sums) {
  const index_t step = fit_block_rows(problem_.n), threads = std::ssize(workers_);
  for (index_t wave = 0; wave < rows.a.rows; wave += step * threads) {
    const index_t blocks = std::min(threads, (rows.a.rows - wave + step - 1) / step);
    std::vector<std::vector<FitSums>> parts(static_cast<std::size_t>(blocks),
                                            worker().new_sums(rows.count));
    parallel_for(blocks, static_cast<int>(threads), [&](index_t i, int number) {
      const index_t first = wave + i * step, count = std::min(step, rows.a.rows - first);
      workers_[static_cast<std::size_t>(number)].add(part_of(rows, first, count, wishes_.type),
                                                     parts[static_cast<std::size_t>(i)]);
    });
    for (const std::vector<FitSums>& part : parts) add_sums(sums, part);
  }
}

template <class T>
void FitEngine<T>::run(const FitBlock<T>& block) {
  const std::vector<Range> ranges = ranges_of(block);
  const index_t count = std::ssize(ranges), threads = std::ssize(workers_);
  if (count < threads && problem_.m > fit_block_rows(problem_.n)) {
    for (const Range range : ranges) {
      const std::vector<double> x = solutions_of(block, range);
      std::vector<FitSums> sums = worker().new_sums(range.count);
      add(rows_of(block, range, x), sums);
      judge(block, range, sums, x, worker());
    }
    return;
  }
  // Small systems are taken several at a time.
  const index_t at_once = std::clamp<index_t>(count / (8 * threads), 1, 64);
  parallel_for((count + at_once - 1) / at_once, static_cast<int>(threads),
               [&](index_t i, int worker) {
                 for (index_t k = i * at_once; k < std::min(count, (i + 1) * at_once); ++k)
                   run_range(block, ranges[static_cast<std::size_t>(k)],
                             workers_[static_cast<std::size_t>(worker)]);
               });
}

template <class T>
void FitEngine<T>::judge(const FitBlock<T>& block, Range range, std::span<const FitSums> sums,
                         const std::vector<double>& x, FitWorker<T>& worker) const {
  for (index_t c = 0; c < range.count; ++c) {
    const index_t side = range.first + c;
    block.reports[side] = judge_in_range(block, side, sums[c], x.data() + c * problem_.n, worker);
  }
}

/// Sums that leave the range of float64 are computed again, of data that are scaled.
template <class T>
FitReport FitEngine<T>::judge_in_range(const FitBlock<T>& block, index_t side, const FitSums& sums,
                                       const double* x, FitWorker<T>& worker) const {
  SolutionReport& report = block.sides.reports[side];
  if (!worker.needs_scales(sums, report)) return worker.judge(sums, x, report);
  FitRows<T> rows = rows_of(block, {.first = side, .count = 1}, {});
  const ScaledFit scaled = scaled_fit(sums.sums.b, largest_finite<T>(rows.a, 0),
                                      {x, static_cast<std::size_t>(problem_.n)});
  rows.x = scaled.x.data();
  rows.scale_a = scaled.a;
  rows.scale_b = scaled.b;
  rows.fitted = rows.residuals = nullptr;
  std::vector<FitSums> again = worker.new_sums(1);
  worker.add(rows, again);
  return worker.judge(again.front(), scaled.x.data(), report, {scaled.a, scaled.b});
}

template class FitEngine<float>;
template class FitEngine<double>;

}  // namespace qrtool
