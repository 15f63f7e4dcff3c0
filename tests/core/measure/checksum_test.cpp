// SPDX-License-Identifier: Apache-2.0
// checksum_test.cpp: every instruction set gives the sum of the definition, and any wrong bit or
// exchanged word shows.
#include "core/measure/checksum.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

#include "core/measure/scan_kernel.hpp"

namespace qrtool::checksum_test {
namespace {

std::vector<std::uint32_t> make_words(std::size_t count) {
  std::vector<std::uint32_t> words(count);
  std::uint32_t x = 1;
  for (std::uint32_t& word : words) word = x = x * 1664525u + 1013904223u;
  return words;
}

TEST(Checksum, IsTheWeightedSumOnEveryInstructionSet) {
  for (const std::size_t count : {0, 1, 3, 16, 1000, 1023}) {
    const std::vector<std::uint32_t> words = make_words(count);
    std::uint64_t expected = 0, weight = 1;
    for (const std::uint32_t word : words) {
      expected += word * weight;
      weight += 2;
    }
    EXPECT_EQ(checksum(words), expected);
    for (const scan::Kernels* kernels : scan::kernels()) {
      const auto half = static_cast<index_t>(count / 2), all = static_cast<index_t>(count);
      EXPECT_EQ(kernels->sum_words(words.data(), half, 0) +
                    kernels->sum_words(words.data() + half, all - half, half),
                expected)
          << kernels->target;
    }
  }
}

TEST(Checksum, DoesNotDependOnPadding) {
  std::vector<double> packed(12), padded(20, 7);
  std::iota(packed.begin(), packed.end(), 0.5);
  for (index_t i = 0; i < 4; ++i) std::copy_n(&packed[3 * i], 3, &padded[5 * i]);
  EXPECT_EQ(checksum<double>({packed.data(), 4, 3, 3}), checksum<double>({padded.data(), 4, 3, 5}));
}

TEST(Checksum, ShowsEveryWrongBitAndExchangedWords) {
  std::vector<std::uint32_t> words = make_words(67);
  const std::uint64_t right = checksum(words);
  for (std::uint32_t& word : words) {
    for (int bit = 0; bit < 32; ++bit) {
      word ^= 1u << bit;
      EXPECT_NE(checksum(words), right);
      word ^= 1u << bit;
    }
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::swap(words[i], words[j]);
      EXPECT_NE(checksum(words), right);
      std::swap(words[i], words[j]);
    }
  }
}

}  // namespace
}  // namespace qrtool::checksum_test
