// SPDX-License-Identifier: Apache-2.0
// cpu_workers.hpp: the workers of the CPU backend, each of which factors a matrix or a pack of
// matrices and measures the errors. Private to core/cpu.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <vector>

#include "core/backend/backend.hpp"
#include "core/cpu/batched/batched_qr.hpp"
#include "core/cpu/blocked/blocked_qr.hpp"
#include "core/cpu/check/checker.hpp"
#include "core/eigen/eigen_qr.hpp"
#include "core/machine/clock.hpp"
#include "core/measure/magnitude.hpp"

namespace qrtool {

template <class T>
MatrixFactors<T> factors_of(const Factors<T>& all, index_t b) {
  return {all.q[b], all.r[b], all.v[b], all.tau[b]};
}

template <class T>
void fill_with_nan(const MatrixFactors<T>& out) {
  for (const MatrixView<T>& view : {out.q, out.r, out.v, out.tau}) {
    for (index_t i = 0; i < view.rows; ++i) {
      const MatrixView<Real<T>> row = interleaved(view.row_block(i, 1));
      std::fill_n(row.data, row.cols, std::numeric_limits<Real<T>>::quiet_NaN());
    }
  }
}

/// Returns the report of a matrix that was factored and not measured.
inline MatrixReport report_of(const batched::Outcome& outcome) {
  MatrixReport report;
  report.scale = outcome.scale;
  if (!outcome.r_fits) report.status = Status::r_overflows;
  if (!outcome.is_finite) report.status = Status::non_finite;
  return report;
}

/// Runs cpu/eigen on one thread.
template <class T>
class EigenWorker {
 public:
  explicit EigenWorker(const Problem& problem) : qr_(problem), checker_(problem) {}

  index_t matrices_at_once() const { return 1; }

  void run(BatchView<const T> batch, const Factors<T>& all, std::span<MatrixReport> reports) {
    const MatrixView<const T> a = batch[0];
    const MatrixFactors<T> out = factors_of(all, 0);
    MatrixReport& report = reports[0] = {};
    const Magnitude magnitude = magnitude_of(a);
    if (!magnitude.finite) {
      fill_with_nan(out);
      report.status = Status::non_finite;
      return;
    }
    report.scale = magnitude.scale();
    const auto start = Clock::now();
    const bool r_fits = qr_.factor(a, out);
    seconds.factor += seconds_since(start);
    if (!r_fits) {
      report.status = Status::r_overflows;
      return;
    }
    const auto factored = Clock::now();
    checker_.measure(a, out, report);
    seconds.check += seconds_since(factored);
  }

  ChunkSeconds seconds;

 private:
  EigenQr<T> qr_;
  Checker<T> checker_;
};

/// Runs cpu/blocked, and strips of cpu/complex, on threads that share a matrix.
template <class T>
class BlockedWorker {
 public:
  explicit BlockedWorker(const Problem& problem, int most_threads = 1)
      : qr_(problem, most_threads), checker_(problem, most_threads) {}

  index_t matrices_at_once() const { return 1; }

  void run(BatchView<const T> batch, const Factors<T>& all, std::span<MatrixReport> reports) {
    const MatrixFactors<T> out = factors_of(all, 0);
    MatrixReport& report = reports[0];
    const auto start = Clock::now();
    const blocked::Outcome outcome = qr_.factor(batch[0], out, threads);
    const auto factored = Clock::now();
    seconds.factor += std::chrono::duration<double>(factored - start).count();
    report = report_of(outcome);
    if (!outcome.is_finite) fill_with_nan(out);
    if (report.status != Status::unchecked) return;
    checker_.use_threads(threads);
    checker_.measure(batch[0], out, report);
    seconds.check += seconds_since(factored);
  }

  int threads = 1;
  ChunkSeconds seconds;

 private:
  BlockedQr<T> qr_;
  Checker<T> checker_;
};

/// Runs cpu/batched, and packs of cpu/complex, on one thread.
template <class T>
class BatchedWorker {
 public:
  explicit BatchedWorker(const Problem& problem)
      : qr_(problem),
        checker_(problem),
        outcomes_(static_cast<std::size_t>(qr_.matrices_at_once())) {}

  index_t matrices_at_once() const { return qr_.matrices_at_once(); }

  void run(BatchView<const T> a, const Factors<T>& out, std::span<MatrixReport> reports) {
    const auto start = Clock::now();
    qr_.factor(a, out, outcomes_);
    const auto factored = Clock::now();
    seconds.factor += std::chrono::duration<double>(factored - start).count();
    for (index_t b = 0; b < a.count; ++b) {
      reports[b] = report_of(outcomes_[b]);
      if (!outcomes_[b].is_finite) fill_with_nan(factors_of(out, b));
    }
    checker_.measure_all(a, out, reports);
    seconds.check += seconds_since(factored);
  }

  ChunkSeconds seconds;

 private:
  BatchedQr<T> qr_;
  Checker<T> checker_;
  std::vector<batched::Outcome> outcomes_;
};

}  // namespace qrtool
