// SPDX-License-Identifier: Apache-2.0
// company.cpp: shapes by chance.
#include "tests/support/company.hpp"

#include <algorithm>

namespace qrtool::test {
namespace {

/// For these shapes gram_twice once took other kernels, or other groups of squares, for 1 matrix
/// than for 10.
constexpr std::array<std::array<index_t, 2>, 6> once_wrong{
    {{385, 289}, {397, 289}, {256, 256}, {600, 512}, {2100, 1000}, {2330, 800}}};

}  // namespace

/// Draws a number. Every standard library gives the same one.
index_t CompanyProblems::between(index_t least, index_t most) {
  const auto range = static_cast<std::uint64_t>(most - least + 1);
  return least + static_cast<index_t>(random_() % range);
}

index_t CompanyProblems::columns() {
  if (between(0, 3) == 0) return between(1, most_);
  const std::array<index_t, 4> blocks{16, 32, 64, 128};
  const index_t block = blocks[static_cast<std::size_t>(between(0, 3))];
  const index_t whole = block * between(1, std::max<index_t>(1, most_ / block));
  return std::clamp<index_t>(whole + between(-1, 1), 1, most_);
}

Problem CompanyProblems::next() {
  while (borders_ < once_wrong.size()) {
    const auto [m, n] = once_wrong[borders_++];
    if (n <= most_)
      return {.count = 0, .m = m, .n = n, .type = ElementType::float64, .mode = Mode::r};
  }
  Problem p;
  p.n = columns();
  const index_t tall = p.n > 300 ? 4 : p.n > 64 ? 12 : 60;
  switch (between(0, 4)) {
    case 0:
      p.m = p.n;
      break;
    case 1:
      p.m = p.n + between(0, 2);
      break;
    case 2:
      p.m = std::max<index_t>(1, p.n - between(1, p.n));
      break;
    default:
      p.m = between(p.n, tall * p.n);
  }
  p.type = between(0, 1) == 0 ? ElementType::float32 : ElementType::float64;
  const std::array<Mode, 4> modes{Mode::reduced, Mode::reduced, Mode::r, Mode::raw};
  p.mode = modes[static_cast<std::size_t>(between(0, 3))];
  return p;
}

}  // namespace qrtool::test
