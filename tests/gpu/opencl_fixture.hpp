// SPDX-License-Identifier: Apache-2.0
// opencl_fixture.hpp: helpers for the tests of the OpenCL backend: a backend, batches whose padding
// is checked, and errors that the host measures.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "core/eigen/form_q.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"
#include "core/plan/plan.hpp"
#include "core/report/ratios.hpp"
#include "gpu/host/device.hpp"
#include "gpu/pipeline/opencl_backend.hpp"
#include "tests/support/factored_batch.hpp"

namespace qrtool::test {

/// The device that QRTOOL_TEST_DEVICE names, or the default device.
inline DeviceInfo device_under_test() {
  const char* wanted = std::getenv("QRTOOL_TEST_DEVICE");
  return choose_device(wanted == nullptr ? "" : wanted);
}

inline OpenclOptions test_options() {
  OpenclOptions options;
  options.host.host_bytes = std::size_t{1} << 30;
  // Use the portable bodies on a device that has others.
  options.portable = std::getenv("QRTOOL_TEST_PORTABLE") != nullptr;
  return options;
}

/// A backend without restrictions, which is made once.
inline OpenclBackend& backend() {
  static OpenclBackend instance(device_under_test(), test_options());
  return instance;
}

/// Whether tests take all of their shapes and types. A device builds its kernels for each, which
/// takes PoCL seconds, so that everyday tests leave some to those with the label `long`, which set
/// the variable.
inline bool takes_all() {
  return !backend().limits().is_cpu || std::getenv("QRTOOL_TEST_ALL") != nullptr;
}

/// Whether the device under test takes 10 float32 matrices of 40x12 by the variant.
inline bool has_variant(std::string_view name) {
  const Problem small{10, 40, 12, ElementType::float32, Mode::reduced, Sign::positive};
  const auto variants = backend().variants();
  return std::ranges::any_of(variants, [&](const Variant& each) {
    return each.name == name && each.fits(small, backend().limits()).ok;
  });
}

#define SKIP_WITHOUT_OPENCL() \
  if (list_devices().empty()) GTEST_SKIP() << "no OpenCL device"

/// For a test that forces the variant `name` on small matrices. A GPU with portable bodies alone
/// may not have it.
#define SKIP_WITHOUT_VARIANT(name) \
  SKIP_WITHOUT_OPENCL();           \
  if (!has_variant(name)) GTEST_SKIP() << name << " takes no small matrix on this device"

/// A batch with `padding` extra elements after each row and matrix. They contain a pattern that
/// must not change. Entries start as NaN.
template <class T>
class PaddedBatch {
 public:
  PaddedBatch() = default;
  PaddedBatch(index_t count, index_t rows, index_t cols, index_t padding)
      : data_(static_cast<std::size_t>(count * (rows * (cols + padding) + padding)), pattern()),
        view_{data_.data(), count, rows, cols, cols + padding, rows * (cols + padding) + padding} {
    for (index_t b = 0; b < count; ++b) {
      for (index_t i = 0; i < rows; ++i) {
        for (index_t j = 0; j < cols; ++j) view_[b](i, j) = std::numeric_limits<T>::quiet_NaN();
      }
    }
  }

  BatchView<T> view() {
    return {data_.data(), view_.count, view_.rows, view_.cols, view_.ld, view_.stride};
  }
  const std::vector<T>& data() const { return data_; }

  bool padding_is_untouched() const {
    std::vector<bool> is_entry(data_.size(), false);
    for (index_t b = 0; b < view_.count; ++b) {
      for (index_t i = 0; i < view_.rows; ++i) {
        for (index_t j = 0; j < view_.cols; ++j) {
          is_entry[static_cast<std::size_t>(b * view_.stride + i * view_.ld + j)] = true;
        }
      }
    }
    for (std::size_t i = 0; i < data_.size(); ++i) {
      if (!is_entry[i] && data_[i] != pattern()) return false;
    }
    return true;
  }

 private:
  static constexpr T pattern() { return T(-12345.5); }
  std::vector<T> data_;
  BatchView<T> view_;
};

/// The factors of a batch with their report.
template <class T>
struct Result {
  Result() = default;
  Result(const Problem& p, index_t padding)
      : is_raw(p.mode == Mode::raw),
        q(p.count, p.m, p.q_cols(), padding),
        r(p.count, is_raw ? 0 : p.r_rows(), p.n, padding),
        v(p.count, is_raw ? p.m : 0, p.n, padding),
        tau(p.count, is_raw ? 1 : 0, p.k(), padding),
        report(static_cast<std::size_t>(p.count)) {}

  Factors<T> factors() { return {q.view(), r.view(), v.view(), tau.view()}; }

  bool is_raw = false;
  PaddedBatch<T> q, r, v, tau;
  std::vector<MatrixReport> report;
};

inline Plan plan_for(const Problem& problem, std::string_view variant) {
  return make_plan(problem, backend().variants(), backend().limits(), variant);
}

template <class T>
Result<T> factor(OpenclBackend& with, const Plan& plan, BatchView<const T> a, index_t padding = 0) {
  Problem problem = plan.problem;
  problem.count = a.count;
  Result<T> result(problem, padding);
  with.factor(plan, a, result.factors(), result.report);
  return result;
}

/// Whether matrix b of x and matrix c of y have the same factors, bit by bit.
template <class T>
bool same_factors(Result<T>& x, index_t b, Result<T>& y, index_t c) {
  return same_factors(x.factors(), b, y.factors(), c);
}

/// Measures the errors of one matrix by core's ErrorMeter.
template <class T>
Errors measure_on_host(const Problem& p, MatrixView<const T> a, const Factors<T>& out, index_t b) {
  const int scale = magnitude_of(a).scale();
  if (p.mode != Mode::raw) {
    ErrorMeter meter(p.m, p.n, p.q_cols(), p.r_rows());
    return meter.measure<T>(a, out.q[b], out.r[b], scale);
  }
  Batch<double> q(1, p.m, p.k()), r(1, p.k(), p.n), wide_a(1, p.m, p.n);
  form_q_from_reflectors<T>(out.v[b], out.tau[b].data, q.view()[0]);
  for (index_t i = 0; i < p.m; ++i) {
    for (index_t j = 0; j < p.n; ++j) {
      wide_a.view()[0](i, j) = static_cast<double>(a(i, j));
      if (i < p.k()) r.view()[0](i, j) = i <= j ? static_cast<double>(out.v[b](i, j)) : 0.0;
    }
  }
  ErrorMeter meter(p.m, p.n, p.k(), p.k());
  return meter.measure<double>(wide_a.view()[0], q.view()[0], r.view()[0], scale);
}

}  // namespace qrtool::test
