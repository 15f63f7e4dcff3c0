// SPDX-License-Identifier: Apache-2.0
// form_q.cpp: applies the reflectors, widened to float64, to I.
#include "core/eigen/form_q.hpp"

#include <algorithm>

#include "core/eigen/householder.hpp"

namespace qrtool {

template <class T>
void form_q_from_reflectors(MatrixView<const T> v, const T* tau, MatrixView<Wide<T>> q,
                            Forming forming) {
  if (q.cols == 0) return;
  const index_t k = std::min(v.rows, v.cols);
  householder::Matrix<Wide<T>> vr(v.rows, k), formed(q.rows, q.cols);
  householder::Vector<Wide<T>> coefficients(k);
  for (index_t j = 0; j < k; ++j) {
    for (index_t i = 0; i < v.rows; ++i) vr(i, j) = static_cast<Wide<T>>(v(i, j));
    coefficients(j) = static_cast<Wide<T>>(tau[j]);
  }
  if (forming == Forming::careful)
    householder::form_q_carefully<Wide<T>>(vr, coefficients, formed);
  else
    householder::form_q<Wide<T>>(vr, coefficients, formed);
  for (index_t i = 0; i < q.rows; ++i) {
    for (index_t j = 0; j < q.cols; ++j) q(i, j) = formed(i, j);
  }
}

template void form_q_from_reflectors(MatrixView<const float>, const float*, MatrixView<double>,
                                     Forming);
template void form_q_from_reflectors(MatrixView<const double>, const double*, MatrixView<double>,
                                     Forming);
template void form_q_from_reflectors(MatrixView<const std::complex<float>>,
                                     const std::complex<float>*, MatrixView<std::complex<double>>,
                                     Forming);
template void form_q_from_reflectors(MatrixView<const std::complex<double>>,
                                     const std::complex<double>*, MatrixView<std::complex<double>>,
                                     Forming);

}  // namespace qrtool
