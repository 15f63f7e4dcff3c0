// SPDX-License-Identifier: Apache-2.0
// matrix_gram.hpp: R alone of one matrix with at least twice as many rows as columns, as the
// Cholesky factor of A'A (LAPACK syrk, potrf), where a guard allows it. Private to core/cpu,
// compiled once for every instruction set (simd.hpp).
//
//     G := A'A         squares of 32 x 32 in strips of 32 columns        products.hpp
//     R'R = G          square by square, strip by strip
//     Y := R^-T        strip by strip, for the guard
//
// Let e be 2^-24 or 2^-53, d_j the norm of column j, D = diag(d_j), and c = 36 + m / 32 + n.
//
// 1. For every matrix without overflow and underflow |A'A - R'R|_ij <= c e d_i d_j to first order
// in e, and therefore ||A'A - R'R|| <= c e ||A||^2. Proof: an entry of G is a sum of 32 products,
// which is added to m / 32 other such sums, so that its error is at most (33 + m / 32) e d_i d_j.
// An entry of R'R differs from that of G by at most (n + 2) e d_i d_j (Higham 2002, theorem 10.3;
// one more rounding for the reciprocal of the diagonal). With e = u / 2 the bar is 2 m e for m <=
// 30 n, and c <= 2 m from 36 rows on where n <= m / 2. Up to 32 n rows 60 n is also more than c.
//
// 2. There is a Q with orthonormal columns and ||(A - QR) D^-1|| <= c e n ||D R^-1|| / 2 to first
// order in e. Proof: let A = Q0 R0 and M = R'R - A'A, and let W P be the polar decomposition of R0
// R^-1. Then P^2 = I - R^-T M R^-1, and with Q = Q0 W the difference A - QR = Q (P - I) R is about
// -Q R^-T M / 2, where ||D^-1 M D^-1|| <= c e n by 1. The guard accepts ||D R^-1||^2 <= 16 n in the
// Frobenius norm. Orthogonal columns have n, Gaussian matrices n m / (m - n - 1), and uniform
// entries in [0, 1] four times that. The sum of d_j^2 / R_jj^2 is a part of ||D R^-1||^2, so that
// most matrices that are refused are refused before Y is formed.
//
// Measured by column over 33 attack families (tests/core/attack_test.cpp), 129x64, 300x101, 256x128
// and 2000x70: 2.3 e on average where the guard accepts, and at most 23 e, for entries without
// signs close to the guard. The bar is 2 m e.
//
// 3. Columns with squared norms below `least_square` are refused, so that products that underflow
// do not matter, and so are matrices with NaN, infinity or an overflow of a squared norm.
#pragma once

#include "core/simd/products.hpp"

namespace qrtool::blocked {
namespace {

template <class C>
class GramR {
  using V = typename Products<C>::V;
  static constexpr index_t square = width * width;
  static constexpr int lanes = Products<C>::lanes, row_vectors = width / lanes;

 public:
  /// Whether A'A may be faster. With fewer columns a pack of cpu/batched is as fast, and larger
  /// matrices are shared by threads if reflectors are used.
  static bool fits(index_t m, index_t n) {
    constexpr index_t least_columns = 64, most_entries = 512 * 512;
    return n >= least_columns && m >= 2 * n && m * n <= most_entries;
  }

  /// The rows of A that are added at a time. They stay in the second-level cache.
  static constexpr index_t most_rows = 128;

  /// Returns the number of entries of C that the workspace has for n columns.
  static constexpr index_t entries(index_t n) {
    const index_t strips = strips_of(n);
    return strips * width * (most_rows + (strips + 1) * width + 2);
  }

  GramR(index_t n, C* workspace) : n_(n), strips_(strips_of(n)) {
    a_ = workspace;
    r_ = a_ + strips_ * width * most_rows;
    y_ = r_ + strips_ * strips_ * square;
    norms_ = y_ + strips_ * square;
    inverse_ = norms_ + strips_ * width;
    for (index_t s = 0; s < strips_; ++s)
      for (C* e = square_of(0, s); e < square_of(s + 1, s); e += lanes) store(e, V{});
  }

  /// The place of some rows of strip s of A, of 32 entries each, for the caller to fill before
  /// add_rows(). Columns beyond n are zero.
  C* strip(index_t s) const { return a_ + s * width * most_rows; }

  /// G += A'A for the rows in the strips.
  [[gnu::noinline]] void add_rows(index_t rows) {
    for (index_t s = 0; s < strips_; ++s) {
      for (index_t t = 0; t <= s; ++t) {
        if (t < s || row_vectors <= 2) {
          Products<C>::add_products(rows, width, strip(t), strip(s), row_vectors, square_of(t, s));
        } else {
          add_upper_products(rows, strip(s), square_of(s, s));
        }
      }
    }
  }

  /// Whether the rows in the strips suggest that the guard will refuse R, as for columns with a
  /// common mean. It is judged by 16 columns, before the time for A'A is spent.
  bool looks_refused(index_t rows) const {
    constexpr int vectors = row_vectors / 2;
    alignas(64) C norms[leaf], inverse[leaf];
    for (index_t i = 0; i < leaf; ++i)
      for (int q = 0; q < vectors; ++q) store(y_ + i * width + q * lanes, V{});
    Products<C>::add_products(rows, leaf, strip(0), strip(0), vectors, y_);
    for (index_t j = 0; j < leaf; ++j) norms[j] = y_[j * (width + 1)];
    if (!factor_half<vectors>(y_, inverse)) return true;
    C sum = 0;
    for (index_t j = 0; j < leaf; ++j) sum += norms[j] * inverse[j] * inverse[j];
    return !(sum <= most_condition * leaf);
  }

  /// Forms R after all rows. Returns false if the guard refuses it.
  bool factor() {
    const C most = most_condition * static_cast<C>(n_);
    return keep_norms() && factor_squares(most) && squared_condition() <= most;
  }

  /// Returns row i of R, whose entries from column 32 (i / 32) on are defined.
  const C* row(index_t i, index_t s) const { return r_ + (s * strips_ * width + i) * width; }

 private:
  static constexpr C most_condition = 16;
  static constexpr C least_square = sizeof(C) == 4 ? C(0x1p-60) : C(0x1p-600);

  static constexpr index_t strips_of(index_t columns) { return (columns + width - 1) / width; }
  static V load(const C* x) { return Products<C>::load(x); }
  static void store(C* x, V value) { Products<C>::store(x, value); }

  /// Returns the 32 x 32 entries of R in block row t of strip s.
  C* square_of(index_t t, index_t s) const { return r_ + (s * strips_ + t) * square; }

  /// Adds X'X without its lower left quarter.
  static void add_upper_products(index_t rows, const C* x, C* to) {
    constexpr index_t half = width / 2;
    Products<C>::add_products(rows, half, x, x, row_vectors, to);
    Products<C>::add_products(rows, half, x + half, x + half, row_vectors / 2,
                              to + half * width + half);
  }

  /// Keeps the norms of the columns, and gives a diagonal to the columns beyond n.
  bool keep_norms() {
    bool are_normal = true;
    for (index_t j = 0; j < strips_ * width; ++j) {
      C& entry = square_of(j / width, j / width)[j % width * (width + 1)];
      norms_[j] = j < n_ ? square_root(entry) : C(0);
      if (j >= n_) entry = 1;
      are_normal &= j >= n_ || (entry >= least_square && entry - entry == 0);
    }
    return are_normal;
  }

  /// Returns false if a pivot is not positive, or if ||D R^-1||^2 is above `most`.
  [[gnu::noinline]] bool factor_squares(C most) {
    C condition = 0;
    for (index_t s = 0; s < strips_; ++s) {
      for (index_t t = 0; t <= s; ++t) {
        C* b = square_of(t, s);
        if (t > 0) subtract_products(t * width, square_of(0, t), square_of(0, s), all, b);
        if (t < s) {
          solve(t, b);
        } else if (!factor_square(t)) {
          return false;
        }
      }
      for (index_t j = s * width; j < (s + 1) * width; ++j) {
        const C ratio = norms_[j] * inverse_[j];
        condition += ratio * ratio;
      }
      if (!(condition <= most)) return false;
    }
    return true;
  }

  /// The number of columns of X, and of vectors in the columns of Y.
  struct Size {
    index_t columns;
    int vectors;
  };
  static constexpr Size all{width, row_vectors};

  /// B -= X'Y
  static void subtract_products(index_t rows, const C* x, const C* y, Size size, C* b) {
    alignas(64) C w[square];
    for (index_t e = 0; e < size.columns * width; e += lanes) store(w + e, V{});
    Products<C>::add_products(rows, size.columns, x, y, size.vectors, w);
    for (index_t i = 0; i < size.columns * width; i += width)
      for (int q = 0; q < size.vectors; ++q)
        store(b + i + q * lanes, load(b + i + q * lanes) - load(w + i + q * lanes));
  }

  /// B := R^-T B for the upper triangle R on the diagonal of block row t, in two halves of 16 rows.
  [[gnu::noinline]] void solve(index_t t, C* b) const {
    const C *r = square_of(t, t), *inverse = inverse_ + t * width;
    solve_half(r, inverse, b);
    subtract_products(leaf, r + leaf, b, {leaf, row_vectors}, b + leaf * width);
    solve_half(r + leaf * (width + 1), inverse + leaf, b + leaf * width);
  }

  /// Solves for 16 rows, which are in registers for a vector of columns.
  static void solve_half(const C* r, const C* inverse, C* b) {
#pragma GCC unroll 1
    for (int q = 0; q < row_vectors; ++q) {
      V x[leaf];
#pragma GCC unroll 16
      for (index_t i = 0; i < leaf; ++i) x[i] = load(b + i * width + q * lanes);
#pragma GCC unroll 16
      for (index_t k = 0; k < leaf; ++k) {
        x[k] *= inverse[k];
#pragma GCC unroll 16
        for (index_t i = k + 1; i < leaf; ++i) x[i] -= r[k * width + i] * x[k];
      }
#pragma GCC unroll 16
      for (index_t i = 0; i < leaf; ++i) store(b + i * width + q * lanes, x[i]);
    }
  }

  /// B := R with R'R = B, in two halves of 16 rows. Below the diagonal it is undefined. Returns
  /// false if a pivot is not positive.
  [[gnu::noinline]] bool factor_square(index_t t) {
    C *b = square_of(t, t), *inverse = inverse_ + t * width;
    C* const last = b + leaf * (width + 1);
    if (!factor_half<row_vectors>(b, inverse)) return false;
    subtract_products(leaf, b + leaf, b + leaf, {leaf, row_vectors / 2}, last);
    return factor_half<row_vectors / 2>(last, inverse + leaf);
  }

  template <int vectors>
  static bool factor_half(C* b, C* inverse) {
    for (index_t k = 0; k < leaf; ++k) {
      C* row = b + k * width;
      if (!(row[k] > 0)) return false;
      inverse[k] = 1 / square_root(row[k]);
      V x[vectors];
#pragma GCC unroll 4
      for (int q = 0; q < vectors; ++q) {
        x[q] = load(row + q * lanes) * inverse[k];
        store(row + q * lanes, x[q]);
      }
      for (index_t i = k + 1; i < leaf; ++i) {
#pragma GCC unroll 4
        for (int q = 0; q < vectors; ++q) {
          C* at = b + i * width + q * lanes;
          store(at, load(at) - row[i] * x[q]);
        }
      }
    }
    return true;
  }

  /// Returns ||D R^-1||^2 from the strips of Y = R^-T: R_ss' Y_s = E_s - sum over l < s of R_ls'
  /// Y_l.
  [[gnu::noinline]] C squared_condition() {
    C sum = 0;
    for (index_t t = 0; t < strips_; ++t) {
      for (index_t s = t; s < strips_; ++s) {
        C* y = y_ + (s - t) * square;
        for (index_t e = 0; e < square; e += lanes) store(y + e, V{});
        if (s == t)
          for (index_t e = 0; e < width; ++e) y[e * (width + 1)] = 1;
        if (s > t) subtract_products((s - t) * width, square_of(t, s), y_, all, y);
        solve(s, y);
      }
      sum += sum_of_squares((strips_ - t) * width, norms_ + t * width);
    }
    return sum;
  }

  /// Returns the sum of the squares of Y D for one strip.
  C sum_of_squares(index_t rows, const C* d) const {
    V squares[row_vectors] = {};
    for (index_t i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (int q = 0; q < row_vectors; ++q) {
        const V x = load(y_ + i * width + q * lanes) * load(d + q * lanes);
        squares[q] += x * x;
      }
    }
    C sum = 0;
    for (int q = 0; q < row_vectors; ++q)
      for (int l = 0; l < lanes; ++l) sum += squares[q][l];
    return sum;
  }

  const index_t n_, strips_;
  C *a_, *r_;   // strips of some rows of A, and of R
  C* y_;        // a strip of R^-T from its diagonal on
  C* norms_;    // of the columns of A
  C* inverse_;  // 1 / R_jj
};

}  // namespace
}  // namespace qrtool::blocked
