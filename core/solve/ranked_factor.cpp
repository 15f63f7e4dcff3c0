// SPDX-License-Identifier: Apache-2.0
// ranked_factor.cpp: decides the rank on pivoted R with scaled columns, and solves with it.
#include "core/solve/ranked_factor.hpp"

#include <Eigen/Householder>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/solve/truncated_qr.hpp"

namespace qrtool {
namespace {

template <class S>
double frobenius(MatrixView<const S> r) {
  double sum = 0;
  for (index_t i = 0; i < r.rows; ++i) {
    for (index_t j = i; j < r.cols; ++j) sum += square_of(r(i, j));
  }
  return std::sqrt(sum);
}

/// Returns the e with the largest size of an entry of v in [2^(e - 1), 2^e), and 0 for a vector of
/// zeros.
template <class Vector>
int exponent_of(const Vector& v) {
  int exponent = 0;
  std::frexp(v.template lpNorm<Eigen::Infinity>(), &exponent);
  return exponent;
}

/// Columns of norm 1 whose condition looks larger than this are dependent: R holds rounding errors
/// of rounding errors there, whose size says nothing.
constexpr double most_condition = 0x1p64;
double infinite_beyond(double scaled_condition, double condition) {
  return scaled_condition <= most_condition ? condition : std::numeric_limits<double>::infinity();
}

/// v 2^exponent.
template <class S>
Eigen::Matrix<S, Eigen::Dynamic, 1> scaled(
    const Eigen::Ref<const Eigen::Matrix<S, Eigen::Dynamic, 1>>& v, int exponent) {
  return v.unaryExpr([exponent](S x) { return scaled_by(x, exponent); });
}

}  // namespace

/// The complete orthogonal decomposition S P = Q T Z, or for basic solutions its first half, S P =
/// Q T.
template <class S>
struct RankedFactor<S>::Complete {
  using Matrix = typename TruncatedQr<S>::Matrix;
  using Vector = typename TruncatedQr<S>::Vector;

  TruncatedQr<S> pivoted;  // of R D^-1
  Matrix u;                // U: T Z = [U 0]; for basic solutions the leading block of T
  /// The reflectors H of Z^H, one for each row of T: their entries after the first, which belong to
  /// the columns past the rank. No rows for basic solutions.
  Matrix tails;
  Vector coefficients;

  /// Turns T = [u right] into [U 0]: one row after another, from the last one (LAPACK tzrzf).
  void turn(Matrix right) {
    const index_t rank = u.rows();
    tails = Matrix::Zero(right.cols(), rank);
    coefficients = Vector::Zero(rank);
    Vector row(1 + right.cols()), tail(right.cols());
    for (index_t i = rank; i-- > 0;) {
      row << conjugate(u(i, i)), right.row(i).adjoint();
      // Columns of very different size leave rows whose squares are no numbers of float64.
      const int exponent = exponent_of(row);
      row = scaled<S>(row, -exponent);
      double beta = 0;
      row.makeHouseholder(tail, coefficients(i), beta);
      tails.col(i) = tail;
      u(i, i) = std::ldexp(beta, exponent);
      const Vector sums = conjugate(coefficients(i)) * (u.col(i).head(i) + right.topRows(i) * tail);
      u.col(i).head(i) -= sums;
      right.topRows(i).noalias() -= sums * tail.adjoint();
    }
  }
  /// P Z [y; 0].
  Vector expand(const Vector& y) const {
    const index_t rank = y.size(), n = pivoted.permutation().size();
    Vector turned = Vector::Zero(n);
    turned.head(rank) = y;
    for (index_t i = 0; i < rank && tails.rows() > 0; ++i)
      reflect(turned, i, conjugate(coefficients(i)));
    Vector x(n);
    for (index_t i = 0; i < n; ++i) x(pivoted.permutation()(i)) = turned(i);
    return x;
  }
  /// (Z^H P'x)[:rank].
  Vector project(const Vector& x) const {
    const index_t rank = u.rows(), n = x.size();
    Vector turned(n);
    for (index_t i = 0; i < n; ++i) turned(i) = x(pivoted.permutation()(i));
    for (index_t i = rank; i-- > 0 && tails.rows() > 0;) reflect(turned, i, coefficients(i));
    return turned.head(rank);
  }
  Vector solve_u(const Vector& c) const {
    return u.template triangularView<Eigen::Upper>().solve(c);
  }
  Vector solve_u_adjoint(const Vector& c) const {
    return u.template triangularView<Eigen::Upper>().adjoint().solve(c);
  }

 private:
  /// v := H v, or H^H v with the conjugate of the coefficient.
  void reflect(Vector& v, index_t i, S coefficient) const {
    auto rest = v.tail(tails.rows());
    const S sum = coefficient * (v(i) + tails.col(i).dot(rest));
    v(i) -= sum;
    rest -= sum * tails.col(i);
  }
};

template <class S>
RankedFactor<S>::RankedFactor() = default;
template <class S>
RankedFactor<S>::~RankedFactor() = default;
template <class S>
RankedFactor<S>::RankedFactor(RankedFactor&&) noexcept = default;

double default_rank_tolerance(ElementType type, index_t n) {
  const double u = real_of(type) == ElementType::float32 ? 0x1p-23 : 0x1p-52;
  return u * std::max(16.0, 2 * static_cast<double>(n));
}

/// Returns, for each column j, the e_j with its norm in [2^(e_j - 1), 2^e_j).
template <class S>
std::vector<int> RankedFactor<S>::column_exponents() const {
  std::vector<int> exponents(static_cast<std::size_t>(r_.cols));
  for (index_t j = 0; j < r_.cols; ++j) {
    if (r_.rows == 0) continue;
    std::frexp(norm_of(&r_(0, j), std::min(j + 1, r_.rows), r_.ld), &exponents[j]);
  }
  return exponents;
}

template <class S>
void RankedFactor<S>::set(MatrixView<const S> r, const RankRule& rule) {
  r_ = r;
  is_basic_ = rule.is_basic;
  complete_.reset();
  norm_ = frobenius(r);
  rank_ = r.rows;
  dropped_norm_ = 0;
  condition_ = scaled_condition_ = std::numeric_limits<double>::infinity();
  if (r.cols == 0) return;
  if (r.rows == 0) {
    complete_ = std::make_unique<Complete>(Complete{TruncatedQr<S>({}, 0, false), {}, {}, {}});
    return;
  }
  const std::vector<int> exponents = column_exponents();
  if (r.rows < r.cols) {
    decompose(exponents, rule);
    return;
  }
  condition_ = estimate_singular_values(r).condition();
  const Batch<S> copy(1, r.cols, r.cols);
  const MatrixView<S> scaled = copy.view()[0];
  for (index_t i = 0; i < r.cols; ++i)
    for (index_t j = i; j < r.cols; ++j) scaled(i, j) = scaled_by(r(i, j), -exponents[j]);
  const SingularValues values = estimate_singular_values<S>(scaled);
  condition_ = infinite_beyond(values.condition(), condition_);
  scaled_condition_ = infinite_beyond(values.condition(), values.condition());
  if (!(values.smallest > rank_margin * rule.tolerance)) decompose(exponents, rule);
}

template <class S>
void RankedFactor<S>::decompose(const std::vector<int>& exponents, const RankRule& rule) {
  using Matrix = typename TruncatedQr<S>::Matrix;
  Matrix scaled = Matrix::Zero(r_.rows, r_.cols);
  for (index_t i = 0; i < r_.rows; ++i)
    for (index_t j = i; j < r_.cols; ++j) scaled(i, j) = scaled_by(r_(i, j), -exponents[j]);
  // The condition of a wide matrix needs the last diagonal entry.
  const bool is_wide = r_.rows < r_.cols;
  complete_ = std::make_unique<Complete>(
      Complete{TruncatedQr<S>(std::move(scaled), rule.tolerance, is_wide), {}, {}, {}});
  rank_ = complete_->pivoted.rank();
  if (rank_ == r_.cols) {
    complete_.reset();
    return;
  }
  Matrix t = complete_->pivoted.r();
  if (is_wide && rank_ > 0) {
    const double condition = std::abs(t(0, 0) / t(r_.rows - 1, r_.rows - 1));
    condition_ = scaled_condition_ = infinite_beyond(condition, condition);
  }
  const auto& permuted = complete_->pivoted.permutation();
  for (index_t j = 0; j < r_.cols; ++j)
    for (index_t i = 0; i < r_.rows; ++i) t(i, j) = scaled_by(t(i, j), exponents[permuted(j)]);
  dropped_norm_ = t.bottomRightCorner(r_.rows - rank_, r_.cols - rank_).norm();
  complete_->u = t.topLeftCorner(rank_, rank_);
  if (!is_basic_) complete_->turn(t.topRightCorner(rank_, r_.cols - rank_));
}

template <class S>
void RankedFactor<S>::solve(MatrixView<const S> z, MatrixView<S> x) const {
  using Vector = typename TruncatedQr<S>::Vector;
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
      complete_->pivoted.apply_adjoint(c);
      solution = complete_->expand(complete_->solve_u(c.head(rank_)));
    }
    for (index_t i = 0; i < r_.cols; ++i) x(i, j) = solution(i);
  }
}

template <class S>
void RankedFactor<S>::correct(std::vector<S>& g) const {
  using Vector = typename TruncatedQr<S>::Vector;
  Eigen::Map<Vector> gradient(g.data(), r_.cols);
  if (!complete_) {
    const MatrixView<S> x{g.data(), r_.cols, 1, 1};
    solve_upper_adjoint(r_, x);
    solve_upper(r_, x);
  } else if (rank_ == 0) {
    gradient.setZero();
  } else {
    const Vector inner = complete_->solve_u_adjoint(complete_->project(gradient));
    gradient = complete_->expand(complete_->solve_u(inner));
  }
}

template <class S>
double RankedFactor<S>::adjoint_solution_norm(std::vector<S> g) const {
  if (complete_) return std::numeric_limits<double>::infinity();
  solve_upper_adjoint(r_, MatrixView<S>{g.data(), r_.cols, 1, 1});
  return norm_of(g.data(), r_.cols);
}

template <class S>
double RankedFactor<S>::least_norm_error(const S* x) const {
  using Vector = typename TruncatedQr<S>::Vector;
  if (!complete_) return 0;
  const Eigen::Map<const Vector> given(x, r_.cols);
  const double largest = given.template lpNorm<Eigen::Infinity>();
  if (largest == 0 || rank_ == 0) return largest == 0 ? 0 : std::numeric_limits<double>::infinity();
  // The error does not depend on the scale of x, whose squares may overflow.
  const Vector solution = scaled<S>(given, -exponent_of(given));
  const Vector inner = complete_->project(solution);
  const Vector outside = solution - complete_->expand(inner), w = complete_->solve_u_adjoint(inner);
  return norm_of(outside.data(), outside.size()) / (norm_ * norm_of(w.data(), w.size()));
}

template class RankedFactor<double>;
template class RankedFactor<std::complex<double>>;

}  // namespace qrtool
