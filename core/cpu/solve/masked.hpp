// SPDX-License-Identifier: Apache-2.0
// masked.hpp: R' and z of one matrix without some of its rows, those in which a right side has
// none, for as many right sides as a SIMD vector has lanes. Private to core/cpu, compiled once for
// every instruction set (simd.hpp).
//
//   R'R = A'MA, R'z = A'Mb    M: a mask of ones and zeros for each lane
#pragma once

#include "core/cpu/solve/arithmetic.hpp"
#include "core/cpu/solve/system_columns.hpp"

namespace qrtool::systems {
namespace {

/// Keeps masks and right sides, which the check reads, beside `columns`, which get R' and z.
template <class T>
class MaskedEquations : SolveArithmetic<T> {
  using Base = SolveArithmetic<T>;
  using Base::broadcast, Base::power, Base::square_roots;
  using typename Base::Int, typename Base::V, typename Base::VT;

 public:
  MaskedEquations(const Shape& shape, SystemColumns<T>& columns,
                  typename SystemColumns<T>::Workspace& workspace)
      : s_(shape), columns_(columns) {
    if (!s_.is_masked) return;
    root_inverse_ = workspace.take(s_.n);
    mask_ = workspace.take(s_.m);
    b_ = workspace.take(s_.m);
  }

  V mask(index_t i) const { return mask_[i]; }
  /// Returns entry i of the scaled right sides.
  V b(index_t i) const { return b_[i]; }
  /// Returns the number of rows that count, without the rows of a penalty.
  V rows_used() const { return used_; }

  /// b_ := b 2^-e, and mask_ := 1 in the rows that count, 0 in all others.
  void load(const Pack<T>& pack) {
    const double* factors = pack.shared.row_factors;
    used_ = V{};
    columns_.read_right_sides(pack, {0, 1}, 0, s_.data_rows, [&](VT stored, index_t i, index_t) {
      const V x = __builtin_convertvector(stored, V);
      const bool counts = factors == nullptr || factors[i] != 0;
      mask_[i] = counts ? (x == x ? broadcast(1) : V{}) : V{};
      b_[i] = mask_[i] != 0 ? x * (factors == nullptr ? 1 : factors[i]) : V{};
      used_ += mask_[i];
      columns_.raise_largest(s_.n, __builtin_convertvector(b_[i], VT));
    });
    for (index_t i = s_.data_rows; i < s_.m; ++i) {
      mask_[i] = broadcast(1);
      b_[i] = V{};
    }
    // Columns of A are not scaled: an entry of 1/2 has the exponent 0.
    for (index_t j = 0; j < s_.n; ++j) {
      columns_.reset_largest(j);
      columns_.raise_largest(j, VT{} + T(0.5));
    }
    columns_.find_scale();
    // A right side that is not finite must not reach R, which the next one in its lane may share.
    const Int keep = columns_.is_finite();
    const V down = power(-columns_.exponent(s_.n));
    for (index_t i = 0; i < s_.data_rows; ++i) b_[i] = keep ? b_[i] * down : V{};
  }

  /// R'R = A'MA with the mask M, by Cholesky's method.
  void factor(const SharedMatrix& shared) {
    const index_t n = s_.n, panels = columns_.panels_of(n);
    for (index_t right = 0; right < panels; ++right)
      for (index_t left = 0; left <= right; ++left) multiply_masked(shared, left, right);
    for (index_t i = 0; i < n; ++i) {
      const V inverse = root_inverse_[i] = 1 / square_roots(columns_.r_at(i, i));
      for (index_t p = i / width; p < panels; ++p)
        for (index_t q = 0; q < width; ++q) columns_.upper_row(i, p)[q] *= inverse;
      for (index_t j = i + 1; j < n; ++j) {
        const V factor = columns_.r_at(i, j);
        for (index_t p = j / width; p < panels; ++p) {
          const V* from = columns_.upper_row(i, p);
          V* to = columns_.upper_row(j, p);
#pragma GCC unroll 4
          for (index_t q = 0; q < width; ++q) to[q] -= factor * from[q];
        }
      }
    }
  }

  /// R'z = A'Mb. In one function, so that all right sides get their bits from the same
  /// instructions.
  [[gnu::noinline]] void find_z(const SharedMatrix& shared) {
    for (index_t left = 0; left < columns_.panels_of(s_.n); ++left)
      multiply_right_side(shared, left);
    const auto z = [&](index_t i) -> V& {
      return columns_.upper_row(i, s_.n / width)[s_.n % width];
    };
    for (index_t i = 0; i < s_.n; ++i) {
      const V known = z(i) *= root_inverse_[i];
      for (index_t j = i + 1; j < s_.n; ++j) z(j) -= columns_.r_at(i, j) * known;
    }
  }

 private:
  /// Forms the 4 x 4 entries of A'MA that begin in row 4 left and column 4 right.
  [[gnu::noinline]] void multiply_masked(const SharedMatrix& shared, index_t left, index_t right) {
    V sums[width][width] = {};
    for (index_t i = 0; i < s_.m; ++i) {
      const double *row = shared.a + i * shared.ld, *x = row + left * width,
                   *y = row + right * width;
      const V mask = mask_[i];
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q) {
        const V masked = mask * y[q];
#pragma GCC unroll 4
        for (int o = 0; o < width; ++o) sums[o][q] += x[o] * masked;
      }
    }
    for (index_t o = 0; o < columns_.columns_of(left); ++o)
      for (int q = 0; q < width; ++q) columns_.upper_row(left * width + o, right)[q] = sums[o][q];
  }

  void multiply_right_side(const SharedMatrix& shared, index_t left) {
    V sums[width] = {};
    for (index_t i = 0; i < s_.m; ++i)
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o) sums[o] += shared.a[i * shared.ld + left * width + o] * b_[i];
    for (index_t o = 0; o < columns_.columns_of(left); ++o)
      columns_.upper_row(left * width + o, s_.n / width)[s_.n % width] = sums[o];
  }

  const Shape& s_;
  SystemColumns<T>& columns_;
  V *mask_ = nullptr, *b_ = nullptr;
  V* root_inverse_ = nullptr;  // of the pivots of A'MA
  V used_{};
};

}  // namespace
}  // namespace qrtool::systems
