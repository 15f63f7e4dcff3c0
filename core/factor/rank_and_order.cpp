// SPDX-License-Identifier: Apache-2.0
// rank_and_order.cpp: pivots R by Eigen's Householder QR, which follows geqp3.
#include "core/factor/rank_and_order.hpp"

#include <fmt/format.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/eigen/householder.hpp"
#include "core/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {

template <class T>
void permute_columns(MatrixView<T> a, std::span<const index_t> permutation) {
  std::vector<T> row(static_cast<std::size_t>(a.cols));
  for (index_t i = 0; i < a.rows; ++i) {
    std::copy_n(&a(i, 0), a.cols, row.data());
    for (index_t j = 0; j < a.cols; ++j)
      a(i, j) = row[static_cast<std::size_t>(permutation[static_cast<std::size_t>(j)])];
  }
}

template <class Number>
std::vector<index_t> permutation_of(const Number* numbers, index_t n, const std::string& p,
                                    index_t matrix) {
  std::vector<bool> is_free(static_cast<std::size_t>(n), true);
  std::vector<index_t> permutation;
  for (const Number number : std::span(numbers, is_free.size())) {
    const auto place =
        number >= 0 && number < static_cast<Number>(n) ? static_cast<index_t>(number) : -1;
    if (place < 0 || static_cast<Number>(place) != number || !is_free[place])
      throw InputError(
          fmt::format("{} of matrix {} does not hold each of 0 to {} once", p, matrix, n - 1),
          "its numbers count the columns from 0; MATLAB, Octave, Julia and R count from 1");
    is_free[place] = false;
    permutation.push_back(place);
  }
  return permutation;
}
template std::vector<index_t> permutation_of(const double*, index_t, const std::string&, index_t);
template std::vector<index_t> permutation_of(const std::int64_t*, index_t, const std::string&,
                                             index_t);

template <class S>
struct RankAndOrder<S>::Pivoted {
  using RowMajor = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::ColPivHouseholderQR<householder::Matrix<S>> qr;
  RowMajor q, r;  // Q2, and R2 2^-scale
};

template <class S>
RankAndOrder<S>::RankAndOrder(const Problem& problem)
    : problem_(problem),
      rule_{.tolerance = default_rank_tolerance(problem.type, problem.n) *
                         (precision_of(problem).u / precision_of(problem.type).u),
            .is_basic = true},
      scaled_(1, problem.k(), problem.n),
      permutation_(static_cast<std::size_t>(problem.pivots ? problem.n : 0)),
      pivoted_(std::make_unique<Pivoted>()) {}

template <class S>
RankAndOrder<S>::~RankAndOrder() = default;
template <class S>
RankAndOrder<S>::RankAndOrder(RankAndOrder&&) noexcept = default;

template <class S>
template <class T>
void RankAndOrder<S>::set(MatrixView<const T> r, int scale) {
  scale_ = scale;
  const MatrixView<S> scaled = scaled_.view()[0];
  for (index_t i = 0; i < scaled.rows; ++i)
    for (index_t j = 0; j < scaled.cols; ++j)
      scaled(i, j) = j < i ? S(0) : scaled_by(static_cast<S>(r(i, j)), -scale);
  factor_.set(scaled, rule_);
}

template <class S>
void RankAndOrder<S>::enter(MatrixReport& line) const {
  if (problem_.pivots) line.rank = static_cast<std::int32_t>(factor_.rank());
  if (problem_.wants_condition) line.condition = factor_.condition();
}

template <class S>
void RankAndOrder<S>::pivot() {
  const MatrixView<S> scaled = scaled_.view()[0];
  const index_t k = problem_.k(), n = problem_.n;
  Pivoted& p = *pivoted_;
  std::iota(permutation_.begin(), permutation_.end(), index_t{0});
  p.r.resize(k, n);
  p.q.resize(k, k);
  if (k == 0) return;
  p.qr.compute(Eigen::Map<const typename Pivoted::RowMajor>(scaled.data, k, n));
  householder::Matrix<S> q(k, k);
  // Eigen stores tau of H^H.
  householder::form_q<S>(p.qr.matrixQR(), p.qr.hCoeffs().conjugate(), q);
  p.q = q;
  p.r = p.qr.matrixR().topRows(k).template triangularView<Eigen::Upper>();
  for (index_t j = 0; j < n; ++j)
    permutation_[static_cast<std::size_t>(j)] = p.qr.colsPermutation().indices()(j);
  std::vector<int> signs;
  for (index_t i = 0; i < k; ++i) signs.push_back(real_part(p.r(i, i)) < 0 ? -1 : 1);
  apply_signs(signs);
}

template <class S>
void RankAndOrder<S>::apply_signs(const std::vector<int>& signs) {
  for (index_t i = 0; i < problem_.k(); ++i) {
    if (signs[static_cast<std::size_t>(i)] > 0) continue;
    pivoted_->r.row(i) *= -1;
    pivoted_->q.col(i) *= -1;
  }
}

template <class S>
double RankAndOrder<S>::diagonal_ratio() const {
  if (problem_.k() == 0) return 0;
  const Eigen::ArrayXd diagonal = pivoted_->r.diagonal().array().abs();
  return diagonal.maxCoeff() > 0 ? diagonal.minCoeff() / diagonal.maxCoeff() : 0;
}

template <class S>
void RankAndOrder<S>::share(Comm& comm) {
  pivoted_->q.resize(problem_.k(), problem_.k());
  broadcast(comm, permutation_.data(), permutation_.size());
  broadcast(comm, pivoted_->q.data(), static_cast<std::size_t>(pivoted_->q.size()));
}

template <class S>
template <class T>
void RankAndOrder<S>::store_r(MatrixView<T> r) const {
  for (index_t i = 0; i < r.rows; ++i)
    for (index_t j = 0; j < r.cols; ++j)
      // Adding 0 turns -0 into +0. The sign of a zero would depend on the R that was pivoted.
      r(i, j) = j < i ? T(0) : static_cast<T>(scaled_by(pivoted_->r(i, j), scale_)) + T(0);
}

template <class S>
template <class T>
void RankAndOrder<S>::multiply(MatrixView<T> q, int threads) const {
  // The number of rows of Q that are multiplied together, and the number that a thread multiplies
  // at a time.
  constexpr index_t at_once = 4, piece = 64 * at_once;
  const index_t k = problem_.k();
  if (k == 0) return;
  const auto& q2 = pivoted_->q;
  const auto multiply_rows = [&](index_t first, index_t rows, S* sums) {
    std::fill_n(sums, at_once * k, S(0));
    for (index_t l = 0; l < k; ++l) {
      const S* from = q2.data() + l * k;
      for (index_t i = 0; i < rows; ++i) {
        const auto factor = static_cast<S>(q(first + i, l));
        S* to = sums + i * k;
#pragma omp simd
        for (index_t j = 0; j < k; ++j) to[j] += product(factor, from[j]);
      }
    }
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < k; ++j) q(first + i, j) = static_cast<T>(sums[i * k + j]);
  };
  parallel_for((q.rows + piece - 1) / piece, threads, [&](index_t number, int) {
    std::vector<S> sums(static_cast<std::size_t>(at_once * k));
    const index_t end = std::min((number + 1) * piece, q.rows);
    for (index_t i = number * piece; i < end; i += at_once)
      multiply_rows(i, std::min(at_once, end - i), sums.data());
  });
}

template class RankAndOrder<double>;
template class RankAndOrder<std::complex<double>>;

#define QRTOOL_FOR(T)                                                     \
  template void permute_columns(MatrixView<T>, std::span<const index_t>); \
  template void RankAndOrder<Wide<T>>::set(MatrixView<const T>, int);     \
  template void RankAndOrder<Wide<T>>::store_r(MatrixView<T>) const;      \
  template void RankAndOrder<Wide<T>>::multiply(MatrixView<T>, int) const;
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
