// SPDX-License-Identifier: Apache-2.0
// number_hash.hpp: a checksum of numbers, whatever the text that they are written with.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace qrtool {

/// Makes a hash of 64 bits. The order of the numbers counts. It notices files of different runs; it
/// does not protect against someone who wants two files to agree.
class NumberHash {
 public:
  void add(double number) {
    constexpr std::uint64_t any_nan = 0x7ff8000000000000;  // text keeps no other bits of a NaN
    add_word(std::isnan(number) ? any_nan : std::bit_cast<std::uint64_t>(number));
  }
  void add_word(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15;
    state_ ^= state_ >> 32;  // else the high bits of a number would never reach the low ones
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace qrtool
