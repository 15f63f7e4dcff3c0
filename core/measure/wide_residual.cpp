// SPDX-License-Identifier: Apache-2.0
// wide_residual.cpp: a square Q, and sums over blocks of columns.
#include "core/measure/wide_residual.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>

#include "core/matrix/complex_arithmetic.hpp"

namespace qrtool {
namespace {

template <class S>
using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
template <class S>
using Stored = Eigen::Map<const Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                          0, Eigen::OuterStride<>>;

/// The number of columns of a block, and of terms in a plain sum. If all terms are equal, its
/// rounding errors add up.
constexpr index_t block_columns = 512, plain_terms = 32;
/// ||E|| relative to ||A|| below which the first columns are good enough.
constexpr double small_rest = 1e-9;

/// C -= X Y, `plain_terms` terms at a time.
template <class S, class X, class Y>
void subtract_product(Matrix<S>& c, const X& x, const Y& y) {
  for (index_t i = 0; i < x.cols(); i += plain_terms) {
    const index_t terms = std::min<index_t>(plain_terms, x.cols() - i);
    c.noalias() -= x.middleCols(i, terms) * y.middleRows(i, terms);
  }
}

/// K, with the square of the part that is E.
template <class S>
struct Sums {
  Matrix<S> k;
  double rest_squares = 0, a_squares = 0;

  bool is_good() const { return rest_squares <= small_rest * small_rest * a_squares; }
};

template <class S>
Sums<S> sums_of(const Stored<S>& a, const Stored<S>& r, const Matrix<S>& q) {
  const index_t m = a.rows(), k = r.rows(), all = 2 * k + m;
  Sums<S> sums{.k = Matrix<S>::Zero(all, all)};
  for (index_t j = 0; j < a.cols(); j += block_columns) {
    const index_t columns = std::min(block_columns, a.cols() - j);
    Matrix<S> y(all, columns), e = a.middleCols(j, columns);
    sums.a_squares += e.squaredNorm();
    y.topRows(k) = r.middleCols(j, columns);
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
  const S trace = product.cwiseProduct(product.transpose()).sum();
  return std::sqrt(std::fmax(real_part(trace), 0.0));
}

/// Returns Q of the first columns, or nothing if R is not triangular there.
template <class S>
std::optional<Matrix<S>> q_of_first(const Stored<S>& a, const Stored<S>& r) {
  const index_t k = r.rows();
  Matrix<S> first = r.leftCols(k), q = a.leftCols(k);
  if (!first.isUpperTriangular(0) || first.diagonal().cwiseAbs().minCoeff() == 0) return {};
  first.template triangularView<Eigen::Upper>().template solveInPlace<Eigen::OnTheRight>(q);
  return q;
}

/// Q of the columns J that pivoting chooses: A_J T^-1 U^H for R_J = U T.
template <class S>
Matrix<S> q_of_pivots(const Stored<S>& a, const Stored<S>& r) {
  const Eigen::ColPivHouseholderQR<Matrix<S>> qr(r);
  const index_t rank = qr.rank();
  Matrix<S> chosen(a.rows(), rank), u = Matrix<S>::Identity(r.rows(), rank);
  for (index_t j = 0; j < rank; ++j) chosen.col(j) = a.col(qr.colsPermutation().indices()(j));
  u.applyOnTheLeft(qr.householderQ());
  qr.matrixQR()
      .topLeftCorner(rank, rank)
      .template triangularView<Eigen::Upper>()
      .template solveInPlace<Eigen::OnTheRight>(chosen);
  return chosen * u.adjoint();
}

}  // namespace

bool is_very_wide(index_t m, index_t n) { return n > 32 * m; }

std::size_t wide_residual_bytes(index_t m, index_t n, bool is_complex) {
  const index_t pivoting = m * n, sums = 18 * m * m, blocks = 8 * m * block_columns;
  return static_cast<std::size_t>((pivoting + sums + blocks) * (is_complex ? 2 : 1)) *
         sizeof(double);
}

template <class S>
double wide_residual(MatrixView<const S> a, MatrixView<const S> r) {
  if (a.rows == 0 || a.cols == 0) return 0;
  const Stored<S> from(a.data, a.rows, a.cols, Eigen::OuterStride<>(a.ld));
  const Stored<S> triangle(r.data, r.rows, r.cols, Eigen::OuterStride<>(r.ld));
  if (!from.allFinite() || !triangle.allFinite()) return not_a_number<double>();
  std::optional<Matrix<S>> q = q_of_first(from, triangle);
  std::optional<Sums<S>> sums;
  if (q) sums = sums_of(from, triangle, *q);
  if (!sums || !sums->is_good()) {
    const Matrix<S> other = q_of_pivots(from, triangle);
    Sums<S> of_other = sums_of(from, triangle, other);
    if (!sums || !(sums->rest_squares <= of_other.rest_squares)) {
      q = other;
      sums = std::move(of_other);
    }
  }
  return norm_of(*sums, *q);
}

template double wide_residual(MatrixView<const double>, MatrixView<const double>);
template double wide_residual(MatrixView<const std::complex<double>>,
                              MatrixView<const std::complex<double>>);

}  // namespace qrtool
