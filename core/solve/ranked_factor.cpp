// SPDX-License-Identifier: Apache-2.0
// ranked_factor.cpp: decides the rank on pivoted R with scaled columns, and solves with it.
#include "core/solve/ranked_factor.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>

namespace qrtool {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

double frobenius(MatrixView<const double> r) {
  double sum = 0;
  for (index_t i = 0; i < r.rows; ++i) {
    for (index_t j = i; j < r.cols; ++j) sum += r(i, j) * r(i, j);
  }
  return std::sqrt(sum);
}

}  // namespace

/// The complete orthogonal decomposition, or for basic solutions its first half.
struct RankedFactor::Complete {
  Eigen::ColPivHouseholderQR<Matrix> pivoted;  // of R D^-1
  Matrix lower;  // L; for basic solutions the leading block of S P'DP, which is upper triangular
  Matrix basis;  // P W, n x rank
  bool is_basic = false;

  Vector solve_l(const Vector& c) const {
    if (is_basic) return lower.triangularView<Eigen::Upper>().solve(c);
    return lower.triangularView<Eigen::Lower>().solve(c);
  }
  Vector solve_l_transposed(const Vector& c) const {
    if (is_basic) return lower.triangularView<Eigen::Upper>().transpose().solve(c);
    return lower.triangularView<Eigen::Lower>().transpose().solve(c);
  }
};

RankedFactor::RankedFactor() = default;
RankedFactor::~RankedFactor() = default;
RankedFactor::RankedFactor(RankedFactor&&) noexcept = default;

double default_rank_tolerance(ElementType type, index_t n) {
  const double u = type == ElementType::float32 ? 0x1p-23 : 0x1p-52;
  return u * std::max(16.0, 2 * static_cast<double>(n));
}

/// The e_j with the norm of column j in [2^(e_j - 1), 2^e_j).
std::vector<int> RankedFactor::column_exponents() const {
  std::vector<int> exponents(static_cast<std::size_t>(r_.cols));
  for (index_t j = 0; j < r_.cols; ++j) {
    if (r_.rows == 0) continue;
    std::frexp(norm_of(&r_(0, j), std::min(j + 1, r_.rows), r_.ld), &exponents[j]);
  }
  return exponents;
}

void RankedFactor::set(MatrixView<const double> r, const RankRule& rule) {
  r_ = r;
  is_basic_ = rule.is_basic;
  complete_.reset();
  norm_ = frobenius(r);
  rank_ = r.rows;
  dropped_norm_ = 0;
  condition_ = scaled_condition_ = std::numeric_limits<double>::infinity();
  if (r.cols == 0) return;
  if (r.rows == 0) {
    complete_ = std::make_unique<Complete>();
    return;
  }
  const std::vector<int> exponents = column_exponents();
  if (r.rows < r.cols) {
    decompose(exponents, rule);
    return;
  }
  condition_ = estimate_singular_values(r).condition();
  const Batch<double> copy(1, r.cols, r.cols);
  const MatrixView<double> scaled = copy.view()[0];
  for (index_t i = 0; i < r.cols; ++i)
    for (index_t j = i; j < r.cols; ++j) scaled(i, j) = std::ldexp(r(i, j), -exponents[j]);
  const SingularValues values = estimate_singular_values(scaled);
  scaled_condition_ = values.condition();
  if (!(values.smallest > rank_margin * rule.tolerance)) decompose(exponents, rule);
}

void RankedFactor::decompose(const std::vector<int>& exponents, const RankRule& rule) {
  Matrix scaled = Matrix::Zero(r_.rows, r_.cols);
  for (index_t i = 0; i < r_.rows; ++i)
    for (index_t j = i; j < r_.cols; ++j) scaled(i, j) = std::ldexp(r_(i, j), -exponents[j]);
  complete_ = std::make_unique<Complete>();
  complete_->pivoted.compute(scaled);
  const Matrix& s = complete_->pivoted.matrixR();
  rank_ = 0;
  const double least = rule.tolerance * (r_.rows > 0 ? std::abs(s(0, 0)) : 0.0);
  while (rank_ < r_.rows && std::abs(s(rank_, rank_)) > least) ++rank_;
  if (rank_ == r_.cols) {
    complete_.reset();
    return;
  }
  if (r_.rows < r_.cols && rank_ > 0) {
    scaled_condition_ = std::abs(s(0, 0) / s(r_.rows - 1, r_.rows - 1));
    condition_ = scaled_condition_;
  }
  complete(exponents);
}

void RankedFactor::complete(const std::vector<int>& exponents) {
  const Matrix& s = complete_->pivoted.matrixR();
  const auto& permuted = complete_->pivoted.colsPermutation().indices();
  const index_t n = r_.cols;
  Matrix t = s.topRows(r_.rows).triangularView<Eigen::Upper>();
  for (index_t j = 0; j < n; ++j) {
    for (index_t i = 0; i < r_.rows; ++i) t(i, j) = std::ldexp(t(i, j), exponents[permuted(j)]);
  }
  dropped_norm_ = t.bottomRows(r_.rows - rank_).norm();
  complete_->is_basic = is_basic_;
  complete_->basis = Matrix::Zero(n, rank_);
  Matrix w = Matrix::Identity(n, rank_);
  if (is_basic_) {
    complete_->lower = t.topLeftCorner(rank_, rank_);
  } else if (rank_ > 0) {
    const Eigen::HouseholderQR<Matrix> qr(t.topRows(rank_).transpose());
    w = qr.householderQ() * w;
    complete_->lower =
        Matrix(qr.matrixQR().topRows(rank_).triangularView<Eigen::Upper>()).transpose();
  }
  for (index_t i = 0; i < n; ++i) complete_->basis.row(permuted(i)) = w.row(i);
}

void RankedFactor::solve(MatrixView<const double> z, MatrixView<double> x) const {
  const index_t k = r_.rows;
  if (!complete_) {
    for (index_t i = 0; i < k; ++i) std::copy_n(&z(i, 0), x.cols, &x(i, 0));
    solve_upper(r_, x);
    return;
  }
  for (index_t j = 0; j < x.cols; ++j) {
    Vector c(k);
    for (index_t i = 0; i < k; ++i) c(i) = z(i, j);
    Vector solution = Vector::Zero(r_.cols);
    if (rank_ > 0) {
      c.applyOnTheLeft(complete_->pivoted.householderQ().adjoint());
      solution = complete_->basis * complete_->solve_l(c.head(rank_));
    }
    for (index_t i = 0; i < r_.cols; ++i) x(i, j) = solution(i);
  }
}

void RankedFactor::correct(std::vector<double>& g) const {
  Eigen::Map<Vector> gradient(g.data(), r_.cols);
  if (!complete_) {
    const MatrixView<double> x{g.data(), r_.cols, 1, 1};
    solve_upper_transposed(r_, x);
    solve_upper(r_, x);
  } else if (rank_ == 0) {
    gradient.setZero();
  } else {
    const Vector inner = complete_->basis.transpose() * gradient;
    gradient = complete_->basis * complete_->solve_l(complete_->solve_l_transposed(inner));
  }
}

double RankedFactor::transposed_solution_norm(std::vector<double> g) const {
  if (complete_) return std::numeric_limits<double>::infinity();
  solve_upper_transposed(r_, {g.data(), r_.cols, 1, 1});
  return norm_of(g.data(), r_.cols);
}

double RankedFactor::least_norm_error(const double* x) const {
  if (!complete_) return 0;
  const Eigen::Map<const Vector> solution(x, r_.cols);
  const double size = solution.norm();
  if (size == 0 || rank_ == 0) return size == 0 ? 0 : std::numeric_limits<double>::infinity();
  Vector inner = complete_->basis.transpose() * solution;
  const double outside = (solution - complete_->basis * inner).norm();
  return outside / (norm_ * complete_->solve_l_transposed(inner).norm());
}

}  // namespace qrtool
