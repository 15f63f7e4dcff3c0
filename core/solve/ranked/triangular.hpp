// SPDX-License-Identifier: Apache-2.0
// triangular.hpp: systems with an upper triangular matrix R (n x n, row-major), and its condition.
// S is float64 or complex128. Nothing is said of what lies below the diagonal.
#pragma once

#include <type_traits>
#include <vector>

#include "core/batch.hpp"
#include "core/matrix/complex_arithmetic.hpp"

namespace qrtool {

/// X := R^-1 X, where X is n x p. A zero on the diagonal gives infinities or NaN.
template <class S>
void solve_upper(std::type_identity_t<MatrixView<const S>> r, MatrixView<S> x);
/// X := R^-H X.
template <class S>
void solve_upper_adjoint(std::type_identity_t<MatrixView<const S>> r, MatrixView<S> x);

/// Returns the norm of each row of R^-1.
template <class S>
std::vector<double> inverse_row_norms(MatrixView<const S> r);

/// Returns w_i w_j^H / (||w_i|| ||w_j||) for the rows w_i of R^-1 (n x n). These are the
/// correlations of the solution's entries, since their covariance is sigma^2 (R^H R)^-1.
template <class S>
std::vector<S> inverse_row_correlations(MatrixView<const S> r);

/// Returns sqrt(x^H x), even if x^H x would overflow or underflow.
template <class S>
double norm_of(const S* x, index_t count, index_t step = 1);

/// Estimates of the largest and the smallest singular value of R by a few steps of the power method
/// and of inverse iteration. The true largest value is not smaller, and the true smallest not
/// larger; usually they agree to a few percent. The smallest is 0 if R is singular in float64.
struct SingularValues {
  double largest = 0, smallest = 0;
  double condition() const;
};
template <class S>
SingularValues estimate_singular_values(MatrixView<const S> r);

}  // namespace qrtool
