// SPDX-License-Identifier: Apache-2.0
// backward_error.hpp: how well R alone fits A. The report's check of R alone compares R'R with A'A,
// which squares the condition: it cannot see errors in the small singular values of A.
#pragma once

#include "core/batch.hpp"

namespace qrtool::test {

/// The least ||A - QR|| / ||A|| that a Q with orthonormal columns can reach, to about 2^-50; R is
/// n x n, A has n rows or more. `by_column`: every column of A and of R is divided by the norm of
/// A's column first, so that small columns count as much as large ones.
template <class T>
double r_backward_error(MatrixView<const T> a, MatrixView<const T> r, bool by_column = false);

}  // namespace qrtool::test
