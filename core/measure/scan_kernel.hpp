// SPDX-License-Identifier: Apache-2.0
// scan_kernel.hpp: the largest entry and a checksum of numbers. Private to core.
#pragma once

#include <cstdint>
#include <span>

namespace qrtool::scan {

/// The functions of scan_kernel.cpp, compiled for one instruction set.
struct Kernels {
  const char* target;
  /// Returns the larger of `largest` and the largest |from[i]|, as bits. NaN counts as larger than
  /// infinity.
  std::int32_t (*largest_single)(const float* from, std::int64_t count, std::int32_t largest);
  std::int64_t (*largest_double)(const double* from, std::int64_t count, std::int64_t largest);
  /// The sum of word_i (2 (first + i) + 1), mod 2^64, for `count` words of 32 bits; the weights are
  /// taken mod 2^32.
  std::uint64_t (*sum_words)(const void* words, std::int64_t count, std::int64_t first);
};

extern const Kernels generic_scan;
extern const Kernels avx2_scan, avx512_scan;  // x86-64

/// Returns the kernels for the instruction sets of this processor, the widest first.
std::span<const Kernels* const> kernels();

}  // namespace qrtool::scan
