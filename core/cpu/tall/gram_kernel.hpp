// SPDX-License-Identifier: Apache-2.0
// gram_kernel.hpp: A'A of a leaf (gram_leaf.hpp), in float64 or float32. Private to core/cpu.
//
// Matrices are row-major and aligned to 64 bytes. They are padded to multiples of `unit` with
// zeros.
#pragma once

#include <cstdint>
#include <span>

namespace qrtool::gram {

/// All columns, and the rows of A, are padded to multiples of this number.
inline constexpr std::int64_t unit = 8;
inline constexpr std::int64_t narrow_unit = 16;

/// X'X (columns x columns, with the ld of X), summed over tiles of rows by Kahan's sum. Only the
/// entries on and above the diagonal are defined.
struct Gram {
  double *sum, *compensation;
};

/// The functions of gram_kernel.cpp, compiled for one instruction set.
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
  /// norms. `columns` is a multiple of narrow_unit. Returns the largest |a_ij| as widen does.
  std::uint32_t (*add_narrow_gram)(const float* a, std::int64_t rows, std::int64_t columns,
                                   double* sums, std::uint32_t largest);
};

extern const Kernels generic_gram;
extern const Kernels avx2_gram, avx512_gram;  // x86-64

/// Returns the kernels for the instruction sets of this processor, the widest first.
std::span<const Kernels* const> kernels();

}  // namespace qrtool::gram
