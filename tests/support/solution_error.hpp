// SPDX-License-Identifier: Apache-2.0
// solution_error.hpp: what the tests compare least-squares solutions with.
#pragma once

#include <vector>

#include "core/batch.hpp"

namespace qrtool::test {

/// The backward error of x for min ||A x - b||, by one singular value decomposition of an
/// m x (n + m) matrix: min(e, sigma_min [A / a, e (I - r r' / r'r)]). It loses digits where it is
/// small beside the rounding errors of that decomposition. Source: Walden, Karlson, Sun, "Optimal
/// backward perturbation bounds for the linear least squares problem", Numer. Linear Algebra Appl.
/// 2 (1995).
double exact_backward_error(MatrixView<const double> a, const double* b, const double* x);

/// Karlson and Walden's estimate of the same error, which is at most sqrt(2) too small, where the
/// columns of A are brought to norms from 1/2 to 1 by powers of two first; and that of its norm,
/// the least change of A with such columns, relative to it, for which x has the least norm among
/// the solutions of a matrix of this rank. In 80 bits, by QR factorizations of [A / a; e I] and of
/// A with column pivoting: nothing of it comes from core.
struct ScaledErrors {
  double backward = 0, least_norm = 0;
};
ScaledErrors scaled_errors(MatrixView<const double> a, const double* b, const double* x,
                           index_t rank);

/// The solution of least norm, by the singular value decomposition of A with its columns divided by
/// powers of two. Singular values up to `tolerance` times the largest count as zero. `rank` and
/// `condition` are those of the scaled A that is left.
struct Reference {
  std::vector<double> x;
  index_t rank = 0;
  double condition = 0;   // largest over smallest singular value that counts
  double next_ratio = 0;  // the largest that does not count, over the largest
  double last_ratio = 0;  // the smallest that counts, over the largest
};
Reference solve_by_svd(MatrixView<const double> a, const double* b, double tolerance);

}  // namespace qrtool::test
