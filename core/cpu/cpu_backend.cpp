// SPDX-License-Identifier: Apache-2.0
// cpu_backend.cpp: factors and measures a chunk; a thread takes a matrix, or a pack of them, at a
// time.
#include "core/cpu/cpu_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <fstream>
#include <limits>
#include <string_view>
#include <vector>

#include "core/cpu/batched_qr.hpp"
#include "core/cpu/blocked_qr.hpp"
#include "core/cpu/eigen_qr.hpp"
#include "core/cpu/tall_qr.hpp"
#include "core/ratios.hpp"

namespace qrtool {
namespace {

/// Beyond this a pack outgrows the caches by far.
constexpr index_t most_batched_columns = 128;
/// Beyond this the plain sums of the packs may err by more than the bar.
constexpr index_t most_batched_rows = 1024;

/// Rows per column beyond which the plain sums of cpu/blocked may err by more than the bar.
constexpr index_t most_blocked_rows = 32;
/// Wider trees lose to one factorization.
constexpr index_t most_tall_columns = 128;

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

constexpr std::string_view batched_name = "cpu/batched", tall_name = "cpu/tall",
                           blocked_name = "cpu/blocked";

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

Params no_params(const Problem&, const Limits&) { return {}; }

std::size_t no_device_bytes(const Problem&) { return 0; }

std::string arithmetic(const Problem& p) { return computes_in_float64(p) ? "float64" : "float32"; }

// cpu/batched

Fit batched_fits(const Problem& p, const Limits&) {
  if (p.is_empty()) return {false, "nothing to factor"};
  if (p.k() > most_batched_columns) {
    return {false, fmt::format("more than {} columns", most_batched_columns)};
  }
  if (p.m > most_batched_rows) return {false, fmt::format("more than {} rows", most_batched_rows)};
  return {true, fmt::format("{} matrices at a time", batched_qr_lanes(p))};
}

// The crossings below were measured on one core with AVX-512, float32 and float64, Q and R or R
// alone, 8x8 to 1024x32 and 256x128, 2026-11-21.

/// Entries up to which a full pack beats as many matrices one by one, unless they are narrow: from
/// 128x64 to 256x64 both take the same time on an idle machine, and packs suffer more from
/// neighbours that want the caches too; 1024x32 is a draw.
constexpr index_t most_batched_entries = 96 * 64, narrow_columns = 32;

/// A pack costs the same however few of its lanes hold a matrix: from 32 columns on a matrix in a
/// full pack takes more than half of the time of cpu/blocked. Small ones always go into packs, so
/// that their bits do not depend on how many there are: a pack of 64x64 takes 0.1 ms.
index_t least_batched_matrices(const Problem& p) {
  return p.m * p.n <= 64 * 64 ? 1 : batched_qr_lanes(p) * 5 / 8 + 1;
}

Fit batched_pays(const Problem& p, const Limits&) {
  if (p.k() > narrow_columns && p.m * p.n > most_batched_entries)
    return {false,
            fmt::format("pays to {} entries or {} columns", most_batched_entries, narrow_columns)};
  const index_t least = least_batched_matrices(p);
  if (p.count >= least) {
    return {true,
            fmt::format("{} matrices at a time, pays from {} on", batched_qr_lanes(p), least)};
  }
  return {false, fmt::format("pays from {} matrices of this shape on", least)};
}

std::size_t batched_workspace_bytes(const Problem& p) {
  return batched_qr_workspace_bytes(p) + Checker<double>::workspace_bytes(p);
}

// cpu/tall

Fit tall_fits(const Problem& p, const Limits&) {
  if (p.is_empty()) return {false, "nothing to factor"};
  if (p.mode != Mode::reduced && p.mode != Mode::r) return {false, "mode reduced or r only"};
  const TallShape shape(p.m, p.n);
  if (p.m <= shape.block_rows())
    return {false, fmt::format("at most one block of {} rows", shape.block_rows())};
  return {true, fmt::format("blocks of {} rows, all threads on one matrix", shape.block_rows())};
}

/// Measured against cpu/eigen on one thread with AVX-512, 2026-11-21, float32: breaks even at some
/// 9,000 rows of 8 and 32 columns, 14,000 of 64, 16,000 of 128; two threads halve that.
constexpr index_t least_leaves = 2;

Fit tall_pays(const Problem& p, const Limits&) {
  if (p.n > most_tall_columns) return {false, fmt::format("pays to {} columns", most_tall_columns)};
  const TallShape shape(p.m, p.n);
  const index_t least = least_leaves * shape.leaf_rows();
  if (p.m < least) return {false, fmt::format("pays from {} rows on", least)};
  return {true, fmt::format("blocks of {} rows, all threads on one matrix; pays from {} rows on",
                            shape.block_rows(), least)};
}

template <class F>
std::size_t by_type(const Problem& p, F f) {
  return p.type == ElementType::float32 ? f(float()) : f(double());
}

std::size_t tall_workspace_bytes(const Problem& p) {
  return ErrorMeter::workspace_bytes(p.m, p.n, p.q_cols(), p.r_rows()) + by_type(p, [&](auto zero) {
           return CpuLeaves<decltype(zero)>::workspace_bytes(TallShape(p.m, p.n));
         });
}

std::size_t tall_shared_bytes(const Problem& p) {
  return ErrorMeter::workspace_bytes(p.m, p.n, p.q_cols(), p.r_rows()) +
         by_type(p, [&](auto zero) { return TallQr<decltype(zero)>::workspace_bytes(p, 0); });
}

std::size_t tall_row_state_bytes(const Problem& p) {
  return by_type(p,
                 [&](auto zero) { return TallTree<decltype(zero)>::bytes(TallShape(p.m, p.n)); });
}

// cpu/blocked

Fit blocked_fits(const Problem& p, const Limits&) {
  if (p.is_empty()) return {false, "nothing to factor"};
  if (p.m > most_blocked_rows * p.k())
    return {false, fmt::format("more than {} times as many rows as columns", most_blocked_rows)};
  return {true, "strips of 32 columns"};
}

/// Strips of 32 columns are mostly empty where there are few: 64x8 and 1000x16 break even with
/// cpu/eigen.
Fit blocked_pays(const Problem& p, const Limits&) {
  if (p.k() > 16 || p.m <= 8 * p.k()) return {true, "strips of 32 columns"};
  return {false, "pays from 17 columns on, or to 8 times as many rows as columns"};
}

std::size_t blocked_workspace_bytes(const Problem& p) {
  return blocked_qr_workspace_bytes(p) + Checker<double>::workspace_bytes(p);
}

// cpu/eigen

Fit eigen_fits(const Problem&, const Limits&) { return {true, "takes every shape"}; }

std::size_t eigen_workspace_bytes(const Problem& p) {
  return eigen_qr_workspace_bytes(p) + Checker<double>::workspace_bytes(p);
}

constexpr std::array variants{
    Variant{batched_name, "to 128 columns, many matrices; one matrix per SIMD lane", batched_fits,
            no_params, batched_workspace_bytes, no_device_bytes, arithmetic, false, batched_pays},
    Variant{tall_name,
            "many more rows than columns; a tree over row blocks, threads share a matrix",
            tall_fits, no_params, tall_workspace_bytes, no_device_bytes, arithmetic, false,
            tall_pays, tall_shared_bytes, tall_row_state_bytes},
    Variant{blocked_name, "larger; one matrix in strips of columns, which threads can share",
            blocked_fits, no_params, blocked_workspace_bytes, no_device_bytes, arithmetic, false,
            blocked_pays, nullptr, nullptr, true},
    Variant{"cpu/eigen", "any shape; Householder by Eigen, one matrix per thread", eigen_fits,
            no_params, eigen_workspace_bytes, no_device_bytes, arithmetic},
};

}  // namespace

std::span<const Variant> cpu_variants() { return variants; }

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
