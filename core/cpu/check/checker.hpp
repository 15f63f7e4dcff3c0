// SPDX-License-Identifier: Apache-2.0
// checker.hpp: measures the errors of a factored matrix, for every mode. Private to core/cpu.
#pragma once

#include "core/backend.hpp"
#include "core/cpu/reference/eigen_qr.hpp"
#include "core/ratios.hpp"

namespace qrtool {

/// Measures matrices of one shape, one after another.
template <class T>
class Checker {
 public:
  explicit Checker(const Problem& problem, int most_threads = 1)
      : problem_(problem),
        meter_(problem_.m, problem_.n, measured_q_cols(problem_), measured_r_rows(problem_),
               most_threads) {
    if (problem_.mode == Mode::raw) formed_q_ = Batch<double>(1, problem_.m, problem_.k());
    if (problem_.mode == Mode::raw) widened_ = Batch<double>(2, problem_.m, problem_.n);
  }

  static std::size_t workspace_bytes(const Problem& p, int most_threads = 1) {
    std::size_t bytes =
        ErrorMeter::workspace_bytes(p.m, p.n, measured_q_cols(p), measured_r_rows(p), most_threads);
    if (p.mode == Mode::raw) {
      // This holds Q, the reflectors in column order, and A and R in float64.
      bytes += sizeof(double) * static_cast<std::size_t>(p.m * (2 * p.k() + 3 * p.n));
    }
    return bytes;
  }

  /// The threads that share a matrix from now on.
  void use_threads(int threads) { meter_.use_threads(threads); }

  /// Writes errors and status to the report, whose scale is already set.
  void measure(MatrixView<const T> a, const MatrixFactors<T>& out, MatrixReport& report) {
    const Errors errors = problem_.mode == Mode::raw
                              ? measure_reflectors(a, out, report.scale)
                              : meter_.measure<T>(a, out.q, out.r, report.scale);
    enter_errors(problem_, errors, report);
  }

 private:
  /// To measure the reflectors of mode raw, their reduced Q is formed.
  static index_t measured_q_cols(const Problem& p) {
    return p.mode == Mode::raw ? p.k() : p.q_cols();
  }
  static index_t measured_r_rows(const Problem& p) {
    return p.mode == Mode::raw ? p.k() : p.r_rows();
  }

  /// Forms Q from the stored V and tau; R is the upper part of V\R.
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
  Batch<double> formed_q_, widened_;  // used in mode raw
};

}  // namespace qrtool
