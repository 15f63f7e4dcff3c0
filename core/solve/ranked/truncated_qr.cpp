// SPDX-License-Identifier: Apache-2.0
// truncated_qr.cpp: blocks of columns by a sample, then single columns by their norms.
#include "core/solve/ranked/truncated_qr.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "core/solve/ranked/rows.hpp"

namespace qrtool {
namespace {

constexpr index_t block_columns = 64, sample_rows = block_columns + 8;
/// The least number of columns from which on blocks of columns are faster.
constexpr index_t least_columns = 256;
/// Blocks are taken while their diagonal is this many times the tolerance.
constexpr double margin = 8;

template <class S>
double plain_norm(const S* x, index_t count) {
  return std::sqrt(real_part(conjugate_dot(x, x, count)));
}

/// Returns rows of +1 and -1, the same in every run.
template <class Matrix>
Matrix signs(index_t rows, index_t cols) {
  using S = typename Matrix::Scalar;
  std::mt19937_64 random(1);
  Matrix matrix(rows, cols);
  for (S& each : std::span(matrix.data(), static_cast<std::size_t>(matrix.size())))
    each = S(random() & 1 ? 1.0 : -1.0);
  return matrix;
}

/// A^H B and C -= A B for one type each. More instantiations would take the compiler seconds each.
template <class Matrix>
Matrix adjoint_product(const Matrix& a, const Eigen::Ref<const Matrix>& b) {
  return a.adjoint() * b;
}
template <class Matrix>
void subtract_product(Eigen::Ref<Matrix> c, const Matrix& a, const Matrix& b) {
  c.noalias() -= a * b;
}

/// Makes the reflector of column k, and applies it to the columns after it.
template <class Matrix, class S>
void reflect(Matrix& s, index_t k, S& coefficient) {
  const index_t rows = s.rows() - k;
  S* const column = &s(k, k);
  const Reflector<S> reflector = make_reflector(column, rows);
  coefficient = reflector.c;
  column[0] = reflector.beta;
  for (index_t j = k + 1; j < s.cols(); ++j) {
    S* const other = &s(k, j);
    apply_reflector(other[0], other + 1, reflector.c, column + 1, rows - 1);
  }
}

/// Returns V of the reflectors below the diagonal.
template <class Matrix>
Matrix unit_lower(const Matrix& reflectors) {
  Matrix v = reflectors;
  for (index_t j = 0; j < v.cols(); ++j) {
    for (index_t i = 0; i < j; ++i) v(i, j) = 0;
    v(j, j) = 1;
  }
  return v;
}

/// T of H_1^H H_2^H .. = I - V T V^H, for H_j = I - c_j v_j v_j^H (LAPACK larft).
template <class Matrix, class Vector>
Matrix block_coefficients(const Matrix& v, const Vector& coefficients) {
  using S = typename Matrix::Scalar;
  const Matrix gram = adjoint_product<Matrix>(v, v);
  Matrix t = Matrix::Zero(v.cols(), v.cols());
  for (index_t j = 0; j < v.cols(); ++j) {
    const S c = conjugate(coefficients(j));
    for (index_t i = 0; i < j; ++i) {
      S sum = 0;
      for (index_t l = i; l < j; ++l) sum += product(t(i, l), gram(l, j));
      t(i, j) = -product(c, sum);
    }
    t(j, j) = c;
  }
  return t;
}

/// X := X R^-1 for the upper triangle of the first rows of r.
template <class Matrix>
void divide_by_upper(Matrix& x, const Matrix& r) {
  for (index_t j = 0; j < x.cols(); ++j) {
    for (index_t l = 0; l < j; ++l)
      for (index_t i = 0; i < x.rows(); ++i) x(i, j) -= product(x(i, l), r(l, j));
    for (index_t i = 0; i < x.rows(); ++i) x(i, j) /= r(j, j);
  }
}

/// The norms of the columns from `first` on, without the rows before it.
template <class Matrix>
std::vector<double> column_norms(const Matrix& s, index_t first) {
  const index_t rows = s.rows() - first;
  std::vector<double> norms;
  for (index_t j = first; j < s.cols(); ++j)
    norms.push_back(rows > 0 ? plain_norm(&s(first, j), rows) : 0);
  return norms;
}

std::vector<int> in_order(index_t count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

template <class S>
TruncatedQr<S>::TruncatedQr(Matrix s, double tolerance, bool is_complete)
    : s_(std::move(s)),
      coefficients_(Vector::Zero(std::min(s_.rows(), s_.cols()))),
      permutation_(in_order(s_.cols())) {
  const std::vector<double> norms = column_norms(s_, 0);
  const double longest = norms.empty() ? 0 : *std::ranges::max_element(norms);
  least_ = tolerance * longest;
  if (s_.cols() >= least_columns) choose_by_blocks();
  if (is_complete) least_ = 0;
  choose_one_by_one(std::min(s_.rows(), s_.cols()));
  while (rank_ < steps_ && std::abs(s_(rank_, rank_)) > tolerance * longest) ++rank_;
}

template <class S>
TruncatedQr<S>::TruncatedQr(Matrix s, index_t most_steps)
    : s_(std::move(s)), coefficients_(Vector::Zero(most_steps)), permutation_(in_order(s_.cols())) {
  choose_one_by_one(most_steps);
}

template <class S>
void TruncatedQr<S>::swap_columns(index_t i, index_t j) {
  if (i == j) return;
  s_.col(i).swap(s_.col(j));
  std::swap(permutation_[i], permutation_[j]);
}

/// Updates the sample. sample = G A for the rest A of S; A = Q [R11 R12; 0 R22] with R11 of a
/// block, and the sample of R22 is sample2 - sample1 R11^-1 R12.
template <class S>
void TruncatedQr<S>::choose_by_blocks() {
  Matrix sample = adjoint_product<Matrix>(signs<Matrix>(s_.rows(), sample_rows), s_);
  const double least = margin * std::sqrt(static_cast<double>(sample_rows)) * least_;
  while (std::min(s_.rows(), s_.cols()) - steps_ >= 2 * block_columns) {
    const TruncatedQr choice(sample, block_columns);
    if (choice.steps_ < block_columns) return;
    if (!(std::abs(choice.s_(block_columns - 1, block_columns - 1)) > least)) return;
    if (!factor_block(choice.permutation_, sample)) return;
  }
}

/// Factors the first columns of `chosen`. Returns false, with nothing factored, if their diagonal
/// is too small.
template <class S>
bool TruncatedQr<S>::factor_block(const std::vector<int>& chosen, Matrix& sample) {
  const index_t left = s_.cols() - steps_, rows = s_.rows() - steps_;
  // A swap may have moved a chosen column: `place` says where each column is now.
  std::vector<int> place = in_order(left), column = place;
  for (int j = 0; j < block_columns; ++j) {
    const int from = place[chosen[j]];
    swap_columns(steps_ + j, steps_ + from);
    sample.col(j).swap(sample.col(from));
    std::swap(place[column[j]], place[column[from]]);
    std::swap(column[j], column[from]);
  }
  Matrix panel = s_.block(steps_, steps_, rows, block_columns);
  Vector coefficients(block_columns);
  for (index_t j = 0; j < block_columns; ++j) {
    reflect(panel, j, coefficients(j));
    if (!(std::abs(panel(j, j)) > margin / 2 * least_)) return false;
  }
  s_.block(steps_, steps_, rows, block_columns) = panel;
  coefficients_.segment(steps_, block_columns) = coefficients;
  auto right = s_.block(steps_, steps_ + block_columns, rows, left - block_columns);
  const Matrix v = unit_lower(panel), t = block_coefficients(v, coefficients);
  subtract_product<Matrix>(right, v, adjoint_product<Matrix>(t, adjoint_product<Matrix>(v, right)));
  Matrix first = sample.leftCols(block_columns), rest = sample.rightCols(left - block_columns);
  divide_by_upper(first, panel);
  subtract_product<Matrix>(rest, first, right.topRows(block_columns));
  sample = std::move(rest);
  steps_ += block_columns;
  return true;
}

template <class S>
void TruncatedQr<S>::choose_one_by_one(index_t most_steps) {
  const index_t left = s_.cols() - steps_;
  std::vector<double> norms = column_norms(s_, steps_);
  std::vector<double> first_norms = norms;  // when they were last measured
  const index_t base = steps_;
  while (steps_ < most_steps) {
    const index_t taken = steps_ - base;
    if (taken == left) return;
    const auto longest = std::max_element(norms.begin() + taken, norms.end());
    if (!(*longest > least_)) return;
    const index_t at = longest - norms.begin();
    swap_columns(steps_, base + at);
    std::swap(norms[taken], norms[at]);
    std::swap(first_norms[taken], first_norms[at]);
    take_step(taken, norms, first_norms);
  }
}

/// Makes the reflector of the next column, and updates the norms of the columns from j + 1 on.
template <class S>
void TruncatedQr<S>::take_step(index_t j, std::vector<double>& norms,
                               std::vector<double>& first_norms) {
  const index_t k = steps_++, rows = s_.rows() - k, cols = s_.cols() - k - 1;
  reflect(s_, k, coefficients_(k));
  for (index_t c = 0; c < cols; ++c) {
    double& norm = norms[j + 1 + c];
    double& first = first_norms[j + 1 + c];
    if (norm == 0) continue;
    // LAPACK working note 176: a norm that lost half of its digits is measured again.
    const double ratio = std::abs(s_(k, k + 1 + c)) / norm;
    const double kept = std::max(0.0, (1 + ratio) * (1 - ratio)), size = norm / first;
    if (kept * size * size <= std::sqrt(std::numeric_limits<double>::epsilon())) {
      norm = first = plain_norm(&s_(k, k + 1 + c) + 1, rows - 1);
    } else {
      norm *= std::sqrt(kept);
    }
  }
}

template <class S>
auto TruncatedQr<S>::r() const -> Matrix {
  Matrix r = s_;
  for (index_t j = 0; j < steps_; ++j)
    for (index_t i = j + 1; i < r.rows(); ++i) r(i, j) = 0;
  return r;
}

template <class S>
void TruncatedQr<S>::apply_adjoint(Vector& c) const {
  for (index_t k = 0; k < steps_; ++k)
    apply_reflector(c(k), c.data() + k + 1, coefficients_(k), &s_(k, k) + 1, s_.rows() - k - 1);
}

template class TruncatedQr<double>;
template class TruncatedQr<std::complex<double>>;

}  // namespace qrtool
