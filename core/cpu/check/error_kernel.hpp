// SPDX-License-Identifier: Apache-2.0
// error_kernel.hpp: the two products that measuring a factorization takes, in float64. Private to
// core.
//
// Matrices are row-major, aligned to 64 bytes, with the padding that `unit` says set to zero.
#pragma once

#include <cstdint>
#include <span>

namespace qrtool::errors {

/// Columns are padded to multiples of this, and so are the rows of A and Q.
inline constexpr std::int64_t unit = 8;
inline constexpr std::int64_t narrow_unit = 16;

/// X'X summed over tiles of rows by Kahan's sum: columns x columns, ld as X. Only what lies on and
/// above the diagonal means something.
struct Gram {
  double *sum, *compensation;
};

/// A (rows x columns) and its factors.
struct Product {
  const double *a, *q, *r;  // rows x columns, rows x inner, inner x columns
  std::int64_t rows, columns, inner;
  std::int64_t q_ld;
  bool is_upper;  // R has nothing but zeros below its diagonal
};

/// The same source compiled for one instruction set.
struct Kernels {
  const char* target;
  /// Adds the products of `rows` rows; columns before `first` are zero in all of them.
  void (*add_gram)(const double* x, std::int64_t rows, std::int64_t columns, std::int64_t first,
                   const Gram& gram);
  /// to := from in float64. Gives the largest |from[i]| as the bits of a float32, or `largest`
  /// where that is larger; NaN is larger than infinity.
  std::uint32_t (*widen)(const float* from, std::int64_t count, double* to, std::uint32_t largest);
  /// sums (columns x columns) += A'A of `rows` rows of float32 that lie one behind the other, on
  /// and above the diagonal: in error by some 2^-24 of the columns' norms, being summed in float32.
  /// `columns` is a multiple of narrow_unit. Gives the largest |entry| as widen does.
  std::uint32_t (*add_narrow_gram)(const float* a, std::int64_t rows, std::int64_t columns,
                                   double* sums, std::uint32_t largest);
  /// The largest |from[i]| as its bits, or `largest` where that is larger; NaN is larger than
  /// infinity.
  std::int32_t (*largest_single)(const float* from, std::int64_t count, std::int32_t largest);
  std::int64_t (*largest_double)(const double* from, std::int64_t count, std::int64_t largest);
  /// ||A - QR||^2 of a few rows.
  double (*residual_squares)(const Product& product);
};

extern const Kernels generic_kernels;
extern const Kernels avx2_kernels, avx512_kernels;  // x86-64

/// Those that this processor has, widest first.
std::span<const Kernels* const> kernels();

}  // namespace qrtool::errors
