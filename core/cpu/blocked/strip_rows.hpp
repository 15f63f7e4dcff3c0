// SPDX-License-Identifier: Apache-2.0
// strip_rows.hpp: moves real or complex matrices between rows in memory and strips, whose rows have
// 32 numbers each. Private to core/cpu, compiled once for every instruction set (simd.hpp).
//
// A strip of a real matrix has 32 columns. One of a complex matrix has 16: a row of it has the real
// parts of all columns and then the imaginary ones; memory has re, im, re, im, ..
#pragma once

#include "core/cpu/blocked/matrix_kernel.hpp"
#include "core/simd/numbers.hpp"
#include "core/simd/products.hpp"

namespace qrtool::blocked {
namespace {

/// Returns the mask of the lanes of vector q of a row whose columns are at least `first`.
template <class Int>
Int lanes_from(index_t first, int q) {
  constexpr int lanes = sizeof(Int) / sizeof(Int{}[0]);
  Int column;
  for (int l = 0; l < lanes; ++l) column[l] = q * lanes + l;
  return column >= (Int{} + static_cast<decltype(Int{}[0] + 0)>(first));
}

template <class V, class Int>
V select(Int mask, V x) {
  return reinterpret_cast<V>(reinterpret_cast<Int>(x) & mask);
}

/// Matrices are stored in T and computed in C. Complex entries have two parts.
template <class T, class C, int parts>
class StripRows : protected Lanes<T, C> {
  using Base = Lanes<T, C>;

 protected:
  using Base::exponent_of, Base::infinity_bits, Base::lanes, Base::magnitude_bits,
      Base::split_power;
  using typename Base::Int, typename Base::IntT, typename Base::V, typename Base::VT;
  using Bits = typename Format<T>::Int;
  using UnalignedVT = typename VectorOf<T, lanes>::unaligned;

  /// The columns of a strip, and the vectors of a row: all of them, and those of one part.
  static constexpr index_t columns = width / parts;
  static constexpr int row_vectors = width / lanes, part_vectors = row_vectors / parts;

  StripRows(const Shape& shape, std::byte* workspace, index_t row_unit)
      : s_(shape),
        rows_(round_up(shape.m, row_unit)),
        strips_(strips_of(shape.n)),
        panels_(strips_of(shape.k)),
        workspace_(workspace) {}

  static V load(const C* x) { return Products<C>::load(x); }
  static void store(C* x, V value) { Products<C>::store(x, value); }
  static constexpr index_t strips_of(index_t count) { return (count + columns - 1) / columns; }
  /// Returns the numbers of a row of strip s of a matrix of `count` columns.
  static index_t numbers_of(index_t count, index_t s) {
    return parts * lesser(columns, count - s * columns);
  }

  /// Takes a part of the workspace. Without one it counts the bytes that are needed.
  template <class E>
  void take(E*& member, index_t count) {
    member = workspace_ == nullptr ? nullptr : reinterpret_cast<E*>(workspace_ + bytes_);
    bytes_ += static_cast<std::size_t>(round_up(count * static_cast<index_t>(sizeof(E)), 64));
  }
  void take_columns() {
    take(sign_, panels_ * columns);
    take(up_, 2 * strips_ * columns);
    take(largest_, strips_);
    take(r_fits_, strips_);
  }

  static int exponent_of_largest(Bits bits) {
    return static_cast<int>(exponent_of(IntT{} + bits)[0]);
  }
  static Bits largest_of(IntT bits) {
    Bits largest = 0;
    for (int l = 0; l < lanes; ++l) largest = bits[l] > largest ? bits[l] : largest;
    return largest;
  }

  /// Returns the outcome after all strips, or all up to one that is not finite.
  Outcome found() const {
    Bits largest = 0;
    bool r_fits = true;
    for (index_t s = 0; s < strips_; ++s) {
      if (largest_[s] >= infinity_bits) return {false, true, 0};
      largest = largest_[s] > largest ? largest_[s] : largest;
      r_fits &= r_fits_[s] != 0;
    }
    return {true, r_fits, exponent_of_largest(largest)};
  }

  void choose_sign(index_t i, C r_ii) {
    sign_[i] = s_.is_positive && i < s_.k && r_ii < 0 ? C(-1) : C(1);
  }

  /// The numbers of a row of a strip as vectors of T.
  struct Row {
    VT x[row_vectors];

    /// Reads `count` numbers, followed by zeros.
    [[gnu::always_inline]] void read(const T* from, index_t count) {
      if (count == width) {
        read(from);
      } else {
        T padded[width] = {};
        for (index_t j = 0; j < count; ++j) padded[j] = from[j];
        read(padded);
      }
    }
    [[gnu::always_inline]] void write(T* to, index_t count) const {
      if (count == width) {
        write(to);
      } else {
        alignas(64) T row[width];
        write(row);
        for (index_t j = 0; j < count; ++j) to[j] = row[j];
      }
    }
    [[gnu::always_inline]] void read(const T* from) {
#pragma GCC unroll 16
      for (int q = 0; q < row_vectors; q += parts) {
        VT pair[2];
#pragma GCC unroll 2
        for (int p = 0; p < parts; ++p)
          pair[p] = *reinterpret_cast<const UnalignedVT*>(from + (q + p) * lanes);
        if constexpr (parts == 1)
          x[q] = pair[0];
        else
          split_pair(pair, x[q / 2], x[part_vectors + q / 2], Lane());
      }
    }
    [[gnu::always_inline]] void write(T* to) const {
#pragma GCC unroll 16
      for (int q = 0; q < row_vectors; q += parts) {
        VT pair[2];
        if constexpr (parts == 1)
          pair[0] = x[q];
        else
          join_pair(x[q / 2], x[part_vectors + q / 2], pair, Lane());
#pragma GCC unroll 2
        for (int p = 0; p < parts; ++p)
          *reinterpret_cast<UnalignedVT*>(to + (q + p) * lanes) = pair[p];
      }
    }

   private:
    using Lane = std::make_integer_sequence<int, lanes>;
    template <int... e>
    [[gnu::always_inline]] static void split_pair(const VT (&pair)[2], VT& re, VT& im,
                                                  std::integer_sequence<int, e...>) {
      re = __builtin_shufflevector(pair[0], pair[1], 2 * e...);
      im = __builtin_shufflevector(pair[0], pair[1], 2 * e + 1 ...);
    }
    template <int... e>
    [[gnu::always_inline]] static void join_pair(const VT& re, const VT& im, VT (&pair)[2],
                                                 std::integer_sequence<int, e...>) {
      pair[0] = __builtin_shufflevector(re, im, (e % 2 * lanes + e / 2)...);
      pair[1] = __builtin_shufflevector(re, im, (e % 2 * lanes + lanes / 2 + e / 2)...);
    }
  };

  /// Prefetches the strip's part of a later row. It is in another page, so that the processor would
  /// not prefetch it.
  template <int is_write>
  static void prefetch(const T* row, index_t ld) {
    constexpr index_t ahead = 16, line = 64;
    const auto at = reinterpret_cast<std::uintptr_t>(row + ahead * ld);
    for (index_t b = 0; b < width * static_cast<index_t>(sizeof(T)); b += line)
      __builtin_prefetch(reinterpret_cast<const void*>(at + static_cast<std::uintptr_t>(b)),
                         is_write);
  }

  /// Loads strip s of A D with D = diag(2^-e_j), and finds its largest number and 2^e_j of every
  /// column.
  [[gnu::noinline]] void load_strip(const Strided<const T>& a, index_t s, C* strip) {
    const T* from = a.data + s * width;
    const index_t numbers = numbers_of(s_.n, s);
    IntT largest[part_vectors] = {};
    for (index_t i = 0; i < s_.m; ++i) {
      prefetch<0>(from + i * a.ld, a.ld);
      Row row;
      row.read(from + i * a.ld, numbers);
#pragma GCC unroll 16
      for (int q = 0; q < row_vectors; ++q) {
        const IntT bits = magnitude_bits(row.x[q]);
        IntT& of_column = largest[q % part_vectors];
        of_column = bits > of_column ? bits : of_column;
        store(strip + i * width + q * lanes, __builtin_convertvector(row.x[q], V));
      }
    }
    IntT most{};
    V down[part_vectors][2];
#pragma GCC unroll 16
    for (int q = 0; q < part_vectors; ++q) {
      most = largest[q] > most ? largest[q] : most;
      const Int e = __builtin_convertvector(exponent_of(largest[q]), Int);
      V up[2];
      split_power(-e, down[q]);
      split_power(e, up);
      for (int f = 0; f < 2; ++f) store(up_ + (2 * s + f) * columns + q * lanes, up[f]);
    }
    for (index_t i = 0; i < s_.m; ++i) {
      C* row = strip + i * width;
#pragma GCC unroll 16
      for (int q = 0; q < row_vectors; ++q) {
        const V* const factors = down[q % part_vectors];
        store(row + q * lanes, load(row + q * lanes) * factors[0] * factors[1]);
      }
    }
    for (index_t i = s_.m * width; i < rows_ * width; i += lanes) store(strip + i, V{});
    largest_[s] = largest_of(most);
  }

  /// Computes row i of R D^-1 from a row of strip s. Numbers are rounded once, and adding 0 turns
  /// -0 into +0. Numbers left of the diagonal are zero: a real strip has V there, a complex one
  /// zeros.
  Row upper_row(index_t i, index_t s, C sign, const C* from) {
    Row row;
    IntT fits = ~IntT{};
    for (int q = 0; q < row_vectors; ++q) {
      const C* const up = up_ + 2 * s * columns + q % part_vectors * lanes;
      V y = load(from + q * lanes) * sign * load(up) * load(up + columns);
      if (parts == 1) y = select(lanes_from<Int>(i - s * columns, q), y);
      row.x[q] = __builtin_convertvector(y, VT) + VT{};
      fits &= magnitude_bits(row.x[q]) < infinity_bits;
    }
    if (any(~fits)) r_fits_[s] = 0;
    return row;
  }

  /// Stores strip s of R, whose row i is at row_of(i).
  template <class RowOf>
  [[gnu::noinline]] void store_r(const Strided<T>& r, index_t s, RowOf row_of) {
    const index_t numbers = numbers_of(s_.n, s), upper = lesser(s_.k, (s + 1) * columns);
    T* to = r.data + s * width;
    r_fits_[s] = 1;
    for (index_t i = 0; i < upper; ++i) {
      prefetch<1>(to + i * r.ld, r.ld);
      upper_row(i, s, sign_[i], row_of(i)).write(to + i * r.ld, numbers);
    }
    for (index_t i = upper; i < s_.r_rows; ++i)
      __builtin_memset(to + i * r.ld, 0, static_cast<std::size_t>(numbers) * sizeof(T));
  }

  [[gnu::noinline]] void store_q(const Strided<T>& out, index_t s, const C* q) const {
    const index_t numbers = numbers_of(s_.q_cols, s);
    V sign[part_vectors];
    for (int c = 0; c < part_vectors; ++c)
      sign[c] = s < panels_ ? load(sign_ + s * columns + c * lanes) : V{} + 1;
    for (index_t i = 0; i < s_.m; ++i) {
      Row row;
      prefetch<1>(out.data + i * out.ld + s * width, out.ld);
#pragma GCC unroll 16
      for (int c = 0; c < row_vectors; ++c)
        row.x[c] =
            __builtin_convertvector(load(q + i * width + c * lanes) * sign[c % part_vectors], VT);
      row.write(out.data + i * out.ld + s * width, numbers);
    }
  }

  /// Stores V\R, with V in the strip and row i of R at row_of(i), and tau_of(j) for the columns j
  /// of strip s. If V was rounded, tau is computed from the rounded V, so that I - tau v v^H is
  /// unitary to the last bit of T.
  template <class RowOf, class TauOf>
  [[gnu::noinline]] void store_reflectors(const Matrix<T>& matrix, index_t s, const C* strip,
                                          RowOf row_of, TauOf tau_of) {
    const index_t first = s * columns, numbers = numbers_of(s_.n, s);
    r_fits_[s] = 1;
    C squares[columns];
    for (C& square : squares) square = 1;
    for (index_t i = 0; i < s_.m; ++i) {
      T row[width] = {};
      if (i < lesser(s_.k, first + columns)) upper_row(i, s, 1, row_of(i)).write(row);
      for (index_t j = 0; j < lesser(numbers / parts, i - first); ++j)
        for (index_t part = 0; part < parts; ++part) {
          const T x = row[parts * j + part] = static_cast<T>(strip[i * width + part * columns + j]);
          squares[j] += static_cast<C>(x) * static_cast<C>(x);
        }
      __builtin_memcpy(matrix.v.data + i * matrix.v.ld + s * width, row,
                       static_cast<std::size_t>(numbers) * sizeof(T));
    }
    for (index_t j = 0; j < lesser(numbers / parts, s_.k - first); ++j) {
      Entry<C, parts> tau = tau_of(j);
      if (sizeof(T) < sizeof(C)) tau = tau_for(tau, squares[j]);
      for (int part = 0; part < parts; ++part)
        matrix.tau.data[parts * (first + j) + part] = static_cast<T>(part_of(tau, part));
    }
  }

  const Shape s_;
  const index_t rows_;             // m with the padding
  const index_t strips_, panels_;  // all strips of A, and the strips with reflectors
  std::byte* workspace_;
  std::size_t bytes_ = 0;  // of the workspace
  C* sign_;                // the sign of R_ii
  C* up_;                  // 2^e_j as two factors for every strip
  Bits* largest_;          // the largest number of every strip, as bits
  int* r_fits_;            // for every strip
};

}  // namespace
}  // namespace qrtool::blocked
