// SPDX-License-Identifier: Apache-2.0
// strip_kernel.hpp: the matrix products that measure a factorization, in float64, on matrices that
// are packed in strips of 32 columns. Private to core.
//
// A strip has rows of 32 numbers without gaps, and is aligned to 64 bytes. The columns of the last
// strip are padded with zeros to a multiple of `unit`; what follows them is never read.
#pragma once

#include <cstdint>
#include <span>

namespace qrtool::strips {

using index_t = std::int64_t;

inline constexpr index_t width = 32;
/// Columns, and the rows of A and Q, are padded to multiples of this number.
inline constexpr index_t unit = 8;
/// The number of rows in a tile. Plain sums of a run of products are added to each other, and the
/// sum of a tile is then added to a compensated sum.
inline constexpr index_t tile_rows = 256;

/// Rows of a matrix, and the strips that they are packed in.
template <class T>
struct Rows {
  const T* from;
  index_t ld, rows, columns;
  double half, rest;   // the factors that every entry is multiplied by
  double* to;          // the place of the first row in the first strip
  index_t strip_size;  // from one strip to the next
};

/// Describes the 32 x 32 entries of V'C for two strips, which are summed by Kahan's method over
/// tiles of rows.
struct Gram {
  const double *v, *c;  // rows x 32
  index_t rows, v_columns, c_columns;
  index_t run;         // products in a plain sum; 32 at most
  bool on_diagonal;    // v and c are one strip, and what is left of the diagonal may be left out
  double *sum, *lost;  // 32 x 32: the sum, and what its rounding lost. Where `lost` is null, the
                       // rows are one tile, whose sum is stored.
};

/// The columns of A in some strips, and the factors they should be equal to.
struct Residual {
  const double* q;
  index_t q_strip_size;
  const double* r;  // its strips from the first of A's columns on
  index_t r_strip_size;
  double* a;  // overwritten by A - QR
  index_t a_strip_size;
  index_t rows, columns, inner;  // rows: a multiple of `unit`
  index_t first_column;          // a multiple of 32
  index_t run;                   // products in a plain sum, a power of two, at most 128
  bool is_upper;                 // all entries of R below its diagonal are zero
};

/// A square of a symmetric matrix. Only its entries on and above the diagonal are stored.
struct Square {
  const double *x, *y;  // 32 x 32; y may be null
  index_t rows, columns;
  double identity;  // 1 where I is to be subtracted from the matrix, otherwise 0
  bool on_diagonal;
};

/// Rows [first, end) of R in strips.
struct Triangle {
  const double* r;
  index_t strip_size, columns, first, end;
};

/// The reflectors I - tau_j v_j v_j^H of a matrix, and the place for Q. Complex numbers are two
/// numbers, re and im, in neighbouring columns.
struct Reflectors {
  double* v;  // in strips; its entries on and above the diagonal, and beyond the last column,
              // become those of V. Complex ones are zero up to a multiple of 16 columns.
  index_t v_strip_size;
  const double* tau;  // padded with zeros to a multiple of `unit` reflectors
  double* q;          // in strips
  index_t q_strip_size;
  index_t rows, count, columns;  // rows: a multiple of `unit`; columns of Q, in real numbers
  bool is_complex;
};

/// The functions of strip_kernel.cpp, compiled for one instruction set.
struct Kernels {
  const char* target;
  /// Packs rows, followed by rows of zeros up to a multiple of `unit`. Returns the sum of the
  /// squares of the packed numbers.
  double (*pack_single)(const Rows<float>& rows);
  double (*pack_double)(const Rows<double>& rows);
  void (*add_gram)(const Gram& gram);
  /// Returns ||A - QR||^2.
  double (*residual_squares)(const Residual& residual);
  /// Returns the part of ||X - Y - I||^2 that the entries of a square and their mirror images have.
  double (*square_squares)(const Square& square);
  /// Returns the sum of the squares of the entries below R's diagonal.
  double (*squares_below_diagonal)(const Triangle& triangle);
  /// Replaces Q by H_1 .. H_k Q, where Q is I.
  void (*apply_reflectors)(const Reflectors& reflectors);
};

extern const Kernels generic_strips;
extern const Kernels avx2_strips, avx512_strips;  // x86-64

/// Returns the kernels for the instruction sets of this processor, the widest first.
std::span<const Kernels* const> kernels();

}  // namespace qrtool::strips
