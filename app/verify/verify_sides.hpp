// SPDX-License-Identifier: Apache-2.0
// verify_sides.hpp: how A, B, X and what lies beside X belong together, as `verify` finds it for
// itself. It follows the axes of the stored arrays, and shares with `solve` neither the reading of
// shapes (core/solve/shapes) nor the places of right sides, so that a mistake in them is found.
#pragma once

#include <memory>

#include "app/solve/solve_inputs.hpp"

namespace qrtool {

/// Right sides by the axes of B. Strides count numbers, of A matrices.
struct SideAxes {
  Dims batch = {};                      // the axes of the items
  Dims a_strides = {}, b_strides = {};  // for each of them; 0 where the one place serves all
  index_t m = 0, p = 1;                 // an item has p right sides of m numbers
  bool rows_are_last = false;           // an item is p x m, not m x p
  Dims solution_dims = {};              // one place for each right side
  Dims x_dims = {}, fit_dims = {};      // of X; of residuals and fitted values
};

/// Returns the axes of B beside A; `rows` says which axis has the rows. Errors: InputError if the
/// extent of that axis differs from A's rows, or if the others do not fit.
SideAxes side_axes(const SolveInputs& inputs, RowsOfB rows);

/// The arrays of a run, each of which is a sequence of items of one shape. They read through
/// readers that must outlive them.
struct PlainSides {
  SolveInputs inputs;
  std::unique_ptr<Reader> x, fitted, residuals;  // the last two are null where they are not given
};
PlainSides plain_sides(const SolveInputs& inputs, const SideAxes& axes, Reader& x, Reader* fitted,
                       Reader* residuals);

/// `inputs` are A and B, and `x` is the third name. Errors: UsageError, which names the ways to
/// give factors, if B and X have the shapes of Q and R, the first matrix of X is upper triangular
/// and the columns of the first matrix of B are orthonormal.
void refuse_factors(const SolveInputs& inputs, Reader& x);

}  // namespace qrtool
