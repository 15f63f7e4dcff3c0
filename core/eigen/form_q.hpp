// SPDX-License-Identifier: Apache-2.0
// form_q.hpp: Q from stored reflectors, and their errors.
#pragma once

#include "core/batch.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {

/// The type in which Q is formed: float64 or, for few rows, a wider type that needs several times
/// as long.
enum class Forming { usual, careful };

/// Forms Q (m x q_cols, row-major) from the reflectors of LAPACK's geqrf, and rounds it to float64.
/// v is V\R (m x n) and tau has k entries. Source: LAPACK orgqr, ungqr.
template <class T>
void form_q_from_reflectors(MatrixView<const T> v, const T* tau, MatrixView<Wide<T>> q,
                            Forming forming = Forming::usual);

/// Returns the errors of reflectors, which `measure` finds from the Q that they make. Few rows have
/// a low bar, to which forming Q adds as much as the reflectors: an error above half of `bar` is
/// measured again on a Q that was formed with care.
template <class T, class Measure>
Errors measure_reflectors(MatrixView<const T> v, const T* tau, MatrixView<Wide<T>> q, double bar,
                          const Measure& measure) {
  form_q_from_reflectors<T>(v, tau, q);
  const Errors errors = measure();
  if (errors.residual <= bar / 2 && errors.orthogonality <= bar / 2) return errors;
  form_q_from_reflectors<T>(v, tau, q, Forming::careful);
  return measure();
}

}  // namespace qrtool
