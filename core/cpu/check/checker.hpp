// SPDX-License-Identifier: Apache-2.0
// checker.hpp: the errors and the status of a factored matrix of any mode. Private to core/cpu.
#pragma once

#include "core/backend.hpp"
#include "core/cpu/reference/eigen_qr.hpp"
#include "core/ratios.hpp"

namespace qrtool {

/// Measures one matrix after another, on one thread.
template <class T>
class Checker {
 public:
  explicit Checker(const Problem& problem)
      : problem_(problem),
        meter_(problem_.m, problem_.n, measured_q_cols(problem_), measured_r_rows(problem_)) {
    if (problem_.mode == Mode::raw) formed_q_ = Batch<double>(1, problem_.m, problem_.k());
    if (problem_.mode == Mode::raw) widened_ = Batch<double>(2, problem_.m, problem_.n);
  }

  static std::size_t workspace_bytes(const Problem& p) {
    std::size_t bytes =
        ErrorMeter::workspace_bytes(p.m, p.n, measured_q_cols(p), measured_r_rows(p));
    if (p.mode == Mode::raw) {
      // Q formed, its reflectors in column order, A and R widened to float64.
      bytes += sizeof(double) * static_cast<std::size_t>(p.m * (2 * p.k() + 3 * p.n));
    }
    return bytes;
  }

  /// Errors and status; report.scale is there already.
  void measure(MatrixView<const T> a, const MatrixFactors<T>& out, MatrixReport& report) {
    const Errors errors = problem_.mode == Mode::raw
                              ? measure_reflectors(a, out, report.scale)
                              : meter_.measure<T>(a, out.q, out.r, report.scale);
    enter_errors(problem_, errors, report);
  }

 private:
  /// reduced Q stands in for raw's reflectors when they are measured.
  static index_t measured_q_cols(const Problem& p) {
    return p.mode == Mode::raw ? p.k() : p.q_cols();
  }
  static index_t measured_r_rows(const Problem& p) {
    return p.mode == Mode::raw ? p.k() : p.r_rows();
  }

  /// Q from V and tau as they were stored, R the upper part of V\R.
  Errors measure_reflectors(MatrixView<const T> a, const MatrixFactors<T>& out, int scale) {
    const MatrixView<double> q = formed_q_.view()[0];
    form_q_from_reflectors<T>(out.v, out.tau.data, q);
    const MatrixView<double> r = widened_.view()[0].row_block(0, problem_.k());
    const MatrixView<double> wide_a = widened_.view()[1];
    for (index_t i = 0; i < problem_.m; ++i) {
      for (index_t j = 0; j < problem_.n; ++j) {
        wide_a(i, j) = a(i, j);
        if (i < r.rows) r(i, j) = i <= j ? static_cast<double>(out.v(i, j)) : 0.0;
      }
    }
    return meter_.measure<double>(wide_a, q, r, scale);
  }

  Problem problem_;
  ErrorMeter meter_;
  Batch<double> formed_q_, widened_;  // raw
};

}  // namespace qrtool
