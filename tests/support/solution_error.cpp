// SPDX-License-Identifier: Apache-2.0
// solution_error.cpp: references by Eigen's singular value decompositions.
#include "tests/support/solution_error.hpp"

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
