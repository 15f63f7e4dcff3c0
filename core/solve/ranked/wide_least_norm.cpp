// SPDX-License-Identifier: Apache-2.0
// wide_least_norm.cpp: reflectors in the inner product of D^2.
#include "core/solve/ranked/wide_least_norm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/solve/ranked/rows.hpp"

namespace qrtool {
namespace {

/// A row of T^H holds only rounding errors if its remaining part is not longer than this.
constexpr double least_row = 8 * std::numeric_limits<double>::epsilon();
/// The squares of a column that lost more digits than this are summed again.
constexpr double least_kept = 0x1p-20;

std::vector<index_t> counted(index_t count) {
  std::vector<index_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), index_t{0});
  return numbers;
}

/// Returns the sum of w_i |x_i|^2.
template <class S>
double weighted_squares(const S* x, const double* w, index_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (index_t i = 0; i < count; ++i) sum += w[i] * square_of(x[i]);
  return sum;
}

}  // namespace

template <class S>
WideLeastNorm<S>::WideLeastNorm(const Matrix& adjoint, std::span<const int> sizes)
    : rank_(adjoint.cols()),
      t_(adjoint.rows(), rank_),
      weighted_(adjoint.rows(), rank_),
      diagonal_(rank_),
      factors_(static_cast<std::size_t>(rank_)),
      rows_(counted(adjoint.rows())),
      columns_(counted(rank_)) {
  std::ranges::stable_sort(rows_, [&](index_t i, index_t j) { return sizes[i] > sizes[j]; });
  std::vector<int> sorted;
  for (const index_t row : rows_) sorted.push_back(sizes[row]);
  for (index_t j = 0; j < rank_; ++j)
    for (index_t i = 0; i < t_.rows(); ++i) t_(i, j) = adjoint(rows_[i], j);
  factor(std::move(sorted));
}

/// If only rounding errors are left of row k, makes it the last row, and returns true.
template <class S>
bool WideLeastNorm<S>::clear_small_row(index_t k) {
  double squares = 0;
  for (index_t j = k; j < rank_; ++j) squares += square_of(t_(k, j));
  if (squares > least_row * least_row) return false;
  for (index_t j = 0; j < rank_; ++j) {
    S* const column = t_.col(j).data();
    if (j >= k) column[k] = S(0);
    std::rotate(column + k, column + k + 1, column + t_.rows());
    if (j < k) {
      S* const weighted = weighted_.col(j).data();
      std::rotate(weighted + k, weighted + k + 1, weighted + t_.rows());
    }
  }
  std::rotate(rows_.begin() + k, rows_.begin() + k + 1, rows_.end());
  return true;
}

template <class S>
void WideLeastNorm<S>::factor(std::vector<int> sizes) {
  const index_t n = t_.rows();
  index_t used = n;  // rows that are not cleared
  std::vector<double> weights(static_cast<std::size_t>(n), 0.0);
  std::vector<double> squares(static_cast<std::size_t>(rank_)), before = squares;
  int size = 0;
  for (index_t k = 0; k < rank_; ++k) {
    while (used > rank_ && clear_small_row(k)) {
      std::rotate(sizes.begin() + k, sizes.begin() + k + 1, sizes.end());
      weights[--used] = 0;
    }
    const index_t left = used - k;
    const bool has_new_weights = k == 0 || sizes[k] != size;
    size = sizes[k];
    for (index_t i = k; i < used && has_new_weights; ++i)
      weights[i] = std::ldexp(1.0, std::max(2 * (sizes[i] - size), -2000));
    for (index_t j = k; j < rank_; ++j) {
      if (!has_new_weights && squares[j] > least_kept * before[j]) continue;
      squares[j] = before[j] = weighted_squares(&t_(k, j), &weights[k], left);
    }
    const index_t longest = std::max_element(squares.begin() + k, squares.end()) - squares.begin();
    if (longest != k) {
      t_.col(k).swap(t_.col(longest));
      std::swap(columns_[k], columns_[longest]);
      std::swap(squares[k], squares[longest]);
      std::swap(before[k], before[longest]);
    }
    S* const u = &t_(k, k);
    S* const weighted = &weighted_(k, k);
    const double norm = std::sqrt(weighted_squares(u, &weights[k], left)), first = std::abs(u[0]);
    const S sign = first > 0 ? u[0] / first : S(1);
    diagonal_(k) = -sign * norm;
    u[0] = sign * (first + norm);
    factors_[k] = norm > 0 ? 1 / (norm * (first + norm)) : 0;
    std::fill(weighted + left, weighted + (n - k), S(0));
    for (index_t i = 0; i < left; ++i) weighted[i] = weights[k + i] * u[i];
    for (index_t j = k + 1; j < rank_; ++j) {
      S* const other = &t_(k, j);
      subtract(other, factors_[k] * conjugate_dot(weighted, other, left), u, left);
      squares[j] -= square_of(other[0]);
    }
  }
}

template <class S>
std::vector<S> WideLeastNorm<S>::solution(const std::vector<S>& c) const {
  const index_t n = t_.rows();
  std::vector<S> x(static_cast<std::size_t>(n), S(0));
  for (index_t k = 0; k < rank_; ++k) {
    const S known = conjugate_dot(t_.col(k).data(), x.data(), k);
    x[k] = (c[columns_[k]] - known) / conjugate(diagonal_(k));
  }
  for (index_t k = rank_ - 1; k >= 0; --k) {
    const S sum = factors_[k] * conjugate_dot(&t_(k, k), &x[k], n - k);
    subtract(&x[k], sum, &weighted_(k, k), n - k);
  }
  std::vector<S> in_place(x.size());
  for (index_t i = 0; i < n; ++i) in_place[rows_[i]] = x[i];
  return in_place;
}

template class WideLeastNorm<double>;
template class WideLeastNorm<std::complex<double>>;

}  // namespace qrtool
