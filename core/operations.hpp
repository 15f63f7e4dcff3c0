// SPDX-License-Identifier: Apache-2.0
// operations.hpp: the number of operations that a problem needs.
#pragma once

#include <algorithm>

#include "core/problem.hpp"

namespace qrtool {

/// Returns the floating-point operations of Householder's method for R, and as many again for a
/// reduced Q.
inline double operations(const Problem& p) {
  const auto rows = static_cast<double>(std::max(p.m, p.n)), k = static_cast<double>(p.k());
  const double r = 2 * rows * k * k - 2.0 / 3.0 * k * k * k;
  return static_cast<double>(p.count) * (p.wants_q() ? 2 * r : r);
}

}  // namespace qrtool
