// SPDX-License-Identifier: Apache-2.0
// form_q.cpp: applies the reflectors, widened to float64, to I.
#include "core/eigen/form_q.hpp"

#include <algorithm>
#include <vector>

#include "core/eigen/householder.hpp"
#include "core/machine/host.hpp"
#include "core/matrix/complex.hpp"
#include "core/measure/strips.hpp"

namespace qrtool {
namespace {

/// householder::form_q() in strips, for matrices that are not tall.
template <class T>
void form_q_in_strips(MatrixView<const T> v, const T* tau, MatrixView<Wide<T>> q) {
  using strips::ceiling, strips::unit, strips::width;
  constexpr index_t parts = parts_of<T>;
  const index_t m = v.rows, k = std::min(v.rows, v.cols), strip_size = strips::strip_size_of(m);
  const MatrixView<const Real<T>> from = interleaved(v);
  const MatrixView<double> to = interleaved(q);
  const index_t v_size = ceiling(parts * k, width) * strip_size,
                q_size = ceiling(to.cols, width) * strip_size;
  const HostMemory memory =
      allocate_host(static_cast<std::size_t>(v_size + q_size) * sizeof(double));
  double* const vs = reinterpret_cast<double*>(memory.get());
  double* const qs = vs + v_size;
  const auto q_at = [&](index_t i, index_t j) {
    return qs + j / width * strip_size + i * width + j % width;
  };
  std::fill_n(vs, v_size + q_size, 0.0);
  for (index_t j = 0; j < std::min(m, q.cols); ++j) *q_at(j, parts * j) = 1;
  std::vector<double> padded_tau(static_cast<std::size_t>(parts * ceiling(k, unit) * unit));
  std::copy_n(reinterpret_cast<const Real<T>*>(tau), parts * k, padded_tau.begin());
  strips::pack(strips::Rows<Real<T>>{.from = from.data,
                                     .ld = from.ld,
                                     .rows = m,
                                     .columns = parts * k,
                                     .half = 1,
                                     .rest = 1,
                                     .to = vs,
                                     .strip_size = strip_size});
  strips::best_kernels().apply_reflectors({.v = vs,
                                           .v_strip_size = strip_size,
                                           .tau = padded_tau.data(),
                                           .q = qs,
                                           .q_strip_size = strip_size,
                                           .rows = ceiling(m, unit) * unit,
                                           .count = k,
                                           .columns = to.cols,
                                           .is_complex = is_complex_number<T>});
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < to.cols; j += width)
      std::copy_n(q_at(i, j), std::min(width, to.cols - j), &to(i, j));
}

}  // namespace

template <class T>
void form_q_from_reflectors(MatrixView<const T> v, const T* tau, MatrixView<Wide<T>> q,
                            Forming forming) {
  if (q.cols == 0) return;
  const index_t k = std::min(v.rows, v.cols);
  if (forming == Forming::usual && !householder::is_tall(v.rows, k))
    return form_q_in_strips(v, tau, q);
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
