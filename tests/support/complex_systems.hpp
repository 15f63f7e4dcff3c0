// SPDX-License-Identifier: Apache-2.0
// complex_systems.hpp: complex least-squares problems of all kinds, solved by the engines of the
// CPU and judged in long double by code that shares nothing with theirs.
#pragma once

#include <random>
#include <string>

#include "core/batch.hpp"

namespace qrtool::test {

/// The worst backward error in bars, and the worst error of the least norm.
struct ComplexSystemTally {
  index_t solutions = 0, failed = 0, tries = 0, deficient = 0;
  double worst = 0, worst_least_norm = 0;
  std::string worst_at, worst_least_norm_at, first_failure;
};

/// Draws a shape, a kind of A, kinds of right sides and options, solves some systems with numbers
/// of std::complex<R>, by the engine for many matrices or that for many right sides of one, and
/// judges every solution.
template <class R>
void attack_complex_systems(std::mt19937_64& generator, ComplexSystemTally& tally);

}  // namespace qrtool::test
