// SPDX-License-Identifier: Apache-2.0
// truncated_qr_test.cpp: columns that are chosen by blocks, beside Eigen's one after another.
#include "core/solve/ranked/truncated_qr.hpp"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace qrtool::test::truncated_qr_test {
namespace {

using Matrix = TruncatedQr<double>::Matrix;
using Vector = TruncatedQr<double>::Vector;

Matrix gaussian(index_t m, index_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  return Matrix::NullaryExpr(m, n, [&] { return normal(random); });
}

/// Columns of which `rank` are independent, with singular values down to `smallest`.
Matrix of_rank(index_t m, index_t n, index_t rank, double smallest) {
  Matrix left = gaussian(m, rank, 3);
  for (index_t j = 0; j < rank; ++j)
    left.col(j) *= std::pow(smallest, static_cast<double>(j) / static_cast<double>(rank));
  return left * gaussian(rank, n, 4) / std::sqrt(static_cast<double>(m * n));
}

index_t rank_by_eigen(const Matrix& s, double tolerance) {
  Eigen::ColPivHouseholderQR<Matrix> qr(s);
  index_t rank = 0;
  const auto diagonal = qr.matrixR().diagonal().cwiseAbs();
  while (rank < diagonal.size() && diagonal(rank) > tolerance * diagonal(0)) ++rank;
  return rank;
}

void expect_factor(const Matrix& s, const TruncatedQr<double>& qr, double tolerance) {
  const Matrix r = qr.r();
  const index_t rank = qr.rank();
  // Q'S P = R
  double worst = 0;
  for (index_t j = 0; j < s.cols(); ++j) {
    Vector column = s.col(qr.permutation()[static_cast<std::size_t>(j)]);
    qr.apply_adjoint(column);
    worst = std::max(worst, (column - r.col(j)).norm());
  }
  EXPECT_LE(worst, 1e-13 * s.norm());
  EXPECT_EQ(r.leftCols(rank).triangularView<Eigen::StrictlyLower>().toDenseMatrix().norm(), 0);
  const double longest = s.colwise().norm().maxCoeff();
  const Matrix left = r.bottomRightCorner(s.rows() - rank, s.cols() - rank);
  if (left.size() > 0) {
    EXPECT_LE(left.colwise().norm().maxCoeff(), tolerance * longest);
  }
  std::vector<int> places(qr.permutation().begin(), qr.permutation().end());
  std::sort(places.begin(), places.end());
  for (int j = 0; j < s.cols(); ++j) EXPECT_EQ(places[static_cast<std::size_t>(j)], j);
}

TEST(TruncatedQr, BlocksFindTheRankThatSingleColumnsFind) {
  const double tolerance = 1e-12;
  struct Case {
    index_t m, n, rank;
    double smallest;
  };
  // The cases have few columns; a rank that is full, that ends in a block, between two, and in the
  // columns that are left for the end; and wide matrices.
  for (const Case& c : {Case{100, 100, 99, 1}, Case{300, 300, 300, 1e-3}, Case{400, 400, 399, 1e-6},
                        Case{400, 400, 192, 1e-3}, Case{400, 400, 70, 1e-8}, Case{400, 400, 5, 1},
                        Case{300, 420, 300, 1e-3}, Case{300, 420, 111, 1e-3}}) {
    SCOPED_TRACE(testing::Message() << c.m << "x" << c.n << " of rank " << c.rank);
    const Matrix s = of_rank(c.m, c.n, c.rank, c.smallest);
    EXPECT_EQ(rank_by_eigen(s, tolerance), c.rank);
    for (const bool is_complete : {false, true}) {
      const TruncatedQr<double> qr(s, tolerance, is_complete);
      EXPECT_EQ(qr.rank(), c.rank);
      expect_factor(s, qr, tolerance);
    }
  }
}

/// Singular values lie around the tolerance: nothing above it stays behind, and what is taken is
/// well conditioned enough that U^-1 is of use.
TEST(TruncatedQr, DecayAcrossTheToleranceLeavesNothingLarger) {
  const double tolerance = 1e-6;
  const Matrix s = of_rank(500, 500, 500, 1e-12);
  const TruncatedQr<double> qr(s, tolerance, false);
  expect_factor(s, qr, tolerance);
  EXPECT_NEAR(static_cast<double>(qr.rank()), static_cast<double>(rank_by_eigen(s, tolerance)), 25);
  const Vector diagonal = qr.r().diagonal().head(qr.rank()).cwiseAbs();
  EXPECT_GT(diagonal.minCoeff(), tolerance * s.colwise().norm().maxCoeff());
}

TEST(TruncatedQr, ZerosHaveRankZero) {
  const TruncatedQr<double> qr(Matrix::Zero(300, 300), 1e-12, true);
  EXPECT_EQ(qr.rank(), 0);
  EXPECT_EQ(qr.r().norm(), 0);
}

}  // namespace
}  // namespace qrtool::test::truncated_qr_test
