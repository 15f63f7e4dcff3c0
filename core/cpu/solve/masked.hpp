// SPDX-License-Identifier: Apache-2.0
// masked.hpp: R' and z of one matrix whose rows each right side weighs, or leaves out, for itself,
// for as many right sides as a SIMD vector has lanes. Private to core/cpu, compiled once for every
// instruction set (simd.hpp).
//
//   R'R = A'WA, R'z = A'Wb    W: weights of the rows for each lane, 0 for a row that is left out
//
// Weights are scaled by a power of four, which changes neither x nor its errors.
#pragma once

#include "core/cpu/solve/normal.hpp"

namespace qrtool::systems {
namespace {

/// Keeps weights and right sides, which the check reads, beside `columns`, which get R' and z.
template <class T>
class MaskedEquations : SolveArithmetic<T> {
  using Base = SolveArithmetic<T>;
  using Base::broadcast, Base::larger, Base::power, Base::square_roots;
  using typename Base::Int, typename Base::V, typename Base::VT;
  using InMemory = typename SystemColumns<T>::InMemory;

 public:
  MaskedEquations(const Shape& shape, SystemColumns<T>& columns,
                  typename SystemColumns<T>::Workspace& workspace)
      : s_(shape), columns_(columns) {
    if (!s_.is_masked) return;
    root_inverse_ = workspace.take(s_.n);
    weight_ = workspace.take(s_.m);
    root_ = workspace.take(s_.m);
    b_ = workspace.take(s_.m);
    weighted_ = workspace.take(s_.m * width);
  }

  /// Returns the root of the scaled weight of row i.
  V root(index_t i) const { return root_[i]; }
  /// Returns entry i of the scaled right sides, times that root.
  V b(index_t i) const { return b_[i]; }
  /// Returns the number of rows that count, without the rows of a penalty.
  V rows_used() const { return used_; }
  /// Returns f; the roots are 2^-f times the roots of the weights.
  Int exponent() const { return exponent_; }

  /// b_ := W^1/2 b 2^-e
  void load(const Pack<T>& pack) {
    load_weights(pack);
    const double* factors = pack.shared.row_factors;
    used_ = V{};
    columns_.read_right_sides(pack, {0, 1}, 0, s_.data_rows, [&](VT stored, index_t i, index_t) {
      const V x = __builtin_convertvector(stored, V), none = V{};
      const V factor = broadcast(factors == nullptr ? 1 : factors[i]);
      V counts = weight_[i] > 0 && factor != 0 ? broadcast(1) : none;
      if (s_.skips_missing) counts = x == x ? counts : none;
      weight_[i] = counts != 0 ? weight_[i] : none;
      root_[i] = counts != 0 ? root_[i] : none;
      b_[i] = counts != 0 ? x * factor * root_[i] : none;
      used_ += counts;
      columns_.raise_largest(s_.n, __builtin_convertvector(b_[i], VT));
    });
    for (index_t i = s_.data_rows; i < s_.m; ++i) {
      root_[i] = power(-exponent_);
      weight_[i] = root_[i] * root_[i];
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

  /// R'R = A'WA by Cholesky's method.
  void factor(const SharedMatrix& shared) {
    const index_t panels = columns_.panels_of(s_.n);
    for (index_t right = 0; right < panels; ++right) {
      weigh_panel(shared, right);
      for (index_t left = 0; left <= right; ++left) multiply_weighted(shared, left, right);
    }
    const batched::GramTiles<double, SystemColumns<T>> tiles(columns_);
    tiles.factor(panels, panels, [&](index_t left, index_t right, index_t o, index_t e) {
      return columns_.upper_row(left * width, right)[o * width + e];
    });
    for (index_t i = 0; i < s_.n; ++i) root_inverse_[i] = columns_.inverse(i);
  }

  /// R'z = A'Wb. It is one function, so that all right sides get their bits from the same
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
  /// Scales weights so that the largest of each right side is in [1/4, 1].
  void load_weights(const Pack<T>& pack) {
    exponent_ = Int{};
    for (index_t i = 0; i < s_.data_rows; ++i) weight_[i] = root_[i] = broadcast(1);
    if (pack.w.data == nullptr) return;
    V largest{};
    InMemory::read({pack.w.data, pack.w.ld, pack.w.stride}, pack.count, 1, s_.data_rows,
                   [&]<int N>(const VT* w, index_t, index_t i) {
                     for (int e = 0; e < N; ++e) {
                       weight_[i + e] = __builtin_convertvector(w[e], V);
                       largest = larger(largest, weight_[i + e]);
                     }
                   });
    constexpr int most = 500;  // so that power() takes twice as much
    const Int e =
        (reinterpret_cast<Int>(largest) >> Format<double>::mantissa) - (Format<double>::bias - 1);
    exponent_ = (e + 1) >> 1;
    exponent_ = exponent_ > most ? Int{} + most : exponent_ < -most ? Int{} - most : exponent_;
    const V down = power(-2 * exponent_);
    for (index_t i = 0; i < s_.data_rows; ++i) {
      weight_[i] *= down;
      root_[i] = square_roots(weight_[i]);
    }
  }

  /// weighted_ := W times four columns of A.
  void weigh_panel(const SharedMatrix& shared, index_t right) {
    for (index_t i = 0; i < s_.m; ++i)
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q)
        weighted_[i * width + q] = weight_[i] * shared.a[i * shared.ld + right * width + q];
  }
  /// Forms the 4 x 4 entries of A'WA that begin in row 4 left and column 4 right, as many of them
  /// at a time as fit the registers.
  [[gnu::noinline]] void multiply_weighted(const SharedMatrix& shared, index_t left,
                                           index_t right) {
    for (index_t first = 0; first < width; first += block) {
      V sums[width][block] = {};
      const double* x = shared.a + left * width;
      const V* y = weighted_ + first;
      for (index_t i = 0; i < s_.m; ++i, x += shared.ld, y += width) {
#pragma GCC unroll 4
        for (int q = 0; q < block; ++q)
#pragma GCC unroll 4
          for (int o = 0; o < width; ++o) sums[o][q] += x[o] * y[q];
      }
      for (index_t o = 0; o < columns_.columns_of(left); ++o)
        for (index_t q = 0; q < block; ++q)
          columns_.upper_row(left * width + o, right)[first + q] = sums[o][q];
    }
  }

  void multiply_right_side(const SharedMatrix& shared, index_t left) {
    V sums[width] = {};
    for (index_t i = 0; i < s_.m; ++i) {
      const V weighted = root_[i] * b_[i];
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o)
        sums[o] += shared.a[i * shared.ld + left * width + o] * weighted;
    }
    for (index_t o = 0; o < columns_.columns_of(left); ++o)
      columns_.upper_row(left * width + o, s_.n / width)[s_.n % width] = sums[o];
  }

  const Shape& s_;
  SystemColumns<T>& columns_;
  V *weight_ = nullptr, *root_ = nullptr, *b_ = nullptr;
  V* weighted_ = nullptr;      // four columns of W A
  V* root_inverse_ = nullptr;  // of the pivots of A'WA
  V used_{};
  Int exponent_{};
};

}  // namespace
}  // namespace qrtool::systems
