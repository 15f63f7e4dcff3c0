// SPDX-License-Identifier: Apache-2.0
// truncated_qr.cpp: blocks of columns by a sample, then single columns by their norms.
#include "core/solve/truncated_qr.hpp"

#include <Eigen/Householder>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

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
  choose_one_by_one();
  while (rank_ < steps_ && std::abs(s_(rank_, rank_)) > tolerance * longest) ++rank_;
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
  Matrix sample = signs<Matrix>(sample_rows, s_.rows()) * s_;
  const double least = margin * std::sqrt(static_cast<double>(sample_rows)) * least_;
  while (std::min(s_.rows(), s_.cols()) - steps_ >= 2 * block_columns) {
    const Eigen::ColPivHouseholderQR<Matrix> choice(sample);
    if (!(std::abs(choice.matrixR()(block_columns - 1, block_columns - 1)) > least)) return;
    if (!factor_block(choice.colsPermutation().indices(), sample)) return;
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
  const Eigen::HouseholderQR<Matrix> qr(s_.block(steps_, steps_, rows, block_columns));
  if (!(qr.matrixQR().diagonal().cwiseAbs().minCoeff() > margin / 2 * least_)) return false;
  s_.block(steps_, steps_, rows, block_columns) = qr.matrixQR();
  coefficients_.segment(steps_, block_columns) = qr.hCoeffs();
  auto right = s_.block(steps_, steps_ + block_columns, rows, left - block_columns);
  right.applyOnTheLeft(qr.householderQ().adjoint());
  const Matrix first = qr.matrixQR()
                           .topRows(block_columns)
                           .template triangularView<Eigen::Upper>()
                           .template solve<Eigen::OnTheRight>(sample.leftCols(block_columns));
  const Matrix rest = sample.rightCols(left - block_columns) - first * right.topRows(block_columns);
  sample = rest;
  steps_ += block_columns;
  return true;
}

template <class S>
void TruncatedQr<S>::choose_one_by_one() {
  const index_t left = s_.cols() - steps_;
  Eigen::VectorXd norms = s_.bottomRightCorner(s_.rows() - steps_, left).colwise().norm();
  Eigen::VectorXd first_norms = norms;  // when they were last measured
  const index_t base = steps_;
  while (steps_ < std::min(s_.rows(), s_.cols())) {
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
  S& coefficient = coefficients_(k);
  double beta = 0;
  s_.col(k).tail(rows).makeHouseholderInPlace(coefficient, beta);
  s_(k, k) = beta;
  Vector workspace(cols);
  s_.bottomRightCorner(rows, cols)
      .applyHouseholderOnTheLeft(s_.col(k).tail(rows - 1), coefficient, workspace.data());
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
