// SPDX-License-Identifier: Apache-2.0
// cpu_backend.cpp: factors and measures a chunk: the variant's workers, and who of them takes what.
#include "core/cpu/cpu_backend.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <optional>
#include <tuple>
#include <vector>

#include "core/cpu/check/checker.hpp"
#include "core/cpu/cpu_variants.hpp"
#include "core/cpu/cpu_workers.hpp"
#include "core/cpu/tall/tall_qr.hpp"
#include "core/machine/clock.hpp"
#include "core/machine/openmp.hpp"
#include "core/machine/parallel.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/row_parts.hpp"

namespace qrtool {
namespace {

/// Returns the mean of all workers' seconds.
template <class Worker>
ChunkSeconds mean_seconds(std::span<Worker> workers) {
  ChunkSeconds total;
  const auto threads = static_cast<double>(workers.size());
  for (const Worker& worker : workers) {
    total.factor += worker.seconds.factor / threads;
    total.check += worker.seconds.check / threads;
  }
  return total;
}

/// Divides the wall time of a chunk into factoring and checking in the proportion of the busy
/// threads. The wall time includes idle threads, and the making of workers.
ChunkSeconds divided(double wall, const ChunkSeconds& busy) {
  const double both = busy.factor + busy.check;
  const double factor = both > 0 ? wall * busy.factor / both : wall;
  return {.factor = factor, .check = wall - factor};
}

/// Every worker takes matrices as long as there are some, each on one thread.
template <class Worker, class T>
ChunkSeconds deal_out(std::span<Worker> workers, BatchView<const T> a, const Factors<T>& out,
                      std::span<MatrixReport> report) {
  for (Worker& worker : workers) worker.seconds = {};
  const index_t step = workers[0].matrices_at_once();
  const auto threads = static_cast<int>(workers.size());
  parallel_for((a.count + step - 1) / step, threads, [&](index_t i, int number) {
    const index_t first = i * step, count = std::min(step, a.count - first);
    workers[static_cast<std::size_t>(number)].run(
        a.slice(first, count), slice(out, first, count),
        report.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
  });
  return mean_seconds(workers);
}

/// Deals the matrices to workers on threads of OpenMP, so that each worker may have a team of its
/// own.
template <class Worker, class T>
ChunkSeconds share_out(std::span<Worker> workers, BatchView<const T> a, const Factors<T>& out,
                       std::span<MatrixReport> report) {
  std::atomic<index_t> next = 0;
  const auto work = [&](Worker& worker) {
    worker.seconds = {};
    const index_t step = worker.matrices_at_once();
    for (index_t first = next.fetch_add(step); first < a.count; first = next.fetch_add(step)) {
      const index_t count = std::min(step, a.count - first);
      worker.run(a.slice(first, count), slice(out, first, count),
                 report.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
    }
  };
  const auto threads = static_cast<int>(workers.size());
  if (threads == 1) {
    work(workers[0]);  // outside of a parallel region, so that a matrix may have one of its own
  } else {
    std::exception_ptr failure;  // must not leave the region
#pragma omp parallel for num_threads(threads_for_region(threads)) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
      try {
        work(workers[static_cast<std::size_t>(t)]);
      } catch (...) {
#pragma omp critical
        failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }
  return mean_seconds(workers);
}

/// Makes the workers of a plan. Every worker gets `arguments` after the problem.
template <class Worker, class... Arguments>
std::vector<Worker> make_workers(const Plan& plan, Arguments... arguments) {
  std::vector<Worker> workers;
  workers.reserve(static_cast<std::size_t>(plan.threads));
  for (int t = 0; t < plan.threads; ++t) workers.emplace_back(plan.problem, arguments...);
  return workers;
}

/// Factors chunks by cpu/batched, cpu/complex or cpu/eigen, with one worker for each thread.
template <class Worker, class T>
class WorkerPerThread final : public ChunkFactor<T> {
 public:
  explicit WorkerPerThread(const Plan& plan) : workers_(make_workers<Worker>(plan)) {}

  ChunkSeconds run(BatchView<const T> a, const Factors<T>& out,
                   std::span<MatrixReport> report) override {
    return deal_out(std::span(workers_), a, out, report);
  }

 private:
  std::vector<Worker> workers_;
};

/// Factors chunks by cpu/blocked: as many matrices at a time as there are workers, and all threads
/// share the matrices that are left at the end.
template <class T>
class BlockedTeams final : public ChunkFactor<T> {
 public:
  explicit BlockedTeams(const Plan& plan)
      : threads_(plan.all_threads()),
        workers_(make_workers<BlockedWorker<T>>(plan, plan.all_threads())) {}

  ChunkSeconds run(BatchView<const T> a, const Factors<T>& out,
                   std::span<MatrixReport> report) override {
    const auto at_once = std::ssize(workers_);
    const index_t left = a.count % at_once, in_rounds = a.count - left;
    has_rest_ = left > 0;
    const ChunkSeconds rounds = run(at_once, a.slice(0, in_rounds), slice(out, 0, in_rounds),
                                    report.first(static_cast<std::size_t>(in_rounds)));
    const ChunkSeconds rest = run(left, a.slice(in_rounds, left), slice(out, in_rounds, left),
                                  report.last(static_cast<std::size_t>(left)));
    return {rounds.factor + rest.factor, rounds.check + rest.check};
  }

 private:
  ChunkSeconds run(index_t at_once, BatchView<const T> a, const Factors<T>& out,
                   std::span<MatrixReport> report) {
    if (a.count == 0) return {};
    const auto busy = std::span(workers_).first(static_cast<std::size_t>(at_once));
    for (BlockedWorker<T>& worker : busy) worker.threads = threads_ / static_cast<int>(at_once);
    // Threads of OpenMP that have just shared a matrix stay awake and would compete with others.
    const bool has_no_teams = busy.front().threads == 1 && busy.size() == workers_.size();
    return has_no_teams && !has_rest_ ? deal_out(busy, a, out, report)
                                      : share_out(busy, a, out, report);
  }

  int threads_;
  bool has_rest_ = false;  // of the present chunk, which all threads share
  std::vector<BlockedWorker<T>> workers_;
};

/// Factors chunks by cpu/tall: one matrix after another, all threads on each.
template <class T>
class TallMatrices final : public ChunkFactor<T> {
 public:
  explicit TallMatrices(const Plan& plan)
      : problem_(plan.problem),
        threads_(plan.threads),
        qr_(problem_, threads_),
        meter_(problem_.m, problem_.n, problem_.q_cols(), problem_.r_rows(), 1,
               is_complex_number<T>) {
    if (problem_.check == Check::probe) checker_.emplace(problem_, threads_);
  }

  ChunkSeconds run(BatchView<const T> a, const Factors<T>& out,
                   std::span<MatrixReport> reports) override {
    ChunkSeconds seconds;
    for (index_t b = 0; b < a.count; ++b) {
      const auto start = Clock::now();
      const MatrixFactors<T> factors = factors_of(out, b);
      const LeafOutcome outcome = qr_.factor(a[b], factors.q, factors.r);
      const auto factored = Clock::now();
      seconds.factor += std::chrono::duration<double>(factored - start).count();
      judge(a[b], factors, outcome, reports[static_cast<std::size_t>(b)]);
      seconds.check += seconds_since(factored);
    }
    return seconds;
  }

 private:
  void judge(MatrixView<const T> a, const MatrixFactors<T>& factors, const LeafOutcome& outcome,
             MatrixReport& report) {
    report = {};
    report.scale = outcome.magnitude.scale();
    report.route = outcome.route;
    if (!outcome.magnitude.finite) {
      fill_with_nan(factors);
      report.status = Status::non_finite;
    } else if (!outcome.r_fits) {
      report.status = Status::r_overflows;
    } else if (checker_) {
      checker_->use_threads(threads_);
      checker_->measure(a, factors, report);
    } else if (problem_.check == Check::full) {
      const MatrixView<const T> q = problem_.wants_q() ? factors.q : MatrixView<T>{};
      meter_.start<T>(factors.r, report.scale);
      const index_t leaf_rows = TallShape(problem_.m, problem_.n).leaf_rows();
      add_rows_by_parts<T>(a, q, factors.r, {leaf_rows, threads_}, meter_);
      enter_errors(problem_, meter_.finish(), report);
    }
  }

  Problem problem_;
  int threads_;
  TallQr<T> qr_;
  ErrorMeter meter_;                   // of rows in parts
  std::optional<Checker<T>> checker_;  // for estimates
};

}  // namespace

template <class T>
ChunkFactorPointer<T> make_batched(const Plan& plan) {
  return std::make_unique<WorkerPerThread<BatchedWorker<T>, T>>(plan);
}
template ChunkFactorPointer<float> make_batched(const Plan&);
template ChunkFactorPointer<double> make_batched(const Plan&);

template <class T>
ChunkFactorPointer<T> make_tall(const Plan& plan) {
  return std::make_unique<TallMatrices<T>>(plan);
}
template ChunkFactorPointer<float> make_tall(const Plan&);
template ChunkFactorPointer<double> make_tall(const Plan&);
template ChunkFactorPointer<std::complex<float>> make_tall(const Plan&);
template ChunkFactorPointer<std::complex<double>> make_tall(const Plan&);

template <class T>
ChunkFactorPointer<T> make_blocked(const Plan& plan) {
  return std::make_unique<BlockedTeams<T>>(plan);
}
template ChunkFactorPointer<float> make_blocked(const Plan&);
template ChunkFactorPointer<double> make_blocked(const Plan&);

template <class T>
ChunkFactorPointer<T> make_complex(const Plan& plan) {
  if (complex_takes_packs(plan.problem.m, plan.problem.n)) return make_batched<T>(plan);
  return std::make_unique<WorkerPerThread<BlockedWorker<T>, T>>(plan);
}
template ChunkFactorPointer<std::complex<float>> make_complex(const Plan&);
template ChunkFactorPointer<std::complex<double>> make_complex(const Plan&);

template <class T>
ChunkFactorPointer<T> make_eigen(const Plan& plan) {
  return std::make_unique<WorkerPerThread<EigenWorker<T>, T>>(plan);
}
template ChunkFactorPointer<float> make_eigen(const Plan&);
template ChunkFactorPointer<double> make_eigen(const Plan&);
template ChunkFactorPointer<std::complex<float>> make_eigen(const Plan&);
template ChunkFactorPointer<std::complex<double>> make_eigen(const Plan&);

/// The workers of the last plan.
struct CpuBackend::Kept {
  explicit Kept(const Plan& its_plan) : plan(its_plan) {}

  /// Whether they serve another plan, too. The number of matrices does not matter.
  bool is_for(const Plan& other) const {
    const Problem &p = plan.problem, &o = other.problem;
    return p.type == o.type && p.m == o.m && p.n == o.n && p.mode == o.mode && p.sign == o.sign &&
           p.arithmetic == o.arithmetic && p.check == o.check && plan.variant == other.variant &&
           plan.threads == other.threads && plan.threads_per_matrix == other.threads_per_matrix;
  }

  template <class T>
  ChunkFactor<T>& chunk_factor() {
    auto& kept = std::get<ChunkFactorPointer<T>>(by_type);
    if (!kept) kept = std::get<CpuVariant::Make<T>>(cpu_variant(*plan.variant).make)(plan);
    return *kept;
  }

  Plan plan;
  OfEachType<std::tuple, ChunkFactorPointer> by_type;
};

CpuBackend::CpuBackend(const Limits& limits) : limits_(limits) {}

CpuBackend::~CpuBackend() = default;

void CpuBackend::free_workspace() { kept_ = nullptr; }

std::string CpuBackend::device() const {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t value = line.find_first_not_of(" \t:", line.find(':'));
    if (value != std::string::npos) return line.substr(value);
  }
  return "unknown processor";
}

ChunkSeconds CpuBackend::factor_any(const Plan& plan, const AnyChunk& any) {
  const auto start = Clock::now();
  if (!kept_ || !kept_->is_for(plan)) {
    kept_ = nullptr;  // what it holds is to go before the next one is made
    kept_ = std::make_unique<Kept>(plan);
  }
  const auto run = [&]<class T>(const ChunkToFactor<T>& chunk) {
    return kept_->chunk_factor<T>().run(chunk.a, chunk.out, chunk.report);
  };
  const ChunkSeconds busy = std::visit(run, any);
  return divided(seconds_since(start), busy);
}

}  // namespace qrtool
