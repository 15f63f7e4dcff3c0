// SPDX-License-Identifier: Apache-2.0
// backward_error.cpp: A = Q0 R0 by reflectors in float64 turns ||A - QR|| into ||R0 - W R|| with W
// orthogonal. The best W is U V' where R0 R' = U S V'. Source: Golub, Van Loan, "Matrix
// Computations", 6.4.1, the orthogonal Procrustes problem. Its rounding errors grow with the
// condition of A. The orthogonal polar factor of R0 R^-1, which column scaling does not change, is
// computed accurately where A is well conditioned up to the scaling of its columns. Both bound the
// least error from above.
#include "tests/support/backward_error.hpp"

#include <Eigen/SVD>
#include <algorithm>
#include <climits>
#include <cmath>
#include <utility>

namespace qrtool::test {
namespace {

/// BDCSVD of Eigen 3.4 is faster, but reads beyond its arrays for some products of graded factors.
/// Square matrices need no QR factorization first, but this is the class of solution_error.cpp, so
/// that it is compiled once.
using Svd = Eigen::JacobiSVD<Eigen::MatrixXd>;

/// The error of R, both in float64: one body, because Eigen takes long to compile.
double error_of(Eigen::MatrixXd a, Eigen::MatrixXd r, bool by_column) {
  const Eigen::Index n = a.cols();
  // Columns are brought near 1 by powers of two, so that no square leaves the range; `weights` undo
  // that, up to one power for all columns.
  Eigen::VectorXi exponents(n);
  for (Eigen::Index j = 0; j < n; ++j) {
    const double most = a.col(j).cwiseAbs().maxCoeff();
    exponents(j) = most > 0 && std::isfinite(most) ? std::ilogb(most) : INT_MIN;
  }
  const int largest = exponents.maxCoeff();
  Eigen::VectorXd weights = Eigen::VectorXd::Ones(n);
  for (Eigen::Index j = 0; j < n; ++j) {
    if (exponents(j) == INT_MIN) continue;
    const auto near_one = [&](double x) { return std::ldexp(x, -exponents(j)); };
    a.col(j) = a.col(j).unaryExpr(near_one);
    r.col(j) = r.col(j).unaryExpr(near_one);
    weights(j) = by_column ? 1 / a.col(j).norm() : std::ldexp(1.0, exponents(j) - largest);
  }
  const auto all = weights.asDiagonal();
  const double norm = (a * all).norm();
  if (norm == 0) return r.norm();
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(a);
  const Eigen::MatrixXd own_r = qr.matrixQR().topRows(n).triangularView<Eigen::Upper>();
  const Eigen::MatrixXd whole = own_r * all, whole_r = r * all;
  const Svd svd(whole * whole_r.transpose(), Eigen::ComputeFullU | Eigen::ComputeFullV);
  const double error =
      (whole - svd.matrixU() * (svd.matrixV().transpose() * whole_r)).norm() / norm;
  const Eigen::MatrixXd ratio = r.triangularView<Eigen::Upper>().solve<Eigen::OnTheRight>(own_r);
  if (!ratio.allFinite()) return error;
  const Svd polar(ratio, Eigen::ComputeFullU | Eigen::ComputeFullV);
  const Eigen::MatrixXd w = polar.matrixU() * polar.matrixV().transpose();
  return std::min(error, (whole - w * whole_r).norm() / norm);
}

}  // namespace

template <class T>
double r_backward_error(MatrixView<const T> a, MatrixView<const T> r, bool by_column) {
  const index_t n = a.cols;
  Eigen::MatrixXd wide_a(a.rows, n), wide_r = Eigen::MatrixXd::Zero(n, n);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < n; ++j) wide_a(i, j) = static_cast<double>(a(i, j));
  for (index_t i = 0; i < n; ++i)
    for (index_t j = i; j < n; ++j) wide_r(i, j) = static_cast<double>(r(i, j));
  return error_of(std::move(wide_a), std::move(wide_r), by_column);
}

template double r_backward_error(MatrixView<const float>, MatrixView<const float>, bool);
template double r_backward_error(MatrixView<const double>, MatrixView<const double>, bool);

}  // namespace qrtool::test
