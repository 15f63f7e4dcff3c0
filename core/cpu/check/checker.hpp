// SPDX-License-Identifier: Apache-2.0
// checker.hpp: measures the errors of a factored matrix, for every mode. Private to core/cpu.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "core/backend/backend.hpp"
#include "core/cpu/check/lane_meter.hpp"
#include "core/eigen/eigen_qr.hpp"
#include "core/eigen/form_q.hpp"
#include "core/measure/error_probe.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {

/// Measures matrices of one shape, one after another.
template <class T>
class Checker {
  using Lanes = LaneMeter<Real<T>>;  // never used for complex matrices

 public:
  explicit Checker(const Problem& problem, int most_threads = 1)
      : problem_(problem), finder_(shape_of(problem_, most_threads), problem_.check) {
    if (problem_.check == Check::none) return;
    if (Lanes::pays(problem_)) lane_meter_.emplace(problem_);
    if (problem_.mode == Mode::raw) formed_q_ = Batch<Wide<T>>(1, problem_.m, problem_.k());
    if (problem_.mode == Mode::raw) widened_ = Batch<Wide<T>>(2, problem_.m, problem_.n);
  }

  static std::size_t workspace_bytes(const Problem& p, int most_threads = 1) {
    std::size_t bytes = ErrorFinder::workspace_bytes(shape_of(p, most_threads), p.check);
    if (Lanes::pays(p)) bytes += Lanes::workspace_bytes(p);
    if (p.mode == Mode::raw && p.check != Check::none) {
      // This holds Q, the reflectors in column order, and A and R in float64.
      bytes +=
          sizeof(double) * static_cast<std::size_t>(parts_in(p.type) * p.m * (2 * p.k() + 3 * p.n));
    }
    return bytes;
  }

  /// The threads that share a matrix from now on.
  void use_threads(int threads) { finder_.use_threads(threads); }

  /// Measures the matrices whose status is unchecked; the scales are already set.
  void measure_all(BatchView<const T> a, const Factors<T>& out, std::span<MatrixReport> reports) {
    if (problem_.check == Check::none) return;
    if constexpr (!is_complex_number<T>) {
      if (lane_meter_) return measure_lanes(a, out, reports);
    }
    for (index_t b = 0; b < a.count; ++b) measure_one(a, out, b, reports);
  }

  /// Writes errors and status to the report, whose scale is already set. Check::none changes
  /// nothing.
  void measure(MatrixView<const T> a, const MatrixFactors<T>& out, MatrixReport& report) {
    if (problem_.check == Check::none) return;
    const Errors errors = problem_.mode == Mode::raw ? measure_reflectors(a, out, report.scale)
                                                     : find<T>(a, out.q, out.r, report.scale);
    enter_errors(problem_, errors, report);
  }

 private:
  void measure_lanes(BatchView<const T> a, const Factors<T>& out,
                     std::span<MatrixReport> reports) requires(!is_complex_number<T>) {
    std::array<Errors, check_lanes::most_lanes> errors;
    for (index_t first = 0; first < a.count; first += lane_meter_->lanes()) {
      const index_t count = std::min(lane_meter_->lanes(), a.count - first);
      for (index_t l = 0; l < count; ++l) errors[l].scale = reports[first + l].scale;
      lane_meter_->measure(a.slice(first, count), slice(out, first, count),
                           std::span(errors).first(static_cast<std::size_t>(count)));
      for (index_t l = 0; l < count; ++l) {
        MatrixReport& report = reports[first + l];
        if (report.status != Status::unchecked) continue;
        if (lane_meter_->is_close(errors[l])) {
          measure_one(a, out, first + l, reports);
        } else {
          enter_errors(problem_, errors[l], report);
        }
      }
    }
  }

  /// To measure the reflectors of mode raw, their reduced Q is formed.
  static ErrorFinder::Shape shape_of(const Problem& p, int most_threads) {
    const bool is_raw = p.mode == Mode::raw;
    return {p.m,
            p.n,
            is_raw ? p.k() : p.q_cols(),
            is_raw ? p.k() : p.r_rows(),
            most_threads,
            is_complex(p.type)};
  }

  template <class E>
  Errors find(MatrixView<const E> a, MatrixView<const E> q, MatrixView<const E> r, int scale) {
    return finder_.find<E>(a, q, r, scale, [this](const Errors& errors) {
      return standard_bars(problem_.m, problem_.n, precision_of(problem_), errors);
    });
  }

  /// Forms Q from the stored V and tau; R is the upper part of V\R.
  Errors measure_reflectors(MatrixView<const T> a, const MatrixFactors<T>& out, int scale) {
    const MatrixView<Wide<T>> q = formed_q_.view()[0];
    const MatrixView<Wide<T>> r = widened_.view()[0].row_block(0, problem_.k());
    const MatrixView<Wide<T>> wide_a = widened_.view()[1];
    const index_t rows = problem_.n == 0 ? 0 : problem_.m;  // without entries, of any number
    for (index_t i = 0; i < rows; ++i) {
      std::copy_n(&a(i, 0), problem_.n, &wide_a(i, 0));
      if (i >= r.rows) continue;
      std::fill_n(&r(i, 0), i, Wide<T>(0));
      std::copy_n(&out.v(i, i), problem_.n - i, &r(i, i));
    }
    const double bar =
        standard_bars(problem_.m, problem_.n, precision_of(problem_), {}).orthogonality;
    return qrtool::measure_reflectors<T>(out.v, out.tau.data, q, bar,
                                         [&] { return find<Wide<T>>(wide_a, q, r, scale); });
  }

  void measure_one(BatchView<const T> a, const Factors<T>& out, index_t b,
                   std::span<MatrixReport> reports) {
    if (reports[b].status == Status::unchecked)
      measure(a[b], {out.q[b], out.r[b], out.v[b], out.tau[b]}, reports[b]);
  }

  Problem problem_;
  std::optional<Lanes> lane_meter_;
  ErrorFinder finder_;
  Batch<Wide<T>> formed_q_, widened_;  // used in mode raw
};

}  // namespace qrtool
