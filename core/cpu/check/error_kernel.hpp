// SPDX-License-Identifier: Apache-2.0
// error_kernel.hpp: X'X, the largest entry and a checksum of a matrix. Private to core.
//
// Matrices are row-major and aligned to 64 bytes. They are padded to multiples of `unit` with
// zeros.
#pragma once

#include <cstdint>
#include <span>

namespace qrtool::errors {

/// All columns, and the rows of A and Q, are padded to multiples of this number.
inline constexpr std::int64_t unit = 8;
inline constexpr std::int64_t narrow_unit = 16;

/// X'X (columns x columns, with the ld of X), summed over tiles of rows by Kahan's sum. Only the
/// entries on and above the diagonal are defined.
struct Gram {
  double *sum, *compensation;
};

/// The same source compiled for one instruction set.
struct Kernels {
  const char* target;
  /// Adds X'X of `rows` rows of X, whose columns before `first` are zero.
  void (*add_gram)(const double* x, std::int64_t rows, std::int64_t columns, std::int64_t first,
                   const Gram& gram);
  /// to := from in float64. Returns the larger of `largest` and the largest |from[i]|, as the bits
  /// of a float32. NaN counts as larger than infinity.
  std::uint32_t (*widen)(const float* from, std::int64_t count, double* to, std::uint32_t largest);
  /// sums (columns x columns) += A'A on and above the diagonal, for `rows` rows of float32 without
  /// gaps. The products are summed in float32, so that the error is about 2^-24 of the columns'
  /// norms. `columns` is a multiple of narrow_unit. Returns the largest |a_ij| in the way of widen.
  std::uint32_t (*add_narrow_gram)(const float* a, std::int64_t rows, std::int64_t columns,
                                   double* sums, std::uint32_t largest);
  /// Returns the larger of `largest` and the largest |from[i]|, as bits. NaN counts as larger than
  /// infinity.
  std::int32_t (*largest_single)(const float* from, std::int64_t count, std::int32_t largest);
  std::int64_t (*largest_double)(const double* from, std::int64_t count, std::int64_t largest);
  /// The sum of word_i (2 (first + i) + 1), mod 2^64, for `count` words of 32 bits; the weights are
  /// taken mod 2^32.
  std::uint64_t (*sum_words)(const void* words, std::int64_t count, std::int64_t first);
};

extern const Kernels generic_kernels;
extern const Kernels avx2_kernels, avx512_kernels;  // x86-64

/// The kernels for the instruction sets of this processor, the widest first.
std::span<const Kernels* const> kernels();

}  // namespace qrtool::errors
