// SPDX-License-Identifier: Apache-2.0
// expect_complex.hpp: what holds for the factors of every complex matrix, whoever made them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "core/backend/backend.hpp"
#include "tests/support/complex_reference.hpp"

namespace qrtool::test {

/// V and tau of matrix b: Q of them (LAPACK ungqr) and R are within the bar, and every reflector is
/// unitary.
template <class T>
void expect_good_reflectors(const Problem& p, MatrixView<const std::complex<T>> a,
                            const Factors<std::complex<T>>& out, index_t b) {
  using View = MatrixView<const std::complex<T>>;
  const double u = sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
  const ComplexMatrix v(View(out.v[b])), tau(View(out.tau[b]));
  ComplexMatrix r = v;
  for (index_t j = 0; j < p.n; ++j)
    for (index_t i = j + 1; i < p.m; ++i) r(i, j) = 0;
  const auto ratios =
      complex_ratios(ComplexMatrix(a), q_of_reflectors(v, tau, p.m), r, element_type<T>);
  EXPECT_LE(ratios.residual, 1);
  EXPECT_LE(ratios.orthogonality, 1);
  for (index_t j = 0; j < p.k(); ++j) {
    EXPECT_EQ(v(j, j).imag(), 0);
    const auto t = tau(0, j);
    if (t == ComplexMatrix::Entry(0)) continue;
    long double vv = 1;
    for (index_t i = j + 1; i < p.m; ++i) vv += std::norm(v(i, j));
    EXPECT_NEAR(static_cast<double>(std::norm(t) * vv / (2 * t.real())), 1, 4 * u);
    EXPECT_GE(static_cast<double>(t.real()), 1 - 4 * u);
    EXPECT_LE(static_cast<double>(std::abs(t - ComplexMatrix::Entry(1))), 1 + 4 * u);
  }
}

/// Q and R of matrix b are within the bar, and R has the zeros and the diagonal that are promised.
template <class T>
void expect_good_factors(const Problem& p, MatrixView<const std::complex<T>> a,
                         const Factors<std::complex<T>>& out, index_t b) {
  using View = MatrixView<const std::complex<T>>;
  const View r = out.r[b];
  const auto ratios = complex_ratios(ComplexMatrix(a), ComplexMatrix(View(out.q[b])),
                                     ComplexMatrix(r), element_type<T>);
  EXPECT_LE(ratios.residual, 1);
  EXPECT_LE(ratios.orthogonality, 1);
  for (index_t i = 0; i < r.rows; ++i) {
    for (index_t j = 0; j < std::min(i, r.cols); ++j) {
      EXPECT_EQ(r(i, j), std::complex<T>(0));
      EXPECT_FALSE(std::signbit(r(i, j).real()) || std::signbit(r(i, j).imag()));
    }
    if (i >= r.cols) continue;
    EXPECT_EQ(r(i, i).imag(), 0);
    if (p.sign == Sign::positive) {
      EXPECT_GE(r(i, i).real(), 0);
    }
  }
}

}  // namespace qrtool::test
