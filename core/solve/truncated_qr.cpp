// SPDX-License-Identifier: Apache-2.0
// truncated_qr.cpp: blocks of columns by a sample, then single columns by their norms.
#include "core/solve/truncated_qr.hpp"

#include <Eigen/Householder>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/complex_arithmetic.hpp"

namespace qrtool {
namespace {

constexpr index_t block_columns = 64, sample_rows = block_columns + 8;
/// Blocks of columns pay from so many columns on.
constexpr index_t least_columns = 256;
/// Blocks are taken while their diagonal is this many times the tolerance.
constexpr double margin = 8;

/// Returns rows of +1 and -1, the same in every run.
template <class Matrix>
Matrix signs(index_t rows, index_t cols) {
  using S = typename Matrix::Scalar;
  std::mt19937_64 random(1);
  return Matrix::NullaryExpr(rows, cols, [&] { return S(random() & 1 ? 1.0 : -1.0); });
}

/// A^H B and C -= A B. Each product of other types would take the compiler seconds.
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
  const index_t rows = s.rows() - k, cols = s.cols() - k - 1;
  double beta = 0;
  s.col(k).tail(rows).makeHouseholderInPlace(coefficient, beta);
  s(k, k) = beta;
  Eigen::Matrix<S, Eigen::Dynamic, 1> workspace(cols);
  s.bottomRightCorner(rows, cols)
      .applyHouseholderOnTheLeft(s.col(k).tail(rows - 1), coefficient, workspace.data());
}

/// V of the reflectors below the diagonal.
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

template <class Matrix>
double longest_column(const Matrix& s) {
  return s.size() > 0 ? s.colwise().norm().maxCoeff() : 0;
}

}  // namespace

template <class S>
TruncatedQr<S>::TruncatedQr(Matrix s, double tolerance, bool is_complete)
    : s_(std::move(s)),
      coefficients_(Vector::Zero(std::min(s_.rows(), s_.cols()))),
      permutation_(Eigen::VectorXi::LinSpaced(s_.cols(), 0, static_cast<int>(s_.cols()) - 1)) {
  const double longest = longest_column(s_);
  least_ = tolerance * longest;
  if (s_.cols() >= least_columns) choose_by_blocks();
  if (is_complete) least_ = 0;
  choose_one_by_one(std::min(s_.rows(), s_.cols()));
  while (rank_ < steps_ && std::abs(s_(rank_, rank_)) > tolerance * longest) ++rank_;
}

template <class S>
TruncatedQr<S>::TruncatedQr(Matrix s, index_t most_steps)
    : s_(std::move(s)),
      coefficients_(Vector::Zero(most_steps)),
      permutation_(Eigen::VectorXi::LinSpaced(s_.cols(), 0, static_cast<int>(s_.cols()) - 1)) {
  choose_one_by_one(most_steps);
}

template <class S>
void TruncatedQr<S>::swap_columns(index_t i, index_t j) {
  if (i == j) return;
  s_.col(i).swap(s_.col(j));
  std::swap(permutation_(i), permutation_(j));
}

/// sample = G A for what is left of S, A = Q [R11 R12; 0 R22] with R11 of a block. Then that of R22
/// is sample2 - sample1 R11^-1 R12.
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

/// Factors the first columns of `chosen`, and returns false, with nothing factored, where their
/// diagonal is too small.
template <class S>
bool TruncatedQr<S>::factor_block(const Eigen::VectorXi& chosen, Matrix& sample) {
  const index_t left = s_.cols() - steps_, rows = s_.rows() - steps_;
  // A swap may have moved a chosen column: `place` says where each column is now.
  Eigen::VectorXi place = Eigen::VectorXi::LinSpaced(left, 0, static_cast<int>(left) - 1);
  Eigen::VectorXi column = place;
  for (int j = 0; j < block_columns; ++j) {
    const int from = place(chosen(j));
    swap_columns(steps_ + j, steps_ + from);
    sample.col(j).swap(sample.col(from));
    std::swap(place(column(j)), place(column(from)));
    std::swap(column(j), column(from));
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
  Eigen::VectorXd norms = s_.bottomRightCorner(s_.rows() - steps_, left).colwise().norm();
  Eigen::VectorXd first_norms = norms;  // when they were last measured
  const index_t base = steps_;
  while (steps_ < most_steps) {
    index_t at = 0;
    const index_t taken = steps_ - base;
    if (!(norms.tail(left - taken).maxCoeff(&at) > least_)) return;
    swap_columns(steps_, steps_ + at);
    std::swap(norms(taken), norms(taken + at));
    std::swap(first_norms(taken), first_norms(taken + at));
    take_step(taken, norms, first_norms);
  }
}

/// Makes the reflector of the next column, and updates the norms of the columns from j + 1 on.
template <class S>
void TruncatedQr<S>::take_step(index_t j, Eigen::VectorXd& norms, Eigen::VectorXd& first_norms) {
  const index_t k = steps_++, rows = s_.rows() - k, cols = s_.cols() - k - 1;
  reflect(s_, k, coefficients_(k));
  for (index_t c = 0; c < cols; ++c) {
    double& norm = norms(j + 1 + c);
    double& first = first_norms(j + 1 + c);
    if (norm == 0) continue;
    // LAPACK working note 176: a norm that lost half of its digits is measured again.
    const double ratio = std::abs(s_(k, k + 1 + c)) / norm;
    const double kept = std::max(0.0, (1 + ratio) * (1 - ratio)), size = norm / first;
    if (kept * size * size <= std::sqrt(std::numeric_limits<double>::epsilon())) {
      norm = first = s_.col(k + 1 + c).tail(rows - 1).norm();
    } else {
      norm *= std::sqrt(kept);
    }
  }
}

template <class S>
auto TruncatedQr<S>::r() const -> Matrix {
  Matrix r = s_;
  for (index_t j = 0; j < steps_; ++j) r.col(j).tail(r.rows() - j - 1).setZero();
  return r;
}

template <class S>
void TruncatedQr<S>::apply_adjoint(Vector& c) const {
  S workspace = 0;
  for (index_t k = 0; k < steps_; ++k) {
    const index_t rows = s_.rows() - k;
    c.tail(rows).applyHouseholderOnTheLeft(s_.col(k).tail(rows - 1), coefficients_(k), &workspace);
  }
}

template class TruncatedQr<double>;
template class TruncatedQr<std::complex<double>>;

}  // namespace qrtool
