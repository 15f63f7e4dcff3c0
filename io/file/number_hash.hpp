// SPDX-License-Identifier: Apache-2.0
// number_hash.hpp: a checksum of numbers, whatever the text that they are written with.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parallel.hpp"

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

/// The hash of the hashes of blocks of numbers, which several threads find together. It does not
/// depend on how the numbers come in parts.
class BlockHash {
 public:
  void add(double number) {
    part_.add(number);
    if (++count_ == block_size) end_block(part_.value());
  }
  template <class T>
  void add(std::span<const T> numbers, int threads) {
    for (; count_ > 0 && !numbers.empty(); numbers = numbers.subspan(1))
      add(static_cast<double>(numbers.front()));
    std::vector<std::uint64_t> words(numbers.size() / block_size);
    parallel_for(std::ssize(words), threads, [&](index_t i, int) {
      NumberHash hash;
      for (const T number : numbers.subspan(static_cast<std::size_t>(i) * block_size, block_size))
        hash.add(static_cast<double>(number));
      words[static_cast<std::size_t>(i)] = hash.value();
    });
    for (const std::uint64_t word : words) end_block(word);
    for (const T number : numbers.subspan(words.size() * block_size))
      add(static_cast<double>(number));
  }
  std::uint64_t value() const {
    NumberHash all = of_blocks_;
    if (count_ > 0) all.add_word(part_.value());
    return all.value();
  }

 private:
  static constexpr std::size_t block_size = 1 << 16;
  void end_block(std::uint64_t word) {
    of_blocks_.add_word(word);
    part_ = {};
    count_ = 0;
  }

  NumberHash of_blocks_, part_;
  std::size_t count_ = 0;  // numbers in part_
};

}  // namespace qrtool
