// SPDX-License-Identifier: Apache-2.0
// company.hpp: problems for tests that a matrix has the same bits alone and among any number of
// others. Most shapes lie at the borders of kernels: whole blocks of 16, 32, 64 or 128, one more,
// one less.
#pragma once

#include <array>
#include <cstdint>
#include <random>

#include "core/problem/problem.hpp"

namespace qrtool::test {

/// So many matrices go together.
inline constexpr std::array<index_t, 6> company_counts{1, 2, 9, 10, 11, 40};

class CompanyProblems {
 public:
  /// Draws problems of at most `most` columns.
  CompanyProblems(std::uint64_t seed, index_t most) : random_(seed), most_(most) {}
  Problem next();

 private:
  index_t between(index_t least, index_t most);
  index_t columns();

  std::mt19937_64 random_;
  index_t most_;
  std::size_t borders_ = 0;  // shapes that are not drawn, but come first
};

}  // namespace qrtool::test
