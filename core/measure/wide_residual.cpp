// SPDX-License-Identifier: Apache-2.0
// wide_residual.cpp: a square Q, and sums over blocks of columns.
#include "core/measure/wide_residual.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <complex>

#include "core/matrix/complex_arithmetic.hpp"
#include "core/measure/strips.hpp"

namespace qrtool {
namespace {

template <class S>
using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;

/// The number of columns of a block, and of terms in a plain sum. If all terms are equal, its
/// rounding errors add up.
constexpr index_t block_columns = 512, plain_terms = 32;
/// ||E|| relative to ||A|| below which the first columns are good enough: the error that it makes,
/// 2^-26.5 of it, is far below the bar of A's type.
template <class T>
constexpr double small_rest = sizeof(Real<T>) == sizeof(float) ? 1e-2 : 1e-9;

/// C -= X Y, `plain_terms` terms at a time.
template <class S, class X, class Y>
void subtract_product(Matrix<S>& c, const X& x, const Y& y) {
  for (index_t i = 0; i < x.cols(); i += plain_terms) {
    const index_t terms = std::min<index_t>(plain_terms, x.cols() - i);
    c.noalias() -= x.middleCols(i, terms) * y.middleRows(i, terms);
  }
}

/// A or R as it is stored, whose columns are scaled and widened as they are needed.
template <class T>
struct Stored {
  using S = Wide<T>;
  MatrixView<const T> from;
  strips::Scaling scaling;

  S at(index_t i, index_t j) const { return S(from(i, j)) * scaling.half * scaling.rest; }
  Matrix<S> columns(index_t first, index_t count) const {
    using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const Rows, 0, Eigen::OuterStride<>> block(from.data + first, from.rows, count,
                                                                Eigen::OuterStride<>(from.ld));
    return block.template cast<S>() * scaling.half * scaling.rest;
  }
};

/// K, with the square of the part that is E.
template <class S>
struct Sums {
  Matrix<S> k;
  double rest_squares = 0, a_squares = 0;
};

template <class T, class S = Wide<T>>
Sums<S> sums_of(const Stored<T>& a, const Stored<T>& r, const Matrix<S>& q) {
  const index_t m = a.from.rows, k = r.from.rows, all = 2 * k + m;
  Sums<S> sums{.k = Matrix<S>::Zero(all, all)};
  for (index_t j = 0; j < a.from.cols; j += block_columns) {
    const index_t columns = std::min(block_columns, a.from.cols - j);
    Matrix<S> y(all, columns), e = a.columns(j, columns);
    sums.a_squares += e.squaredNorm();
    y.topRows(k) = r.columns(j, columns);
    subtract_product<S>(e, q, y.topRows(k));
    y.middleRows(k, k).noalias() = q.adjoint() * e;
    y.bottomRows(m) = e;
    sums.rest_squares += e.squaredNorm();
    sums.k.template selfadjointView<Eigen::Lower>().rankUpdate(y);
  }
  sums.k.template triangularView<Eigen::StrictlyUpper>() = sums.k.adjoint();
  return sums;
}

/// The root of tr(N K N K), with the rows [F K_1 + K_2; K_1; K_3] of N K.
template <class S>
double norm_of(const Sums<S>& sums, const Matrix<S>& q) {
  const index_t k = q.cols();
  Matrix<S> f = -Matrix<S>::Identity(k, k);
  subtract_product<S>(f, (-q).adjoint().eval(), q);
  Matrix<S> product = sums.k;
  product.topRows(k) = f * sums.k.topRows(k) + sums.k.middleRows(k, k);
  product.middleRows(k, k) = sums.k.topRows(k);
  const double trace = real_part(S(product.cwiseProduct(product.transpose()).sum()));
  return std::isfinite(trace) ? std::sqrt(std::fmax(trace, 0.0)) : not_a_number<double>();
}

/// Returns Q of the first columns, or zeros if R is not triangular there.
template <class T, class S = Wide<T>>
Matrix<S> q_of_first(const Stored<T>& a, const Stored<T>& r) {
  const index_t k = r.from.rows;
  Matrix<S> first = r.columns(0, k), q = a.columns(0, k);
  if (!first.isUpperTriangular(0) || first.diagonal().cwiseAbs().minCoeff() == 0)
    return Matrix<S>::Zero(a.from.rows, k);
  first.template triangularView<Eigen::Upper>().template solveInPlace<Eigen::OnTheRight>(q);
  return q;
}

/// Q of the columns J that pivoting chooses: A_J T^-1 U^H for R_J = U T. The best columns so far
/// compete with those of the next block.
template <class T, class S = Wide<T>>
Matrix<S> q_of_pivots(const Stored<T>& a, const Stored<T>& r) {
  const index_t k = r.from.rows;
  Eigen::ColPivHouseholderQR<Matrix<S>> qr;
  Matrix<S> best_of_a(a.from.rows, 0), best_of_r(k, 0);
  for (index_t j = 0; j < r.from.cols; j += block_columns) {
    const index_t columns = std::min(block_columns, r.from.cols - j);
    const index_t all = best_of_r.cols() + columns, kept = std::min(k, all);
    Matrix<S> of_a(a.from.rows, all), of_r(k, all);
    of_a << best_of_a, a.columns(j, columns);
    of_r << best_of_r, r.columns(j, columns);
    qr.compute(of_r);
    best_of_a = (of_a * qr.colsPermutation()).leftCols(kept);
    best_of_r = (of_r * qr.colsPermutation()).leftCols(kept);
  }
  const index_t rank = qr.rank();
  Matrix<S> q = best_of_a.leftCols(rank), u = Matrix<S>::Identity(k, rank);
  u.applyOnTheLeft(qr.householderQ());
  qr.matrixQR()
      .topLeftCorner(rank, rank)
      .template triangularView<Eigen::Upper>()
      .template solveInPlace<Eigen::OnTheRight>(q);
  return q * u.adjoint();
}

}  // namespace

bool is_very_wide(index_t m, index_t n) { return n > 32 * m; }

std::size_t wide_errors_bytes(index_t m, bool is_complex) {
  const index_t sums = 30 * m * m, blocks = 8 * m * block_columns;
  return static_cast<std::size_t>((sums + blocks) * (is_complex ? 2 : 1)) * sizeof(double);
}

template <class T>
Errors wide_errors(MatrixView<const T> of_a, MatrixView<const T> of_r, int scale) {
  using S = Wide<T>;
  const Stored<T> a{of_a, strips::Scaling(scale)}, r{of_r, a.scaling};
  Matrix<S> q = q_of_first(a, r);
  Sums<S> sums = sums_of(a, r, q);
  if (!(sums.rest_squares <= small_rest<T> * small_rest<T> * sums.a_squares)) {
    const Matrix<S> other = q_of_pivots(a, r);
    Sums<S> of_other = sums_of(a, r, other);
    if (!(sums.rest_squares <= of_other.rest_squares)) q = other, sums = std::move(of_other);
  }
  double lower = 0;
  for (index_t i = 0; i < of_r.rows; ++i)
    for (index_t j = 0; j < i; ++j) lower += std::norm(r.at(i, j));
  Errors errors{.norm = std::sqrt(sums.a_squares), .scale = scale};
  errors.residual = strips::relative(norm_of(sums, q), sums.a_squares);
  errors.lower = strips::relative(std::sqrt(lower), errors.norm);
  errors.diagonal_ratio = strips::diagonal_ratio_of(
      std::min(of_a.rows, of_r.rows), [&](index_t i) { return std::abs(r.at(i, i)); });
  return errors;
}

#define QRTOOL_FOR(T) template Errors wide_errors(MatrixView<const T>, MatrixView<const T>, int);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
