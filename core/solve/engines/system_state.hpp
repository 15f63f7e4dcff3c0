// SPDX-License-Identifier: Apache-2.0
// system_state.hpp: the state of a least-squares problem, to which further rows can be appended.
//
//     [A B] = Q [R Z]    G = [A B]^H [A B]    n + p rows [R Z] and [0 T] stand for all rows of
//               [0 T]                         [A B]; G, which is summed apart, checks them
//
// The rows of a state, with further rows below them, have the R, the x and the residual norms of
// all rows. No row is needed again. Source: Hammarling, Lucas, "Updating the QR factorization and
// the least squares problem" (2008).
#pragma once

#include "core/batch.hpp"
#include "core/matrix/complex_arithmetic.hpp"

namespace qrtool {

template <class S>
struct RowSum;

/// gram += rows^H rows.
template <class T>
void add_gram(MatrixView<const T> rows, RowSum<Wide<T>>& gram);

/// Returns ||D (G - R^H R) D|| / ||A D||^2 for R (w x w) and the upper triangle of G, where A D has
/// columns of norm 1.
template <class T>
double state_error(MatrixView<const T> r, MatrixView<const Wide<T>> gram);

}  // namespace qrtool
