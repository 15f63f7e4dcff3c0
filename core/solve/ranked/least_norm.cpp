// SPDX-License-Identifier: Apache-2.0
// least_norm.cpp: exchanges columns, and solves for t.
#include "core/solve/ranked/least_norm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/solve/ranked/rows.hpp"

namespace qrtool {
namespace {

/// Smaller entries of N are no pivots: they would make large ones of the others.
constexpr double least_pivot = 0x1p-30;
/// The least rounding error of a column of N, relative to its norm.
constexpr double least_error = 4 * std::numeric_limits<double>::epsilon();
/// The largest difference between the exponents of two columns at which its square is still far
/// from the ends of float64.
constexpr int most_distance = 400;
constexpr int most_exchange_exponent = 1;  // of |n_ij| D_j / D_i

template <class S>
int exponent_of(S x) {
  int exponent = 0;
  std::frexp(std::abs(x), &exponent);
  return exponent;
}

/// x 2^exponent, also far beyond the exponents of float64.
template <class S>
S moved(S x, int exponent) {
  constexpr int most = 1 << 14;
  return scaled_by(x, std::clamp(exponent, -most, most));
}

/// to += a v
template <class Matrix, class Vector>
void add_product(Vector& to, const Matrix& a, const Vector& v) {
  for (index_t j = 0; j < a.cols(); ++j) subtract(to.data(), -v(j), a.col(j).data(), a.rows());
}

}  // namespace

template <class S>
LeastNorm<S>::LeastNorm(Matrix n, double error, std::span<const int> sizes)
    : rank_(n.rows()),
      others_(n.cols()),
      n_(std::move(n)),
      sizes_(sizes.begin(), sizes.end()),
      places_(sizes.size()) {
  std::iota(places_.begin(), places_.end(), index_t{0});
  if (rank_ == 0 || others_ == 0) return;
  clear_rounding_errors(error);
  for (index_t i = 0; i < 16 * (rank_ + others_) && exchange_columns(); ++i) continue;
  factor();
}

/// Clears entries that are only rounding errors beside their column, because they would count where
/// D is large. For columns that are far apart the error of all of N decides, because the squares of
/// D leave the range there.
template <class S>
void LeastNorm<S>::clear_rounding_errors(double error) {
  for (index_t j = 0; j < others_; ++j) {
    S* const column = n_.col(j).data();
    double squares = 0;
    for (index_t i = 0; i < rank_; ++i) squares += square_of(column[i]);
    const double size = std::sqrt(squares);
    for (index_t i = 0; i < rank_; ++i) {
      const bool is_far = sizes_[rank_ + j] - sizes_[i] > most_distance;
      if (std::abs(column[i]) <= (is_far ? error : least_error) * size) column[i] = S(0);
    }
  }
}

/// Exchanges the two columns that need it most, if any do.
template <class S>
bool LeastNorm<S>::exchange_columns() {
  int most = most_exchange_exponent;
  index_t row = 0, column = -1;
  for (index_t j = 0; j < others_; ++j)
    for (index_t i = 0; i < rank_; ++i) {
      if (!(std::abs(n_(i, j)) >= least_pivot)) continue;
      const int exponent = exponent_of(n_(i, j)) + sizes_[rank_ + j] - sizes_[i];
      if (exponent <= most) continue;
      most = exponent;
      row = i;
      column = j;
    }
  if (column < 0) return false;
  exchange(row, column);
  return true;
}

/// b_i = (c_j - sum over k != i of b_k n_kj) / n_ij
template <class S>
void LeastNorm<S>::exchange(index_t i, index_t j) {
  const Vector before = n_.col(j);
  for (index_t l = 0; l < others_; ++l) {
    S* const column = n_.col(l).data();
    const S pivot = l == j ? S(1) / before(i) : column[i] / before(i);
    if (l == j) std::fill_n(column, rank_, S(0));
    subtract(column, pivot, before.data(), rank_);
    column[i] = pivot;
  }
  exchanges_.push_back({i, before});
  std::swap(places_[i], places_[rank_ + j]);
  std::swap(sizes_[i], sizes_[rank_ + j]);
}

template <class S>
void LeastNorm<S>::factor() {
  m_ = Matrix(others_, rank_);
  for (index_t i = 0; i < rank_; ++i)
    for (index_t j = 0; j < others_; ++j)
      m_(j, i) = conjugate(moved(n_(i, j), 2 * (sizes_[rank_ + j] - sizes_[i])));
  Matrix product = Matrix::Identity(others_, others_);
  for (index_t j = 0; j < others_; ++j) {
    Vector column = product.col(j);
    add_product(column, m_, Vector(n_.col(j)));
    product.col(j) = column;
  }
  qr_.emplace(std::move(product), 0, /*is_complete=*/true);
}

/// Returns the solution of (I + M N) x = v.
template <class S>
auto LeastNorm<S>::solved(Vector v) const -> Vector {
  const Matrix& r = qr_->triangle();
  const index_t steps = qr_->rank();
  qr_->apply_adjoint(v);
  Vector x = Vector::Zero(v.size());
  for (index_t i = steps - 1; i >= 0; --i) {
    v(i) /= r(i, i);
    subtract(v.data(), v(i), r.col(i).data(), i);
    x(qr_->permutation()[i]) = v(i);
  }
  return x;
}

template <class S>
std::vector<S> LeastNorm<S>::solution(const std::vector<S>& y) const {
  std::vector<S> found = y;
  found.resize(places_.size(), S(0));
  if (!qr_) return found;
  Vector s(rank_);
  std::copy(y.begin(), y.end(), s.data());
  for (const Exchange& each : exchanges_) {
    const S pivot = s(each.row) / each.column(each.row);
    subtract(s.data(), pivot, each.column.data(), rank_);
    s(each.row) = pivot;
  }
  Vector t = Vector::Zero(others_);
  add_product(t, m_, s);
  add_product(s, n_, Vector(-solved(t)));
  t.setZero();
  add_product(t, m_, s);
  for (index_t i = 0; i < rank_; ++i) found[places_[i]] = s(i);
  for (index_t j = 0; j < others_; ++j) found[places_[rank_ + j]] = t(j);
  return found;
}

template class LeastNorm<double>;
template class LeastNorm<std::complex<double>>;

}  // namespace qrtool
