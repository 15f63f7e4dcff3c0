// SPDX-License-Identifier: Apache-2.0
// wide_residual.hpp: ||A^H A - R^H R|| of matrices with many more columns than rows. A^H A has n x
// n entries; this takes 13 m^2 n operations. With any square Q
//
//   A = Q R + E,  F = Q^H Q - I,  G = Q^H E
//   A^H A - R^H R = R^H F R + R^H G + G^H R + E^H E = Y^H N Y,   Y = [R; G; E]
//   ||Y^H N Y||^2 = tr(N K N K),  K = Y Y^H
//
// All of F, G and E is small where A and R belong together, so that nothing large cancels: the
// result errs by the rounding of E and F in float64, and by (2^-53)^(1/2) ||E|| ||R||. Q is A_J
// R_J^-1 for m columns J: the first ones, or where E is too large those of pivoted R.
#pragma once

#include "core/batch.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {

/// Whether it pays for a matrix of this shape, R alone.
bool is_very_wide(index_t m, index_t n);

/// Returns the errors of R alone, given the scale of A (Magnitude::scale). a: m x n, r: k x n.
/// Beside them it needs wide_errors_bytes(), which do not grow with n.
template <class T>
Errors wide_errors(MatrixView<const T> a, MatrixView<const T> r, int scale);
std::size_t wide_errors_bytes(index_t m, bool is_complex);

}  // namespace qrtool
