// SPDX-License-Identifier: Apache-2.0
// few_rows.hpp: factors many matrices of one small shape on the CPU and keeps the worst errors. At
// 15 to 33 rows the bar is closest to the rounding errors of a good QR.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tests/support/attack.hpp"

namespace qrtool::test {

/// Returns shapes of 15 to 17 and of 31 to 33 rows and columns, and wide ones.
std::span<const AttackShape> few_rows_shapes();

struct FewRows {
  std::string variant;  // "cpu/blocked"; empty: the plan chooses for one matrix
  AttackShape shape;
  index_t matrices = 0;
  std::uint64_t seed = 1;
};

/// The errors are in units of the bar.
struct WorstErrors {
  index_t matrices = 0, above = 0;
  double residual = 0, orthogonality = 0;

  void include(const WorstErrors& other);
};

/// Every second matrix is of the attack families, and the others have entries in [0, 1): uniform
/// ones, or the same one everywhere in a quarter of them. Matrix b depends on the shape, the seed
/// and b alone. Errors: UsageError where the variant does not take the shape.
template <class T>
WorstErrors factor_few_rows(const FewRows& run);

}  // namespace qrtool::test
