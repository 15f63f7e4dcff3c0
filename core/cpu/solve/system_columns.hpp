// SPDX-License-Identifier: Apache-2.0
// system_columns.hpp: R' and z of as many systems as a SIMD vector has lanes, in panels of four
// columns, and how A and b come into them. Names: core/cpu/solve/solution_kernel.cpp. Private to
// core/cpu, compiled once for every instruction set (simd.hpp).
#pragma once

#include "core/cpu/batched/columns.hpp"
#include "core/cpu/solve/solution_kernel.hpp"

namespace qrtool::systems {
namespace {

using batched::width;

/// Right sides that are neighbours.
struct Sides {
  index_t first = 0, count = 0;
};

/// Holds n columns of A or R' and p right sides after them: b, and later z.
template <class T>
class SystemColumns : batched::Columns<T, double> {
  using Base = batched::Columns<T, double>;
  using Base::at, Base::exponent_of, Base::largest_, Base::top_;
  using typename Base::IntT;

 public:
  using Base::clear, Base::factor_columns, Base::find_scale, Base::lanes, Base::panels_of,
      Base::r_at, Base::raise_largest, Base::row_of, Base::upper_row;
  using typename Base::InMemory, typename Base::Int, typename Base::V, typename Base::VT,
      typename Base::Workspace;

  SystemColumns(const Shape& shape, Workspace& workspace)
      : Base(shape.is_factored || shape.is_masked || shape.is_gram ? shape.n : shape.m,
             shape.n + shape.p, shape.n, 0, workspace),
        s_(shape) {
    inverse_ = workspace.take(s_.n);
    squares_ = workspace.take(s_.n);
  }

  /// Returns how many columns of A panel p has.
  index_t columns_of(index_t p) const {
    return s_.n - p * width < width ? s_.n - p * width : index_t{width};
  }
  /// Row i of R' in the panel that holds its diagonal.
  V* diagonal_row(index_t i) const { return top_ + i * width; }
  /// Return 1 / R'_jj, and the square of the norm of column j of R'.
  V& inverse(index_t j) const { return inverse_[j]; }
  V& square(index_t j) const { return squares_[j]; }

  /// Returns the exponent of the largest entry of column j, 0 for a column of zeros.
  Int exponent(index_t j) const { return __builtin_convertvector(exponent_of(largest_[j]), Int); }
  Int is_finite() const { return __builtin_convertvector(this->is_finite_, Int); }

  /// The largest entry of column j is found as entries are loaded.
  void reset_largest(index_t j) { largest_[j] = IntT{}; }

  /// A and b, which factor_columns() overwrites with R' and z.
  void load(const Pack<T>& pack) {
    Base::load(pack.a, pack.count, s_.n);
    read_right_sides(pack, {0, s_.p}, 0, s_.m, [&](VT x, index_t i, index_t j) {
      raise_largest(s_.n + j, x);
      at(i, s_.n + j) = __builtin_convertvector(x, V);
    });
    find_scale();
  }

  /// Loads R and Q'b. D scales the columns of R as it would scale the columns of A.
  void load_factor(const Pack<T>& pack) {
    Base::load(pack.r, pack.count, s_.n + s_.p);
    for (index_t j = 0; j < s_.p; ++j) reset_largest(s_.n + j);
    read_right_sides(pack, {0, s_.p}, 0, s_.m,
                     [&](VT x, index_t, index_t j) { raise_largest(s_.n + j, x); });
    find_scale();
    for (index_t p = 0; p < panels_of(s_.n + s_.p); ++p) this->scale_panel(p);
    for (index_t i = 0; i < s_.n; ++i)
      for (index_t q = 0; q < width; ++q) diagonal_row(i)[q] = row_of(i / width, i)[q];
  }

  /// Calls body(x, i, j) for entry i of right side j, in some of the rows of some right sides.
  template <class Body>
  [[gnu::always_inline]] void read_right_sides(const Pack<T>& pack, Sides sides, index_t row,
                                               index_t rows, Body body) const {
    const Strided<const T>& b = pack.b;
    if (pack.b_has_rows) {
      InMemory::read({b.data + sides.first * b.ld + row, b.ld, b.stride}, pack.count, sides.count,
                     rows, [&]<int N>(const VT* x, index_t j, index_t i) {
                       for (int e = 0; e < N; ++e) body(x[e], row + i + e, sides.first + j);
                     });
    } else {
      InMemory::read({b.data + row * b.ld + sides.first, b.ld, b.stride}, pack.count, rows,
                     sides.count, [&]<int N>(const VT* x, index_t i, index_t j) {
                       for (int e = 0; e < N; ++e) body(x[e], row + i, sides.first + j + e);
                     });
    }
  }

 private:
  const Shape& s_;
  V *inverse_, *squares_;
};

}  // namespace
}  // namespace qrtool::systems
