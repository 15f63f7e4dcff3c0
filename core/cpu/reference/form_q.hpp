// SPDX-License-Identifier: Apache-2.0
// form_q.hpp: Q from stored reflectors.
#pragma once

#include <complex>
#include <type_traits>

#include "core/batch.hpp"
#include "core/complex.hpp"

namespace qrtool {

/// T with parts of float64.
template <class T>
using Wide = std::conditional_t<is_complex_number<T>, std::complex<double>, double>;

/// Forms Q (m x q_cols, row-major) from the reflectors of LAPACK's geqrf, in float64. v is V\R
/// (m x n) and tau has k entries. Source: LAPACK orgqr, ungqr.
template <class T>
void form_q_from_reflectors(MatrixView<const T> v, const T* tau, MatrixView<Wide<T>> q);

}  // namespace qrtool
