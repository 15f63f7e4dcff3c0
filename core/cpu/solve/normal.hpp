// SPDX-License-Identifier: Apache-2.0
// normal.hpp: R' and z of as many systems as a SIMD vector has lanes by A'A, which is formed while
// A and b come into the cache. Private to core/cpu, compiled once for every instruction set
// (simd.hpp).
//
//   R'^T R' = A'^T A', R'^T z = A'^T b'   sums over rows, less those over the rows of R' above
//
// A tile of 4 x 4 entries of R' is computed at a time. Errors: solution_kernel.cpp.
#pragma once

#include "core/cpu/batched/gram_tiles.hpp"
#include "core/cpu/solve/arithmetic.hpp"
#include "core/cpu/solve/system_columns.hpp"

namespace qrtool::systems {
namespace {

using batched::block;

/// Keeps A and b, which the check reads, beside `columns`, which get R' and z.
template <class T>
class NormalEquations : SolveArithmetic<T> {
  using Base = SolveArithmetic<T>;
  using Base::power;
  using typename Base::V, typename Base::VT;
  using Rows = batched::GramRows<T, double, SystemColumns<T>>;

 public:
  NormalEquations(const Shape& shape, SystemColumns<T>& columns,
                  typename SystemColumns<T>::Workspace& workspace)
      : s_(shape),
        columns_(columns),
        rows_(s_.m, s_.is_gram ? s_.n + s_.p : 0, columns, workspace) {
    if (s_.is_gram) down_ = workspace.take(columns_.panels_of(s_.n + s_.p) * width);
  }

  const Rows& rows() const { return rows_; }
  /// Returns 2^-e of column j of A and b.
  V down(index_t j) const { return down_[j]; }

  /// Loads the data, and sums A'A in the place of R': rows that have just been loaded are
  /// multiplied.
  void load(const Pack<T>& pack) {
    const index_t columns = s_.n + s_.p, panels = columns_.panels_of(s_.n);
    const index_t all = columns_.panels_of(columns);
    const index_t thin = columns % width == 1 && s_.n % width == 0 ? all - 1 : -1;
    rows_.clear();
    for (index_t first = 0; first < s_.m; first += rows_.run) {
      const index_t rows = s_.m - first < rows_.run ? s_.m - first : rows_.run;
      rows_.load(pack.a, pack.count, first, rows, s_.n);
      columns_.read_right_sides(pack, {0, s_.p}, first, rows, [&](VT x, index_t i, index_t j) {
        rows_.template keep<1>(&x, i, s_.n + j);
      });
      rows_.multiply(first, rows, {0, all}, panels, thin);
    }
    columns_.find_scale();
    for (index_t j = 0; j < all * width; ++j)
      down_[j] = j < columns ? power(-columns_.exponent(j)) : V{};
  }

  /// Factors A'^T A', which is A^T A scaled, beside its right sides.
  void factor() {
    const batched::GramTiles<double, SystemColumns<T>> tiles(columns_);
    tiles.factor(columns_.panels_of(s_.n), columns_.panels_of(s_.n + s_.p),
                 [&](index_t left, index_t right, index_t o, index_t e) {
                   const V* from = columns_.upper_row(left * width, right);
                   return from[o * width + e] * down_[left * width + o] * down_[right * width + e];
                 });
  }

 private:
  const Shape& s_;
  SystemColumns<T>& columns_;
  Rows rows_;
  V* down_ = nullptr;
};

}  // namespace
}  // namespace qrtool::systems
