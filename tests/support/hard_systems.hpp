// SPDX-License-Identifier: Apache-2.0
// hard_systems.hpp: least-squares problems that attack a solver, by seed, of the families of
// attack.hpp.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tests/support/attack.hpp"

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

inline constexpr std::array<AttackShape, 15> hard_shapes{{{1, 1},
                                                          {1, 5},
                                                          {5, 1},
                                                          {2, 2},
                                                          {7, 3},
                                                          {5, 9},
                                                          {16, 16},
                                                          {40, 7},
                                                          {33, 20},
                                                          {20, 40},
                                                          {64, 64},
                                                          {97, 33},
                                                          {288, 12},
                                                          {1200, 5},
                                                          {5000, 5}}};

/// `each` systems of each kind of A (normal, graded, dependent and nearly dependent columns, a
/// common mean, a common profile, columns that differ in a few entries, tiny, huge) with each kind
/// of b (random, consistent, nearly consistent, huge residual, zero).
template <class T>
HardSystems<T> make_hard_systems(index_t m, index_t n, index_t each, std::uint64_t seed);

/// With 20 decades 10 of 15,120 right solutions of least norm are refused, all of 20x40 and 64x64.
inline constexpr double column_decades = 12;

/// The same with columns whose sizes differ by up to column_decades: by powers of two in every
/// second system, which keep dependent columns so.
template <class T>
HardSystems<T> with_column_scales(HardSystems<T> systems, std::uint64_t seed);

}  // namespace qrtool::test
