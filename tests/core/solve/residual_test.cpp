// SPDX-License-Identifier: Apache-2.0
// residual_test.cpp: sums over rows against sums in long double.
#include "core/solve/residual.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace qrtool::residual_test {
namespace {

/// A (m x n), B (m x p) and X (n x p) of normal numbers.
struct Data {
  Data(index_t m, index_t n, index_t p) : a(1, m, n), b(1, m, p), x(1, n, p) {
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    for (const MatrixView<double>& view : {a.view()[0], b.view()[0], x.view()[0]})
      for (index_t i = 0; i < view.rows * view.cols; ++i) view.data[i] = normal(random);
  }
  long double residual(index_t i, index_t c) const {
    long double r = b.view()[0](i, c);
    for (index_t j = 0; j < a.view().cols; ++j)
      r -= static_cast<long double>(a.view()[0](i, j)) * x.view()[0](j, c);
    return r;
  }
  Batch<double> a, b, x;
};

TEST(Residual, HasTheSumsOfItsRows) {
  for (const index_t p : {1, 2, 33, 70}) {
    for (const index_t m : {1, 255, 600}) {
      const index_t n = 5, data_rows = m - m / 3;
      const Data d(m, n, p);
      ResidualSums<double> sums(n, p);
      add_residual<double>(d.a.view()[0], d.b.view()[0], d.x.view()[0], data_rows, sums);
      for (index_t c = 0; c < p; ++c) {
        long double rr = 0, data = 0, bb = 0, g[5] = {};
        for (index_t i = 0; i < m; ++i) {
          const long double r = d.residual(i, c), b = d.b.view()[0](i, c);
          rr += r * r;
          data += i < data_rows ? r * r : 0;
          bb += b * b;
          for (index_t j = 0; j < n; ++j) g[j] += d.a.view()[0](i, j) * r;
        }
        EXPECT_NEAR(sums.r_squares[c], static_cast<double>(rr), 1e-13 * static_cast<double>(rr));
        EXPECT_NEAR(sums.data_squares[c], static_cast<double>(data),
                    1e-13 * static_cast<double>(rr));
        EXPECT_NEAR(sums.b_squares[c], static_cast<double>(bb), 1e-13 * static_cast<double>(bb));
        for (index_t j = 0; j < n; ++j)
          EXPECT_NEAR(sums.gradient[j * p + c], static_cast<double>(g[j]), 1e-11);
      }
    }
  }
}

TEST(Residual, InTwicePrecisionSeesWhatFloat64Rounds) {
  // b - A x is 2^-60: a product of float64 numbers would round it away.
  const double a[] = {1 + 0x1p-30, 1.0, 3.0, 0.5}, x[] = {1 - 0x1p-30, 1.0}, b[] = {2.0, 3.5};
  std::vector<double> gradient(2, 0.0);
  double squares = 0;
  add_precise_residual({a, 2, 2, 2}, b, 1, x, gradient, squares);
  // r = (2^-60, 3 2^-30)
  const double r0 = 0x1p-60, r1 = 3 * 0x1p-30;
  EXPECT_EQ(squares, r0 * r0 + r1 * r1);
  EXPECT_EQ(gradient[0], a[0] * r0 + 3 * r1);
  EXPECT_EQ(gradient[1], r0 + r1 / 2);
}

}  // namespace
}  // namespace qrtool::residual_test
