// SPDX-License-Identifier: Apache-2.0
// form_q.hpp: Q from stored reflectors.
#pragma once

#include "core/batch.hpp"
#include "core/complex_arithmetic.hpp"

namespace qrtool {

/// Forms Q (m x q_cols, row-major) from the reflectors of LAPACK's geqrf, in float64. v is V\R
/// (m x n) and tau has k entries. Source: LAPACK orgqr, ungqr.
template <class T>
void form_q_from_reflectors(MatrixView<const T> v, const T* tau, MatrixView<Wide<T>> q);

}  // namespace qrtool
