// SPDX-License-Identifier: Apache-2.0
// number_hash.hpp: a checksum of numbers, whatever the text that they are written with.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/machine/parallel.hpp"

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

/// A hash of the hashes of blocks of numbers. Several threads can compute it, and it does not
/// depend on how the numbers are split into parts. A block has several chains of numbers, because
/// each step of a chain waits for the step before it.
class BlockHash {
 public:
  void add(double number) {
    part_[count_ % chains].add(number);
    if (++count_ < block_size) return;
    of_blocks_.add_word(value_of(part_));
    part_ = {};
    count_ = 0;
  }
  template <class T>
  void add(std::span<const T> numbers, int threads) {
    for (; count_ > 0 && !numbers.empty(); numbers = numbers.subspan(1))
      add(static_cast<double>(numbers.front()));
    std::vector<std::uint64_t> words(numbers.size() / block_size);
    parallel_for(std::ssize(words), threads, [&](index_t i, int) {
      const auto place = static_cast<std::size_t>(i);
      words[place] = value_of_block(numbers.subspan(place * block_size, block_size));
    });
    for (const std::uint64_t word : words) of_blocks_.add_word(word);
    for (const T number : numbers.subspan(words.size() * block_size))
      add(static_cast<double>(number));
  }
  std::uint64_t value() const {
    NumberHash all = of_blocks_;
    if (count_ > 0) all.add_word(value_of(part_));
    return all.value();
  }

 private:
  static constexpr std::size_t block_size = 1 << 16, chains = 8;
  using Chains = std::array<NumberHash, chains>;

  static std::uint64_t value_of(const Chains& all) {
    NumberHash hash;
    for (const NumberHash& each : all) hash.add_word(each.value());
    return hash.value();
  }
  template <class T>
  static std::uint64_t value_of_block(std::span<const T> numbers) {
    Chains all;
    for (std::size_t i = 0; i < block_size; i += chains)
      for (std::size_t k = 0; k < chains; ++k) all[k].add(static_cast<double>(numbers[i + k]));
    return value_of(all);
  }

  NumberHash of_blocks_;
  Chains part_;
  std::size_t count_ = 0;  // numbers in part_
};

}  // namespace qrtool
