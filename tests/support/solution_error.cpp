// SPDX-License-Identifier: Apache-2.0
// solution_error.cpp: references by Eigen's singular value decompositions.
#include "tests/support/solution_error.hpp"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

namespace qrtool::test {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

Matrix copy_of(MatrixView<const double> a) {
  Matrix out(a.rows, a.cols);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) out(i, j) = a(i, j);
  return out;
}

}  // namespace

double exact_backward_error(MatrixView<const double> a, const double* b, const double* x) {
  const Matrix matrix = copy_of(a);
  const Eigen::Map<const Vector> right(b, a.rows), solution(x, a.cols);
  const Vector r = right - matrix * solution;
  if (r.norm() == 0) return 0;
  const double norm = matrix.norm();
  const double e = r.norm() / std::hypot(norm * solution.norm(), right.norm());
  Matrix both(a.rows, a.cols + a.rows);
  both.leftCols(a.cols) = matrix / norm;
  both.rightCols(a.rows) =
      e * (Matrix::Identity(a.rows, a.rows) - r * r.transpose() / r.squaredNorm());
  const Eigen::JacobiSVD<Matrix> svd(both);
  return std::min(e, svd.singularValues()(a.rows - 1));
}

namespace {

using Long = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;
using LongVector = Eigen::Matrix<long double, Eigen::Dynamic, 1>;

/// For v = D^-1 x, the part of v outside of the row space of A's first `rank` pivoted columns.
double least_norm_error(const Long& a, const LongVector& v, index_t rank) {
  const Eigen::ColPivHouseholderQR<Long> qr(a);
  const index_t others = a.cols() - rank;
  if (others == 0 || v.norm() == 0) return 0;
  const Long r = qr.matrixR().topRows(rank).template triangularView<Eigen::Upper>();
  const auto first = r.leftCols(rank).template triangularView<Eigen::Upper>();
  const LongVector ordered = qr.colsPermutation().transpose() * v;
  // [N; -I] spans the null space of R's first rows.
  Long null(a.cols(), others);
  null << first.solve(r.rightCols(others)), -Long::Identity(others, others);
  const Eigen::HouseholderQR<Long> basis(null);
  const Long q = basis.householderQ() * Long::Identity(a.cols(), others);
  const LongVector inside = ordered - q * (q.transpose() * ordered);
  const LongVector w = first.transpose().solve(LongVector(inside.head(rank)));
  return static_cast<double>((q.transpose() * ordered).norm() / (a.norm() * w.norm()));
}

}  // namespace

ScaledErrors scaled_errors(MatrixView<const double> a, const double* b, const double* x,
                           index_t rank) {
  const index_t m = a.rows, n = a.cols;
  Long scaled(m, n);
  LongVector right(m), of_x(n), over(n);
  for (index_t i = 0; i < m; ++i) {
    right(i) = b[i];
    for (index_t j = 0; j < n; ++j) scaled(i, j) = a(i, j);
  }
  for (index_t j = 0; j < n; ++j) {
    int exponent = 0;
    std::frexp(scaled.col(j).norm(), &exponent);
    scaled.col(j) *= std::ldexp(1.0L, -exponent);
    of_x(j) = std::ldexp(static_cast<long double>(x[j]), exponent);
    over(j) = std::ldexp(static_cast<long double>(x[j]), -exponent);
  }
  ScaledErrors errors{.backward = 0, .least_norm = least_norm_error(scaled, over, rank)};
  const LongVector r = right - scaled * of_x, g = scaled.transpose() * r;
  const long double norm = scaled.norm();
  if (r.norm() == 0 || g.norm() == 0) return errors;
  const long double e = r.norm() / std::hypot(norm * of_x.norm(), right.norm());
  Long stacked(m + n, n);
  stacked << scaled / norm, e * Long::Identity(n, n);
  const Eigen::HouseholderQR<Long> qr(stacked);
  const Long k = qr.matrixQR().topRows(n);
  const LongVector y =
      k.template triangularView<Eigen::Upper>().transpose().solve(LongVector(g / norm));
  errors.backward = static_cast<double>(e / r.norm() * y.norm());
  return errors;
}

Reference solve_by_svd(MatrixView<const double> a, const double* b, double tolerance) {
  const Matrix matrix = copy_of(a);
  Vector scales(a.cols);
  for (index_t j = 0; j < a.cols; ++j) {
    int exponent = 0;
    std::frexp(matrix.col(j).norm(), &exponent);
    scales(j) = std::ldexp(1.0, -exponent);
  }
  const Eigen::JacobiSVD<Matrix> scaled(matrix * scales.asDiagonal(),
                                        Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Vector& values = scaled.singularValues();
  Reference out;
  for (index_t i = 0; i < values.size(); ++i) out.rank += values(i) > tolerance * values(0);
  if (out.rank > 0) out.last_ratio = values(out.rank - 1) / values(0);
  if (out.rank > 0) out.condition = 1 / out.last_ratio;
  if (out.rank < values.size() && values(0) > 0) out.next_ratio = values(out.rank) / values(0);
  // The least norm is that of x itself, so that the part of A that is left is decomposed again.
  const Matrix left = scaled.matrixU().leftCols(out.rank) * values.head(out.rank).asDiagonal() *
                      scaled.matrixV().leftCols(out.rank).transpose() *
                      scales.cwiseInverse().asDiagonal();
  Vector x = Vector::Zero(a.cols);
  if (out.rank > 0) {
    const Eigen::JacobiSVD<Matrix> svd(left, Eigen::ComputeThinU | Eigen::ComputeThinV);
    const Vector c = svd.matrixU().transpose() * Eigen::Map<const Vector>(b, a.rows);
    for (index_t i = 0; i < out.rank; ++i)
      x += c(i) / svd.singularValues()(i) * svd.matrixV().col(i);
  }
  out.x.assign(x.data(), x.data() + x.size());
  return out;
}

}  // namespace qrtool::test
