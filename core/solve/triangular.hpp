// SPDX-License-Identifier: Apache-2.0
// triangular.hpp: systems with an upper triangular matrix R (n x n, row-major, float64), and its
// condition. Nothing is said of what lies below the diagonal.
#pragma once

#include <vector>

#include "core/batch.hpp"

namespace qrtool {

/// X := R^-1 X, where X is n x p. A zero on the diagonal gives infinities or NaN.
void solve_upper(MatrixView<const double> r, MatrixView<double> x);
/// X := R^-T X.
void solve_upper_transposed(MatrixView<const double> r, MatrixView<double> x);

/// Returns the norm of each row of R^-1.
std::vector<double> inverse_row_norms(MatrixView<const double> r);

/// Returns w_i'w_j / (||w_i|| ||w_j||) for the rows w_i of R^-1 (n x n). These are the correlations
/// of the solution's entries, since their covariance is sigma^2 (R'R)^-1.
std::vector<double> inverse_row_correlations(MatrixView<const double> r);

/// sqrt(x'x), also where x'x would overflow or underflow.
double norm_of(const double* x, index_t count, index_t step = 1);

/// Estimates of the largest and the smallest singular value of R by a few steps of the power method
/// and of inverse iteration. The true largest is not smaller, the true smallest not larger; usually
/// they agree to a few percent. The smallest is 0 where R is singular in float64.
struct SingularValues {
  double largest = 0, smallest = 0;
  double condition() const;
};
SingularValues estimate_singular_values(MatrixView<const double> r);

}  // namespace qrtool
