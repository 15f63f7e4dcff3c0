// SPDX-License-Identifier: Apache-2.0
// growing_system_test.cpp: R of rows that come one after another knows the rank after any number of
// them, and the sums in pairs know the gradient.
#include "core/solve/engines/growing_system.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/matrix/matrices.hpp"

namespace qrtool::growing_system_test {
namespace {

constexpr index_t n = 4;

/// Fills a row [a b] of A whose last column depends on the others, which no number rounds.
using RowOf = void (*)(index_t i, std::uint64_t random, double* row);
struct Kind {
  std::string name;
  RowOf row;
};
double whole(std::uint64_t random, int shift) {
  return static_cast<double>((random >> shift) % 1024) - 512;
}
const Kind kinds[] = {{"difference",
                       [](index_t, std::uint64_t random, double* row) {
                         for (int j = 0; j < 3; ++j) row[j] = whole(random, 10 * j) / 512;
                         row[3] = row[0] - row[1];
                       }},
                      {"two constants",
                       [](index_t, std::uint64_t random, double* row) {
                         row[0] = 1;
                         row[1] = whole(random, 0) / 512;
                         row[2] = whole(random, 10) / 512;
                         row[3] = 0.3;
                       }},
                      {"offset",
                       [](index_t, std::uint64_t random, double* row) {
                         row[0] = 1;
                         row[1] = (1e6 + whole(random, 0) / 512) / 0x1p20;
                         row[2] = (1e6 + whole(random, 10) / 512) / 0x1p20;
                         row[3] = row[1] - row[0] / 2;
                       }},
                      {"few alike rows", [](index_t i, std::uint64_t, double* row) {
                         row[0] = 0.7;
                         row[1] = static_cast<double>(i % 7) / 8;
                         row[2] = static_cast<double>(i % 5) / 8;
                         row[3] = row[0] / 2;
                       }}};

TEST(RowTree, ADependentColumnStaysBelowTheToleranceOfTheRank) {
  for (const Kind& kind : kinds) {
    RowTree tree(n + 1);
    GrowingSystem system(n);
    double worst = 0;
    for (index_t i = 0; i < 200000; ++i) {
      double row[n + 1];
      kind.row(i, mix_bits(static_cast<std::uint64_t>(i)), row);
      row[n] = static_cast<double>(i % 3) / 4;
      system.add_row(row, tree);
      double squares = 0;
      for (index_t k = 0; k < n; ++k) squares += std::pow(system.r()(k, n - 1), 2);
      if (i > 30) worst = std::max(worst, std::abs(system.r()(n - 1, n - 1)) / std::sqrt(squares));
    }
    // Half the tolerance. Blocks of 256 rows one after another came to 11 2^-52.
    EXPECT_LE(worst, default_rank_tolerance(ElementType::float64, n) / 2) << kind.name;
  }
}

}  // namespace
}  // namespace qrtool::growing_system_test
