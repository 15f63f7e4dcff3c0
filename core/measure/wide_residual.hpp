// SPDX-License-Identifier: Apache-2.0
// wide_residual.hpp: ||A^H A - R^H R|| of matrices with many more columns than rows. A^H A has n x
// n entries; this takes 13 m^2 n operations, and beside A and R little memory. With any square Q
//
//   A = Q R + E,  F = Q^H Q - I,  G = Q^H E
//   A^H A - R^H R = R^H F R + R^H G + G^H R + E^H E = Y^H N Y,   Y = [R; G; E]
//   ||Y^H N Y||^2 = tr(N K N K),  K = Y Y^H
//
// All of F, G and E is small where A and R belong together, so that nothing large cancels: the
// result errs by the rounding of E and F, and by (2^-53)^(1/2) ||E|| ||R||. Q is A_J R_J^-1 for m
// columns J: the first ones, or where these leave an E above 10^-9 ||A|| those of pivoted R.
// All is float64, or complex128.
#pragma once

#include "core/batch.hpp"

namespace qrtool {

/// Whether it pays for a matrix of this shape, R alone.
bool is_very_wide(index_t m, index_t n);

/// Returns the norm. a: m x n, r: k x n; S is float64 or complex128.
template <class S>
double wide_residual(MatrixView<const S> a, MatrixView<const S> r);

/// Returns the most memory that it needs.
std::size_t wide_residual_bytes(index_t m, index_t n, bool is_complex);

}  // namespace qrtool
