// SPDX-License-Identifier: Apache-2.0
// host_check.cpp: verdicts, and the second measurement by the host.
#include "gpu/check/host_check.hpp"

#include <array>
#include <bit>
#include <cmath>

#include "core/eigen/form_q.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"

namespace qrtool {
namespace {

MatrixReport report_of(const Problem& p, const Errors& errors) {
  MatrixReport report;
  report.scale = errors.scale;
  enter_errors(p, errors, report);
  return report;
}

MatrixReport failed_report(Status status, int scale) {
  MatrixReport report;
  report.status = status;
  report.scale = scale;
  return report;
}

template <class T>
bool is_finite_r(MatrixView<const T> r, index_t k) {
  for (index_t i = 0; i < k; ++i) {
    for (index_t j = i; j < r.cols; ++j) {
      if (!is_finite(r(i, j))) return false;
    }
  }
  return true;
}

}  // namespace

MatrixReport unchecked_report(const DeviceErrors& found) {
  if (found.magnitude == MAGNITUDE_NON_FINITE) return failed_report(Status::non_finite, 0);
  const int scale = found.magnitude == MAGNITUDE_ZERO ? 0 : found.magnitude;
  return failed_report(found.r_is_finite == 0 ? Status::r_overflows : Status::unchecked, scale);
}

DeviceErrors in_float64(DeviceErrors errors) {
  if (errors.r_is_finite != NUMBERS_ARE_PAIRS) return errors;
  for (double* number : {&errors.residual, &errors.orthogonality, &errors.lower,
                         &errors.diagonal_ratio, &errors.norm}) {
    const auto [high, low] = std::bit_cast<std::array<float, 2>>(*number);
    *number = std::isfinite(high) ? double{high} + double{low} : double{high};
  }
  errors.r_is_finite = 1;
  return errors;
}

MatrixReport judge_device(const Problem& problem, const DeviceErrors& measured) {
  const MatrixReport unchecked = unchecked_report(measured);
  if (unchecked.status != Status::unchecked) return unchecked;
  const DeviceErrors device = in_float64(measured);
  return report_of(problem, {device.residual, device.orthogonality, device.lower,
                             device.diagonal_ratio, device.norm, unchecked.scale});
}

template <class T>
MatrixReport look_at(const Problem& problem, MatrixView<const T> a, const Factors<T>& out,
                     index_t b) {
  const Magnitude magnitude = magnitude_of(a);
  if (!magnitude.finite) return failed_report(Status::non_finite, 0);
  const MatrixView<const T> r = problem.mode == Mode::raw ? out.v[b] : out.r[b];
  const bool fits = is_finite_r<T>(r, problem.k());
  return failed_report(fits ? Status::unchecked : Status::r_overflows, magnitude.scale());
}
template <class T>
struct HostCheck<T>::Workspace {
  explicit Workspace(const Problem& p)
      : meter(p.m, p.n, sampled_q_cols(p), sampled_r_rows(p), /*most_threads=*/1,
              is_complex(p.type)) {
    if (p.mode == Mode::raw) {
      q = Batch<Wide<T>>(1, p.m, p.k());
      wide_a = Batch<Wide<T>>(1, p.m, p.n);
      wide_r = Batch<Wide<T>>(1, p.k(), p.n);
    }
  }
  ErrorMeter meter;
  Batch<Wide<T>> q, wide_a, wide_r;  // for raw
};

template <class T>
HostCheck<T>::HostCheck(const Problem& problem)
    : problem_(problem), operations_left_(tuning::host_sample_usual_operations) {}

template <class T>
HostCheck<T>::~HostCheck() = default;

template <class T>
bool HostCheck<T>::can_measure() const {
  return operations_left_ > 0 && sample_operations(problem_) <= tuning::host_sample_largest;
}

template <class T>
void HostCheck<T>::distrust() {
  operations_left_ = tuning::host_sample_operations;
}

template <class T>
MatrixReport HostCheck<T>::measure(MatrixView<const T> a, const Factors<T>& out, index_t b) {
  if (!workspace_) workspace_ = std::make_unique<Workspace>(problem_);
  operations_left_ -= sample_operations(problem_);
  const Magnitude magnitude = magnitude_of(a);
  if (!magnitude.finite) return failed_report(Status::non_finite, 0);
  const bool is_raw = problem_.mode == Mode::raw;
  const MatrixView<const T> r = is_raw ? out.v[b] : out.r[b];
  if (!is_finite_r<T>(r, problem_.k()))
    return failed_report(Status::r_overflows, magnitude.scale());
  const Errors errors =
      is_raw ? measure_reflectors(a, out, b, magnitude.scale())
             : workspace_->meter.template measure<T>(a, out.q[b], r, magnitude.scale());
  return report_of(problem_, errors);
}

/// Measures the errors of Q from the stored V and tau, and of R in the upper part of V\R.
template <class T>
Errors HostCheck<T>::measure_reflectors(MatrixView<const T> a, const Factors<T>& out, index_t b,
                                        int scale) {
  const MatrixView<T> v = out.v[b];
  const MatrixView<Wide<T>> q = workspace_->q.view()[0], r = workspace_->wide_r.view()[0];
  const MatrixView<Wide<T>> wide_a = workspace_->wide_a.view()[0];
  for (index_t i = 0; i < problem_.m; ++i) {
    for (index_t j = 0; j < problem_.n; ++j) {
      wide_a(i, j) = static_cast<Wide<T>>(a(i, j));
      if (i < r.rows) r(i, j) = i <= j ? static_cast<Wide<T>>(v(i, j)) : Wide<T>(0);
    }
  }
  const double bar =
      standard_bars(problem_.m, problem_.n, precision_of(problem_), {}).orthogonality;
  return qrtool::measure_reflectors<T>(v, out.tau[b].data, q, bar, [&] {
    return workspace_->meter.template measure<Wide<T>>(wide_a, q, r, scale);
  });
}

#define QRTOOL_HOST_CHECK(T)   \
  template class HostCheck<T>; \
  template MatrixReport look_at(const Problem&, MatrixView<const T>, const Factors<T>&, index_t);
QRTOOL_HOST_CHECK(float)
QRTOOL_HOST_CHECK(double)
QRTOOL_HOST_CHECK(std::complex<float>)
QRTOOL_HOST_CHECK(std::complex<double>)
#undef QRTOOL_HOST_CHECK

}  // namespace qrtool
