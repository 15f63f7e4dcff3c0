// SPDX-License-Identifier: Apache-2.0
// backward_error.hpp: how well x solves min ||A x - b||: the least ||[dA, db]|| for which x solves
// the problem of A + dA and b + db, each change taken relative to its own size (Frobenius norms).
//
//   r = b - A x,  g = A^H r,  a = ||A||,  e = ||r|| / hypot(a ||x||, ||b||)
//
// Here A has columns of norm 1, to a factor of 2: core/solve scales them by powers of two, and x
// with them, before it judges a solution.
//
//   ||g|| / (a ||r||)              Stewart; too large where r is small, but not zero
//   e ||R^-H g|| / ||r||           Stewart; too large for ill-conditioned A and large r
//   e                              the change that makes the system consistent
//   (e / ||r||) ||K^-H g / a||     Karlson and Walden; K^H K = R^H R / a^2 + e^2 I
//
// The first three are upper bounds. The last is exact to a factor of sqrt(2) and takes a QR
// factorization, so that it is computed only where the bounds are above the bar. Sources: Stewart,
// "Research, development and LINPACK" (1977); Karlson, Walden, "Estimation of optimal backward
// perturbation bounds for the linear least squares problem", BIT 37 (1997).
#pragma once

#include <vector>

#include "core/batch.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// The norms of one right side's problem, all of data scaled by the same powers of two.
struct SolutionNorms {
  double a = 0, b = 0, x = 0, r = 0, g = 0;

  /// Returns e of the formula above, and 0 for r = 0.
  double consistent_error() const;
};

/// Returns the least of the three bounds. transposed_norm is ||R^-H g||, or infinity if it is not
/// known.
double backward_error_bound(const SolutionNorms& norms, double transposed_norm);

/// The estimate of Karlson and Walden. r: R of A (k x n).
template <class S>
double karlson_walden(const SolutionNorms& norms, MatrixView<const S> r, const std::vector<S>& g);

/// If a bound is below this fraction of the bar, no closer bound is computed.
constexpr double clear_of_bar = 0.5;

/// Returns u min(max(m, 16), 30 min(m, n)), u = 2^-23 or 2^-52 of the parts of `type`: the largest
/// backward error that passes.
double solution_bar(ElementType type, index_t m, index_t n);

}  // namespace qrtool
