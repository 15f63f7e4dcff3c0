// SPDX-License-Identifier: Apache-2.0
// fletcher32.cpp: computes the sums in lanes that the compiler keeps in vector registers.
#include "io/checksum/fletcher32.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace qrtool {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t lanes = 8;  // pairs of words in a row, which fill an AVX2 register
constexpr std::size_t words = 2 * lanes;
constexpr std::size_t most_rows = 360;  // 65535 * 360 * 361 / 2 < 2^32

// Vectors of GCC and Clang. Loops over arrays are three times slower with g++ 12. A lane holds two
// words, which a mask and a shift separate; widening each word to a lane would take four shuffles
// for half the words.
using Lanes = std::uint32_t __attribute__((vector_size(lanes * sizeof(std::uint32_t))));

/// Returns v modulo 65535, except that 65535 stays.
std::uint64_t fold(std::uint64_t v) {
  while (v >> 16 != 0) v = (v & 0xffff) + (v >> 16);
  return v;
}

/// The two sums of Fletcher's checksum over the words read so far, folded.
struct Sums {
  std::uint64_t s1 = 0, s2 = 0;

  void add_rows(const std::byte* data, std::size_t rows) {
    // a sums the words of a lane; b counts each word once for every row from its own to the last.
    Lanes a_even{}, b_even{}, a_odd{}, b_odd{};
    for (std::size_t row = 0; row < rows; ++row) {
      Lanes pairs;
      std::memcpy(&pairs, data + row * sizeof pairs, sizeof pairs);
      a_even += pairs & 0xffff;
      a_odd += pairs >> 16;
      b_even += a_even;
      b_odd += a_odd;
    }
    // s2 = N s1_before + sum_w (words b_w - w a_w)
    s2 += rows * words * s1;
    for (std::size_t l = 0; l < lanes; ++l) {
      s1 += std::uint64_t{a_even[l]} + a_odd[l];
      s2 += words * (std::uint64_t{b_even[l]} + b_odd[l]);
      s2 -= 2 * l * a_even[l] + (2 * l + 1) * a_odd[l];
    }
    s1 = fold(s1);
    s2 = fold(s2);
  }

  void add_word(std::uint64_t word) {
    s1 = fold(s1 + word);
    s2 = fold(s2 + s1);
  }
};

std::uint32_t swap_bytes_of_halves(std::uint32_t v) {
  return (v & 0x00ff00ff) << 8 | (v >> 8 & 0x00ff00ff);
}

/// Returns the checksum of words in the byte order of this machine.
std::uint32_t little_endian_fletcher32(const std::byte* data, std::size_t bytes) {
  constexpr std::size_t row_bytes = sizeof(Lanes);
  Sums sums;
  const std::byte* const end = data + bytes;
  for (std::size_t left = bytes / row_bytes; left > 0;) {
    const std::size_t rows = std::min(left, most_rows);
    sums.add_rows(data, rows);
    data += rows * row_bytes;
    left -= rows;
  }
  for (; data + 1 < end; data += 2) {
    sums.add_word(std::to_integer<unsigned>(data[0]) | std::to_integer<unsigned>(data[1]) << 8);
  }
  if (data < end) sums.add_word(std::to_integer<unsigned>(*data));
  return static_cast<std::uint32_t>(sums.s2 << 16 | sums.s1);
}

}  // namespace

std::uint32_t fletcher32(const std::byte* data, std::size_t bytes) {
  // Swapping the bytes of a word multiplies it, and therefore both sums, by 256 modulo 65535.
  return swap_bytes_of_halves(little_endian_fletcher32(data, bytes));
}

bool matches_fletcher32(std::uint32_t stored, const std::byte* data, std::size_t bytes) {
  const std::uint32_t checksum = fletcher32(data, bytes);
  return stored == checksum || stored == swap_bytes_of_halves(checksum);
}

}  // namespace qrtool
