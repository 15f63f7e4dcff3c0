// SPDX-License-Identifier: Apache-2.0
// tall_system.cpp: the tree of leaves for R and z, and sums over leaves for the check.
#include "core/solve/engines/tall_system.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/cpu/tall/tall_qr.hpp"
#include "core/eigen/row_sum.hpp"
#include "core/machine/clock.hpp"
#include "core/solve/engines/team.hpp"

namespace qrtool {
namespace {

/// The squares of numbers up to 2^most_unscaled_exponent can be summed within the range of float64.
constexpr int most_unscaled_exponent = 300;

/// Returns the exponent to scale by, which is 0 if sums of squares are in range without it.
int scale_of(double norm) {
  int exponent = 0;
  std::frexp(norm, &exponent);
  return std::isfinite(norm) && std::abs(exponent) > most_unscaled_exponent ? exponent : 0;
}

}  // namespace

template <class T>
TallSystem<T>::TallSystem(const SolveProblem& problem, index_t p, int threads, SweepRows<T> sweep,
                          const SweepFindings& found)
    : problem_(problem),
      p_(p),
      threads_(threads),
      shape_(problem.packed_rows(), problem.n + p),
      sweep_(std::move(sweep)),
      found_(found),
      factors_(1, shape_.k(), shape_.n()) {}

template <class T>
std::size_t TallSystem<T>::workspace_bytes(const SolveProblem& problem, index_t p, int threads) {
  const TallShape shape(problem.packed_rows(), problem.n + p);
  return TallTree<T>::bytes(shape) +
         static_cast<std::size_t>(threads) * CpuLeaves<T>::workspace_bytes(shape);
}

template <class T>
LeafOutcome TallSystem<T>::factor(bool by_reflectors, MatrixView<T> r) {
  TallTree<T> tree(shape_);
  // Leaves that could form Q are factored by reflectors.
  CpuLeaves<T> leaves(shape_, threads_, /*needs_q=*/by_reflectors);
  LeafOutcome outcome;
  const bool wants_gram = problem_.wants_state && !by_reflectors;
  if (wants_gram) {
    gram_ = std::make_shared<RowSum<S>>(shape_.n(), shape_.n());
    gram_scale_ = scales_.a;
  }
  sweep_(scales_, [&](index_t first_row, MatrixView<const T> ab) {
    if (wants_gram) add_rows(first_row, ab);
    const index_t first = first_row / shape_.leaf_rows();
    const index_t count = (ab.rows + shape_.leaf_rows() - 1) / shape_.leaf_rows();
    outcome.include(leaves.factor(ab, tree.nodes(first, count)));
  });
  outcome.r_fits = outcome.magnitude.finite && outcome.r_fits && tree.combine(/*wants_z=*/false, r);
  return outcome;
}

/// Computes R of [A B] in the range of T. If R of some rows exceeds the range, or a right side is
/// not finite, there is another sweep.
template <class T>
LeafOutcome TallSystem<T>::factor_in_range(MatrixView<T> r) {
  LeafOutcome outcome = factor(/*by_reflectors=*/false, r);
  if (!found_.a_is_finite) return outcome;
  if (!outcome.magnitude.finite) {
    for (index_t j = 0; j < p_; ++j) scales_.is_zero[j] = found_.b_is_finite[j] == 0;
    outcome = factor(/*by_reflectors=*/false, r);
  }
  if (outcome.r_fits) {
    choose_scales(r);
    return outcome;
  }
  scales_.a = outcome.magnitude.scale();
  scales_.b.assign(scales_.b.size(), scales_.a);
  return factor(/*by_reflectors=*/false, r);
}

template <class T>
void TallSystem<T>::add_residual(index_t first, MatrixView<const S> x, ResidualSums<S>& sums) {
  const index_t n = problem_.n, p = x.cols;
  sweep_(scales_, [&](index_t first_row, MatrixView<const T> ab) {
    const index_t leaves = (ab.rows + shape_.leaf_rows() - 1) / shape_.leaf_rows();
    std::vector<ResidualSums<S>> parts(static_cast<std::size_t>(leaves));
    for_each_in_team(leaves, threads_, [&](index_t leaf, int) {
      const index_t row = leaf * shape_.leaf_rows();
      const index_t rows = std::min(shape_.leaf_rows(), ab.rows - row);
      const T* start = &ab(row, 0);
      ResidualSums<S>& part = parts[leaf] = ResidualSums<S>(n, p);
      qrtool::add_residual<T>({start, rows, n, ab.ld}, {start + n + first, rows, p, ab.ld}, x,
                              problem_.m - first_row - row, part);
    });
    for (const ResidualSums<S>& part : parts) sums.add(part);
  });
}

/// Leaves are summed apart, so that the bits depend neither on the visits nor on the threads. The
/// rows of a state are not counted: it holds the G of the rows for which they stand.
template <class T>
void TallSystem<T>::add_rows(index_t first_row, MatrixView<const T> ab) {
  const index_t height = shape_.leaf_rows(), leaves = (ab.rows + height - 1) / height;
  std::vector<RowSum<S>> parts(static_cast<std::size_t>(leaves), {shape_.n(), shape_.n()});
  for_each_in_team(leaves, threads_, [&](index_t leaf, int) {
    const index_t first = std::max(leaf * height, problem_.state_rows - first_row);
    const index_t rows = std::min((leaf + 1) * height, ab.rows) - first;
    if (rows > 0) qrtool::add_gram<T>(ab.row_block(first, rows), parts[leaf]);
  });
  for (const RowSum<S>& part : parts) {
    gram_->tile = part.sum;
    gram_->end_tile();
  }
}

template <class T>
void TallSystem<T>::put_state(MatrixView<T> r, MatrixView<S> gram) const {
  const MatrixView<const T> all = factors_.view()[0];
  for (index_t i = 0; i < r.rows; ++i) {
    for (index_t j = 0; j < r.cols; ++j) {
      const index_t side = j - problem_.n;
      const bool is_finite = found_.a_is_finite && (side < 0 || found_.b_is_finite[side] != 0);
      const int scale = side < 0 ? scales_.a : scales_.b[side];
      r(i, j) = !is_finite ? not_a_number<T>() : i >= all.rows ? T(0) : scaled_by(all(i, j), scale);
      gram(i, j) = scaled_by(gram_->sum(i, j), 2 * gram_scale_);
    }
  }
}

template <class T>
void TallSystem<T>::add_precise_residual(index_t, const S*, std::vector<S>&, double&) {}

template <class T>
bool TallSystem<T>::factor_again(index_t j, MatrixView<S> r, S* z) {
  const Batch<T> factors(1, shape_.k(), shape_.n());
  const MatrixView<T> all = factors.view()[0];
  if (!factor(/*by_reflectors=*/true, all).r_fits) return false;
  std::copy_n(all.data, all.rows * all.cols, factors_.view().data);
  for (index_t i = 0; i < r.rows; ++i) {
    for (index_t c = 0; c < r.cols; ++c) r(i, c) = static_cast<S>(all(i, c));
    z[i] = static_cast<S>(all(i, problem_.n + j));
  }
  return true;
}

/// After R of the unscaled rows is known. R and z are scaled with the rows.
template <class T>
void TallSystem<T>::choose_scales(MatrixView<T> r) {
  if constexpr (std::is_same_v<Real<T>, float>) return;
  const auto column_norm = [&](index_t j) {
    double largest = 0;
    for (index_t i = 0; i < r.rows; ++i)
      largest = std::max(largest, std::abs(static_cast<S>(r(i, j))));
    return largest;
  };
  double of_a = 0;
  for (index_t j = 0; j < problem_.n; ++j) of_a = std::max(of_a, column_norm(j));
  scales_.a = scale_of(of_a);
  for (index_t j = 0; j < p_; ++j) scales_.b[j] = scale_of(column_norm(problem_.n + j));
  for (index_t i = 0; i < r.rows; ++i)
    for (index_t j = 0; j < r.cols; ++j)
      r(i, j) = scaled_by(r(i, j), j < problem_.n ? -scales_.a : -scales_.b[j - problem_.n]);
}

template <class T>
SolveSeconds TallSystem<T>::run(const RightSideBlock<T>& block) {
  const index_t n = problem_.n, k = problem_.k();
  scales_ = {0, std::vector<int>(p_, 0), std::vector<char>(p_, 0)};
  const Batch<T> solution(1, n, p_);
  const Batch<Real<T>> errors(1, n, p_);
  const MatrixView<T> r = factors_.view()[0];
  const auto start = Clock::now();
  const bool is_good = factor_in_range(r).r_fits;
  SolveSeconds seconds{.factor = seconds_since(start)};
  const bool has_few = found_.rows_used < problem_.least_rows();
  if (has_few || !found_.a_is_finite) {
    const Status why = has_few ? Status::too_few_rows : Status::non_finite;
    for (index_t j = 0; j < p_; ++j) refuse_right_side(problem_, block, j, why);
    if (!block.findings.empty()) block.findings[0] = {};
    return seconds;
  }
  if (!is_good) std::fill_n(r.data, r.rows * r.cols, not_a_number<T>());
  SolveRules rules = problem_.rules();
  rules.may_refine = false;
  SystemSolver<T> solver(rules);
  const std::vector<int> of_columns(static_cast<std::size_t>(n), scales_.a);
  solver.take_factor(MatrixView<const T>{r.data, k, n, r.ld}, of_columns);
  if (!block.findings.empty()) block.findings[0] = solver.findings();
  const Batch<S> z(1, k, p_);
  for (index_t i = 0; i < k; ++i)
    for (index_t j = 0; j < p_; ++j) z.view()[0](i, j) = static_cast<S>(r(i, n + j));
  for (index_t j = 0; j < p_; ++j) take_solution<T>(problem_, block, j, solution.view()[0], j);
  const std::vector<char> refused = scales_.is_zero;
  const std::vector<index_t> rows_used(static_cast<std::size_t>(p_), found_.rows_used);
  solver.solve(*this, 0, z.view()[0], scales_.b,
               {.x = solution.view()[0],
                .se = block.se != nullptr ? errors.view()[0] : MatrixView<Real<T>>{},
                .reports = block.reports,
                .rows_used = rows_used});
  const std::vector<S> correlations =
      block.covariance != nullptr ? solver.factor().correlations() : std::vector<S>{};
  for (index_t j = 0; j < p_; ++j) {
    if (refused[j]) {
      refuse_right_side(problem_, block, j);
      continue;
    }
    put_solution<T>(problem_, solution.view()[0], errors.view()[0], j, block, j);
    put_covariance<T>(problem_, correlations, block, j);
  }
  seconds.solve = seconds_since(start) - seconds.factor;
  return seconds;
}

template class TallSystem<float>;
template class TallSystem<double>;
template class TallSystem<std::complex<float>>;
template class TallSystem<std::complex<double>>;

}  // namespace qrtool
