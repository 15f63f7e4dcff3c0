// SPDX-License-Identifier: Apache-2.0
// cpu_backend.cpp: factors and measures a chunk; a thread takes a matrix, or a pack of them, at a
// time.
#include "core/cpu/cpu_backend.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <limits>
#include <string_view>
#include <vector>

#include "core/cpu/batched_qr.hpp"
#include "core/cpu/blocked_qr.hpp"
#include "core/cpu/checker.hpp"
#include "core/cpu/cpu_variants.hpp"
#include "core/cpu/eigen_qr.hpp"
#include "core/cpu/tall_qr.hpp"

namespace qrtool {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <class T>
Factors<T> slice(const Factors<T>& all, index_t first, index_t count) {
  return {all.q.slice(first, count), all.r.slice(first, count), all.v.slice(first, count),
          all.tau.slice(first, count)};
}

template <class T>
MatrixFactors<T> factors_of(const Factors<T>& all, index_t b) {
  return {all.q[b], all.r[b], all.v[b], all.tau[b]};
}

template <class T>
void fill_with_nan(const MatrixFactors<T>& out) {
  for (const MatrixView<T>& view : {out.q, out.r, out.v, out.tau}) {
    for (index_t i = 0; i < view.rows; ++i) {
      std::fill_n(view.data + i * view.ld, view.cols, std::numeric_limits<T>::quiet_NaN());
    }
  }
}

/// cpu/eigen on one thread.
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

/// cpu/blocked on `threads` threads of its own.
template <class T>
class BlockedWorker {
 public:
  BlockedWorker(const Problem& problem, int threads) : qr_(problem, threads), checker_(problem) {}

  index_t matrices_at_once() const { return 1; }

  void run(BatchView<const T> batch, const Factors<T>& all, std::span<MatrixReport> reports) {
    const MatrixFactors<T> out = factors_of(all, 0);
    MatrixReport& report = reports[0] = {};
    const auto start = Clock::now();
    const blocked::Outcome outcome = qr_.factor(batch[0], out);
    const auto factored = Clock::now();
    seconds.factor += std::chrono::duration<double>(factored - start).count();
    report.scale = outcome.scale;
    if (!outcome.is_finite) {
      fill_with_nan(out);
      report.status = Status::non_finite;
    } else if (!outcome.r_fits) {
      report.status = Status::r_overflows;
    } else {
      checker_.measure(batch[0], out, report);
      seconds.check += seconds_since(factored);
    }
  }

  ChunkSeconds seconds;

 private:
  BlockedQr<T> qr_;
  Checker<T> checker_;
};

/// cpu/batched on one thread.
template <class T>
class BatchedWorker {
 public:
  explicit BatchedWorker(const Problem& problem)
      : qr_(problem), checker_(problem), outcomes_(static_cast<std::size_t>(qr_.lanes())) {}

  index_t matrices_at_once() const { return qr_.lanes(); }

  void run(BatchView<const T> a, const Factors<T>& out, std::span<MatrixReport> reports) {
    const auto start = Clock::now();
    qr_.factor(a, out, outcomes_);
    const auto factored = Clock::now();
    seconds.factor += std::chrono::duration<double>(factored - start).count();
    for (index_t b = 0; b < a.count; ++b) {
      const batched::Outcome& outcome = outcomes_[b];
      MatrixReport& report = reports[b] = {};
      report.scale = outcome.scale;
      if (!outcome.is_finite) {
        fill_with_nan(factors_of(out, b));
        report.status = Status::non_finite;
      } else if (!outcome.r_fits) {
        report.status = Status::r_overflows;
      } else {
        checker_.measure(a[b], factors_of(out, b), report);
      }
    }
    seconds.check += seconds_since(factored);
  }

  ChunkSeconds seconds;

 private:
  BatchedQr<T> qr_;
  Checker<T> checker_;
  std::vector<batched::Outcome> outcomes_;
};

/// `arguments`: of every worker, after the problem.
template <class Worker, class T, class... Arguments>
ChunkSeconds run_workers(const Plan& plan, BatchView<const T> a, const Factors<T>& out,
                         std::span<MatrixReport> report, Arguments... arguments) {
  std::vector<Worker> workers;
  workers.reserve(static_cast<std::size_t>(plan.threads));
  for (int t = 0; t < plan.threads; ++t) workers.emplace_back(plan.problem, arguments...);

  // An exception must not leave a parallel region.
  std::exception_ptr failure;
  index_t next = 0;
#pragma omp parallel for num_threads(plan.threads) schedule(static, 1)
  for (int t = 0; t < plan.threads; ++t) {
    try {
      const index_t step = workers[t].matrices_at_once();
      for (;;) {
        index_t first;
#pragma omp atomic capture
        {
          first = next;
          next += step;
        }
        if (first >= a.count) break;
        const index_t count = std::min(step, a.count - first);
        workers[t].run(
            a.slice(first, count), slice(out, first, count),
            report.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
      }
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);

  ChunkSeconds total;
  for (const Worker& worker : workers) {
    total.factor += worker.seconds.factor / plan.threads;
    total.check += worker.seconds.check / plan.threads;
  }
  return total;
}

/// cpu/tall: a matrix after another, all threads on each.
template <class T>
ChunkSeconds run_tall(const Plan& plan, BatchView<const T> a, const Factors<T>& out,
                      std::span<MatrixReport> reports) {
  const Problem& p = plan.problem;
  TallQr<T> qr(p, plan.threads);
  ErrorMeter meter(p.m, p.n, p.q_cols(), p.r_rows());
  ChunkSeconds seconds;
  for (index_t b = 0; b < a.count; ++b) {
    const auto start = Clock::now();
    const MatrixFactors<T> factors = factors_of(out, b);
    const LeafOutcome outcome = qr.factor(a[b], factors.q, factors.r);
    const auto factored = Clock::now();
    seconds.factor += std::chrono::duration<double>(factored - start).count();
    MatrixReport& report = reports[static_cast<std::size_t>(b)] = {};
    report.scale = outcome.magnitude.scale();
    if (!outcome.magnitude.finite) {
      fill_with_nan(factors);
      report.status = Status::non_finite;
    } else if (!outcome.r_fits) {
      report.status = Status::r_overflows;
    } else {
      const MatrixView<const T> q = p.wants_q() ? factors.q : MatrixView<T>{};
      meter.start<T>(factors.r, report.scale);
      add_rows_by_parts<T>(a[b], q, factors.r, plan.threads, meter);
      enter_errors(p, meter.finish(), report);
    }
    seconds.check += seconds_since(factored);
  }
  return seconds;
}

template <class T>
ChunkSeconds factor_chunk(const Plan& plan, BatchView<const T> a, const Factors<T>& out,
                          std::span<MatrixReport> report) {
  const std::string_view name = plan.variant->name;
  if (name == batched_name) return run_workers<BatchedWorker<T>>(plan, a, out, report);
  if (name == tall_name) return run_tall(plan, a, out, report);
  if (name == blocked_name)
    return run_workers<BlockedWorker<T>>(plan, a, out, report, plan.threads_per_matrix);
  return run_workers<EigenWorker<T>>(plan, a, out, report);
}

}  // namespace

std::string CpuBackend::device() const {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t value = line.find_first_not_of(" \t:", line.find(':'));
    if (value != std::string::npos) return line.substr(value);
  }
  return "unknown processor";
}

ChunkSeconds CpuBackend::factor(const Plan& plan, BatchView<const float> a,
                                const Factors<float>& out, std::span<MatrixReport> report) {
  return factor_chunk(plan, a, out, report);
}

ChunkSeconds CpuBackend::factor(const Plan& plan, BatchView<const double> a,
                                const Factors<double>& out, std::span<MatrixReport> report) {
  return factor_chunk(plan, a, out, report);
}

}  // namespace qrtool
