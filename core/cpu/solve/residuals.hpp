// SPDX-License-Identifier: Apache-2.0
// residuals.hpp: r = b - A x and g = A'r for as many systems as a SIMD vector has lanes. Private to
// core/cpu, compiled once for every instruction set (simd.hpp).
#pragma once

#include "core/cpu/solve/masked.hpp"
#include "core/cpu/solve/normal.hpp"

namespace qrtool::systems {
namespace {

/// The number of right sides that share a pass over A.
constexpr int group = 4;

/// Computes r and g. A and b come from the source of R': from memory, from `normal` or from
/// `masked`.
template <class T>
class Residuals : SolveArithmetic<T> {
  using Base = SolveArithmetic<T>;
  using Base::power;
  using typename Base::V, typename Base::VT;
  using InMemory = typename SystemColumns<T>::InMemory;

 public:
  Residuals(const Shape& shape, const SystemColumns<T>& columns, const NormalEquations<T>& normal,
            const MaskedEquations<T>& masked, typename SystemColumns<T>::Workspace& workspace)
      : s_(shape), columns_(columns), normal_(normal), masked_(masked) {
    gradient_ = workspace.take(group * s_.n);
    right_sides_ = workspace.take(tile_rows() * group);
    if (!s_.is_gram) tile_ = workspace.take(tile_rows() * s_.n);
  }

  /// The squares of the norms of r, of its data rows, and of b, which is scaled.
  struct Squares {
    V r{}, data{}, b{};
  };

  /// Computes r'r, b'b and the gradient of some right sides, at most `group`, in one pass over A.
  /// Entry i of solution q is x[i group + q]; `packed` has room for as many vectors as x.
  void find(const Pack<T>& pack, Sides sides, const V* x, V* packed) {
    stride_ = sides.count == 1 ? 1 : group;
    sides.count == 1 ? find_of<1>(pack, sides, x, packed) : find_of<group>(pack, sides, x, packed);
  }

  const Squares& squares(index_t q) const { return sums_[q]; }
  /// Returns entry i of A'r of right side q.
  V& gradient(index_t i, index_t q) const { return gradient_[i * stride_ + q]; }

 private:
  /// The vectors of A that are read at a time: they stay in the first-level cache.
  static constexpr index_t tile_vectors = 256;

  index_t tile_rows() const {
    if (s_.is_gram) return normal_.rows().run;
    const index_t rows = s_.n > 0 ? tile_vectors / s_.n : 1;
    return rows < 4 ? 4 : rows / 4 * 4;
  }

  /// Each vector of A is multiplied with all K right sides.
  template <int K>
  [[gnu::noinline]] void find_of(const Pack<T>& pack, Sides sides, const V* solutions, V* x) {
    // Vectors of one right side are close together.
    for (index_t i = 0; i < s_.n; ++i)
      for (int q = 0; q < K; ++q) {
        x[i * K + q] = q < sides.count ? solutions[i * group + q] : V{};
        gradient_[i * K + q] = V{};
      }
    for (int q = 0; q < K; ++q) sums_[q] = {};
    const index_t step = tile_rows();
    for (index_t row = 0; row < s_.m; row += step) {
      const index_t rows = s_.m - row < step ? s_.m - row : step;
      const Rows a = take_rows(pack, sides, row, rows);
      index_t i = 0;
      // Eight sums hide the latency of an addition.
      if (K == 1)
        for (; i + 8 <= rows; i += 8) add_rows<K, 8>(x, a, row, i);
      for (; i + 4 <= rows; i += 4) add_rows<K, 4>(x, a, row, i);
      for (; i < rows; ++i) add_rows<K, 1>(x, a, row, i);
    }
  }

  /// The address of the first of some rows of A, and the strides between rows and between panels.
  struct Rows {
    const V* data;
    index_t of_row, of_panel;
  };
  /// Returns the rows of A from `row` on, and puts their right sides into right_sides_.
  Rows take_rows(const Pack<T>& pack, Sides sides, index_t row, index_t rows) {
    if (s_.is_gram) {
      copy_right_sides(sides, row, rows);
      return {normal_.rows().data_of(0, row), width, normal_.rows().panel_vectors()};
    }
    if (s_.is_masked) {
      load_masked_rows(pack.shared, row, rows);
    } else {
      load_rows(pack, row, rows);
      load_right_sides(pack, sides, row, rows);
    }
    return {tile_, s_.n, width};
  }

  void load_rows(const Pack<T>& pack, index_t row, index_t rows) {
    InMemory::read({pack.a.data + row * pack.a.ld, pack.a.ld, pack.a.stride}, pack.count, rows,
                   s_.n, [&]<int N>(const VT* from, index_t i, index_t j) {
                     V* to = tile_ + i * s_.n + j;
#pragma GCC unroll 16
                     for (int e = 0; e < N; ++e) to[e] = __builtin_convertvector(from[e], V);
                   });
  }
  void load_masked_rows(const SharedMatrix& shared, index_t row, index_t rows) {
    for (index_t i = 0; i < rows; ++i) {
      for (index_t j = 0; j < s_.n; ++j)
        tile_[i * s_.n + j] = masked_.root(row + i) * shared.a[(row + i) * shared.ld + j];
      right_sides_[i * group] = masked_.b(row + i);
    }
  }

  /// Loads the right sides of a tile of rows, and scales them.
  [[gnu::always_inline]] void load_right_sides(const Pack<T>& pack, Sides sides, index_t row,
                                               index_t rows) {
    V down[group];
    for (index_t q = 0; q < group && q < sides.count; ++q)
      down[q] = power(-columns_.exponent(s_.n + sides.first + q));
    columns_.read_right_sides(pack, sides, row, rows, [&](VT x, index_t i, index_t j) {
      right_sides_[(i - row) * group + j - sides.first] =
          __builtin_convertvector(x, V) * down[j - sides.first];
    });
    for (index_t q = sides.count; q < group; ++q)
      for (index_t i = 0; i < rows; ++i) right_sides_[i * group + q] = V{};
  }

  void copy_right_sides(Sides sides, index_t row, index_t rows) {
    for (index_t q = 0; q < group; ++q) {
      const index_t j = s_.n + sides.first + q;
      const V* from =
          q < sides.count ? normal_.rows().data_of(j / width, row) + j % width : nullptr;
      for (index_t i = 0; i < rows; ++i)
        right_sides_[i * group + q] = q < sides.count ? from[i * width] * normal_.down(j) : V{};
    }
  }

  template <int K, int R>
  [[gnu::always_inline]] void add_rows(const V* x, const Rows& all, index_t row, index_t i) {
    const index_t of_row = all.of_row;
    const V* a = all.data + i * of_row;
    V r[R][K] = {};
    for (index_t p = 0; p < columns_.panels_of(s_.n); ++p)
      for (index_t c = 0; c < columns_.columns_of(p); ++c)
#pragma GCC unroll 8
        for (int o = 0; o < R; ++o)
#pragma GCC unroll 4
          for (int q = 0; q < K; ++q)
            r[o][q] -= a[p * all.of_panel + o * of_row + c] * x[(p * width + c) * K + q];
#pragma GCC unroll 8
    for (int o = 0; o < R; ++o) {
#pragma GCC unroll 4
      for (int q = 0; q < K; ++q) {
        const V b = right_sides_[(i + o) * group + q];
        r[o][q] += b;
        const V square = r[o][q] * r[o][q];
        sums_[q].b += b * b;
        sums_[q].r += square;
        if (row + i + o < s_.data_rows) sums_[q].data += square;
      }
    }
    for (index_t p = 0; p < columns_.panels_of(s_.n); ++p)
      for (index_t c = 0; c < columns_.columns_of(p); ++c)
#pragma GCC unroll 4
        for (int q = 0; q < K; ++q) {
          V sum = gradient_[(p * width + c) * K + q];
#pragma GCC unroll 8
          for (int o = 0; o < R; ++o) sum += a[p * all.of_panel + o * of_row + c] * r[o][q];
          gradient_[(p * width + c) * K + q] = sum;
        }
  }

  const Shape& s_;
  const SystemColumns<T>& columns_;
  const NormalEquations<T>& normal_;
  const MaskedEquations<T>& masked_;
  V *gradient_, *right_sides_;
  V* tile_ = nullptr;  // rows of A, one after the other
  index_t stride_ = 1;
  Squares sums_[group];
};

}  // namespace
}  // namespace qrtool::systems
