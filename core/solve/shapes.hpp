// SPDX-License-Identifier: Apache-2.0
// shapes.hpp: how the shape of B fits that of A, and which shape the solutions X have. Pure
// functions of shapes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

using Dims = std::vector<index_t>;

/// Which dimension of B has the m rows of A. first: [m, ...], each place behind it is a right side;
/// last: [..., m], each place before it is a right side; matrix: [..., m, p], p right sides for
/// each place of the leading dimensions. automatic: whichever fits.
enum class RowsOfB { automatic, first, last, matrix };
std::string_view name_of(RowsOfB rows);

/// The place of one right side. Numbers of arrays count from 0, in their stored order.
struct SidePlace {
  index_t a = 0;        // its matrix
  index_t in_b = 0;     // its first number in B, and in weights that have the shape of B
  index_t in_fits = 0;  // its first number in residuals and fitted values
  index_t step = 1;     // from its number in one row to that in the next row
  index_t next = 1;     // to the same row of the next right side of this matrix
  index_t column = 0;   // the right sides of this matrix before it
};

/// One way to read B. The systems are A_i x = b for each place of `batch` and each of its `p` right
/// sides. A dataset of shape `x_dims` holds the solutions in the places of the right sides.
struct RightSides {
  RowsOfB rows = RowsOfB::matrix;
  Dims batch = {};          // of A and B, broadcast
  index_t m = 0, p = 1;     // rows; right sides for each place of the batch
  bool as_rows = false;     // a right side is a row of m neighbours; otherwise a column of m x p
  Dims x_dims = {};         // as B, broadcast, with m replaced by n
  Dims fit_dims = {};       // as B, broadcast: of residuals and fitted values
  Dims solution_dims = {};  // one place for each right side
  Dims a_leading = {}, b_leading = {};  // the leading dimensions, before they are broadcast

  index_t items() const;  // places of the batch
  /// Returns the place of a right side; right sides are numbered as solution_dims counts. All code
  /// that reads or writes right sides by number uses this function.
  SidePlace place(index_t side) const;
  bool shares_a() const { return a_leading.empty(); }
};

/// Returns the product of the dimensions.
index_t count_of(const Dims& dims);

/// The shapes of A (leading x m x n) and of B as it is stored. is_column: the last two stored
/// dimensions of a matrix are columns x rows, as MATLAB stores them.
struct SystemShapes {
  Dims a_leading;
  index_t m = 0, n = 0;
  Dims b_dims;
  bool is_column = false;
};

/// Returns all ways to read B that fit, in this order: one vector for each matrix of A (last),
/// matrix, first, last. Two ways that give the same numbers the same places count as one. If
/// `asked` is not automatic, only that one is tried. A vector of one dimension belongs to every A.
std::vector<RightSides> readings(const SystemShapes& shapes, RowsOfB asked);

/// Whether this many right sides of one A are taken by products with Q, not factored with A.
bool pays_as_shared(index_t n, index_t right_sides);

/// Describes a way to read B's dimensions, for messages: "m first, [m, ...]: 1200 right sides".
std::string describe(const RightSides& reading);

}  // namespace qrtool
