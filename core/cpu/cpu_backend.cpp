// SPDX-License-Identifier: Apache-2.0
// cpu_backend.cpp: factors and measures a chunk, one matrix per OpenMP thread.
#include "core/cpu/cpu_backend.hpp"

#include <array>
#include <chrono>
#include <exception>
#include <fstream>
#include <limits>
#include <vector>

#include "core/cpu/eigen_qr.hpp"
#include "core/ratios.hpp"

namespace qrtool {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Factors and measures the matrices of one thread.
template <class T>
class Worker {
 public:
  Worker(const Plan& plan)
      : problem_(plan.problem),
        qr_(problem_),
        meter_(problem_.m, problem_.n, measured_q_cols(problem_), measured_r_rows(problem_)) {
    if (problem_.mode == Mode::raw) formed_q_ = Batch<double>(1, problem_.m, problem_.k());
    if (problem_.mode == Mode::raw) widened_ = Batch<double>(2, problem_.m, problem_.n);
  }

  /// reduced Q stands in for raw's reflectors when they are measured.
  static index_t measured_q_cols(const Problem& p) {
    return p.mode == Mode::raw ? p.k() : p.q_cols();
  }
  static index_t measured_r_rows(const Problem& p) {
    return p.mode == Mode::raw ? p.k() : p.r_rows();
  }

  void run(MatrixView<const T> a, const MatrixFactors<T>& out, MatrixReport& report) {
    report = {};
    const Magnitude magnitude = magnitude_of(a);
    if (!magnitude.finite) {
      fill_with_nan(out);
      report.status = Status::non_finite;
      return;
    }
    report.scale = magnitude.scale();
    const auto start = Clock::now();
    const bool r_fits = qr_.factor(a, out);
    const auto factored = Clock::now();
    seconds.factor += std::chrono::duration<double>(factored - start).count();
    if (!r_fits) {
      report.status = Status::r_overflows;
      return;
    }
    measure(a, out, report);
    seconds.check += seconds_since(factored);
  }

  ChunkSeconds seconds;

 private:
  static void fill_with_nan(const MatrixFactors<T>& out) {
    for (const MatrixView<T>& view : {out.q, out.r, out.v, out.tau}) {
      for (index_t i = 0; i < view.rows; ++i) {
        std::fill_n(view.data + i * view.ld, view.cols, std::numeric_limits<T>::quiet_NaN());
      }
    }
  }

  void measure(MatrixView<const T> a, const MatrixFactors<T>& out, MatrixReport& report) {
    const Errors errors = problem_.mode == Mode::raw
                              ? measure_reflectors(a, out)
                              : meter_.measure<T>(a, out.q, out.r, report.scale);
    const Bars bars = standard_bars(problem_.m, problem_.n, precision_of(problem_.type), errors);
    const bool has_q = problem_.mode != Mode::r;
    report.residual = errors.residual;
    report.orthogonality = errors.orthogonality;
    report.lower = errors.lower;
    report.diagonal_ratio = errors.diagonal_ratio;
    report.status = judge(errors, bars, has_q);
  }

  /// Q from V and tau as they were stored, R the upper part of V\R.
  Errors measure_reflectors(MatrixView<const T> a, const MatrixFactors<T>& out) {
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
    return meter_.measure<double>(wide_a, q, r, magnitude_of(a).scale());
  }

  Problem problem_;
  EigenQr<T> qr_;
  ErrorMeter meter_;
  Batch<double> formed_q_, widened_;  // raw
};

template <class T>
MatrixFactors<T> factors_of(const Factors<T>& all, index_t b) {
  return {all.q[b], all.r[b], all.v[b], all.tau[b]};
}

template <class T>
ChunkSeconds factor_chunk(const Plan& plan, BatchView<const T> a, const Factors<T>& out,
                          std::span<MatrixReport> report) {
  std::vector<Worker<T>> workers;
  workers.reserve(static_cast<std::size_t>(plan.threads));
  for (int t = 0; t < plan.threads; ++t) workers.emplace_back(plan);

  // An exception must not leave a parallel region.
  std::exception_ptr failure;
  index_t next = 0;
#pragma omp parallel for num_threads(plan.threads) schedule(static, 1)
  for (int t = 0; t < plan.threads; ++t) {
    try {
      for (;;) {
        index_t b;
#pragma omp atomic capture
        b = next++;
        if (b >= a.count) break;
        workers[t].run(a[b], factors_of(out, b), report[b]);
      }
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);

  ChunkSeconds total;
  for (const Worker<T>& worker : workers) {
    total.factor += worker.seconds.factor / plan.threads;
    total.check += worker.seconds.check / plan.threads;
  }
  return total;
}

// cpu/eigen

Fit eigen_fits(const Problem&, const Limits&) { return {true, "takes every shape"}; }

Params eigen_tune(const Problem&, const Limits&) { return {}; }

std::size_t eigen_workspace_bytes(const Problem& p) {
  using W = Worker<double>;
  std::size_t bytes =
      eigen_qr_workspace_bytes(p) +
      ErrorMeter::workspace_bytes(p.m, p.n, W::measured_q_cols(p), W::measured_r_rows(p));
  if (p.mode == Mode::raw) {
    // Q formed, its reflectors in column order, A and R widened to float64.
    bytes += sizeof(double) * static_cast<std::size_t>(p.m * (2 * p.k() + 3 * p.n));
  }
  return bytes;
}

std::size_t no_device_bytes(const Problem&) { return 0; }

std::string eigen_arithmetic(const Problem& p) {
  return computes_in_float64(p) ? "float64" : "float32";
}

constexpr std::array variants{
    Variant{"cpu/eigen", "any shape; Householder by Eigen, one matrix per thread", eigen_fits,
            eigen_tune, eigen_workspace_bytes, no_device_bytes, eigen_arithmetic},
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
