// SPDX-License-Identifier: Apache-2.0
// factors_meter.cpp: reflectors become Q, columns come into order, and the errors are found.
#include "app/engine/factors_meter.hpp"

#include <algorithm>
#include <utility>

#include "core/eigen/form_q.hpp"
#include "core/measure/magnitude.hpp"

namespace qrtool {

void judge_measurement(Measurement& result, bool a_is_finite, const BarsOf& bars_of, bool has_q) {
  result.bars = bars_of(result.errors);
  result.status = a_is_finite ? judge(result.errors, result.bars, has_q) : Status::non_finite;
}

template <class T>
FactorsMeter<T>::FactorsMeter(const FactorsShape& shape, Check check, BarsOf bars_of)
    : shape_(shape), bars_of_(std::move(bars_of)), finder_(shape.sizes, check) {
  if (!shape.has_reflectors) return;
  const index_t k = std::min(shape.sizes.m, shape.sizes.n);
  formed_q_ = Batch<T>(1, shape.sizes.m, k);
  upper_ = Batch<T>(1, k, shape.sizes.n);
}

/// Errors, and with reflectors the formed Q and R and the workspace for forming Q.
template <class T>
std::size_t FactorsMeter<T>::workspace_bytes(const FactorsShape& shape, Check check) {
  const ErrorFinder::Shape& sizes = shape.sizes;
  const auto k = static_cast<std::size_t>(std::min(sizes.m, sizes.n));
  const std::size_t bytes = ErrorFinder::workspace_bytes(sizes, check);
  if (!shape.has_reflectors) return bytes;
  return bytes + (3 * static_cast<std::size_t>(sizes.m) + static_cast<std::size_t>(sizes.n)) * k *
                     sizeof(T);
}

/// Returns R of the packed V\R.
template <class T>
MatrixView<const T> FactorsMeter<T>::upper_part(MatrixView<const T> v) const {
  const MatrixView<T> r = upper_.view()[0];
  for (index_t i = 0; i < r.rows; ++i)
    for (index_t j = 0; j < r.cols; ++j) r(i, j) = i <= j ? v(i, j) : T(0);
  return r;
}

template <class T>
Measurement FactorsMeter<T>::measure(index_t number, const GivenFactors<T>& given) {
  Measurement result{.matrix = number, .errors = {}};
  const Magnitude magnitude = magnitude_of<T>(given.a);
  result.errors.scale = magnitude.scale();
  const auto errors_of = [&](MatrixView<const T> q, MatrixView<const T> r) {
    const bool are_finite = magnitude_of<T>(q).finite && magnitude_of<T>(r).finite;
    if (!magnitude.finite || !are_finite) return result.errors;
    return finder_.find<T>(given.a, q, r, magnitude.scale(), bars_of_);
  };
  if (shape_.has_reflectors) {
    const MatrixView<T> q = formed_q_.view()[0];
    const MatrixView<const T> r = upper_part(given.v);
    result.errors = measure_reflectors<T>(given.v, given.tau, q, bars_of_({}).orthogonality,
                                          [&] { return errors_of(q, r); });
  } else {
    result.errors = errors_of(given.q, given.r);
  }
  judge_measurement(result, magnitude.finite, bars_of_, shape_.has_q);
  return result;
}

template class FactorsMeter<double>;
template class FactorsMeter<std::complex<double>>;

}  // namespace qrtool
