// SPDX-License-Identifier: Apache-2.0
// hard_systems.hpp: least-squares problems that attack a solver, by seed.
#pragma once

#include <string>
#include <vector>

#include "core/batch.hpp"

namespace qrtool::test {

/// `count` systems, A m x n and b, one after another.
template <class T>
struct HardSystems {
  index_t m = 0, n = 0, count = 0;
  std::vector<T> a, b;
  std::vector<std::string> names;
  std::vector<char>
      is_graded;  // columns of very different size, or no reference for another reason
};

/// `each` systems of each kind of A (gaussian, graded to 1e-15, dependent, nearly dependent, common
/// mean, near-collinear, zero columns, tiny, huge) with each kind of b (random, consistent, nearly
/// consistent, huge residual, zero).
template <class T>
HardSystems<T> make_hard_systems(index_t m, index_t n, index_t each, std::uint64_t seed);

}  // namespace qrtool::test
