// SPDX-License-Identifier: Apache-2.0
// operations.hpp: the number of operations that a problem needs.
#pragma once

#include <algorithm>

#include "core/problem/problem.hpp"

namespace qrtool {

/// Returns the floating-point operations of Householder's method for R, and as many again for a
/// reduced Q.
inline double operations(const Problem& p) {
  const auto rows = static_cast<double>(std::max(p.m, p.n)), k = static_cast<double>(p.k());
  const double r = 2 * rows * k * k - 2.0 / 3.0 * k * k * k;
  return static_cast<double>(p.count) * (p.wants_q() ? 2 * r : r);
}

/// Counts the operations of R, of a matrix m x n with m >= n, as LAPACK does.
inline double operations_of_r(double m, double n) { return 2 * m * n * n - 2.0 / 3.0 * n * n * n; }

/// The real operations in one of this type: a complex product and a sum are eight real operations
/// in place of two.
constexpr double operations_in(ElementType type) { return is_complex(type) ? 4 : 1; }

/// Counts the real operations of the whole batch as LAPACK does: 2 m n^2 - 2 n^3 / 3 for R (with m
/// and n exchanged if m < n), and as many again, with k columns, for Q (m x k). Complex matrices
/// count four times.
inline double lapack_operations(const Problem& p) {
  const auto k = static_cast<double>(p.k());
  double flops = operations_of_r(static_cast<double>(std::max(p.m, p.n)), k);
  if (p.wants_q()) flops += operations_of_r(static_cast<double>(p.m), k);
  return operations_in(p.type) * flops * static_cast<double>(p.count);
}

}  // namespace qrtool
