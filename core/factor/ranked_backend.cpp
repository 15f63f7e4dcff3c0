// SPDX-License-Identifier: Apache-2.0
// ranked_backend.cpp: factor | rank | pivot and measure, a thread a matrix.
#include "core/factor/ranked_backend.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/cpu/tall/tall.hpp"
#include "core/eigen/eigen_qr.hpp"
#include "core/factor/rank_and_order.hpp"
#include "core/machine/clock.hpp"
#include "core/machine/parallel.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/error_probe.hpp"
#include "core/measure/row_parts.hpp"
#include "core/plan/ranking_bytes.hpp"
#include "core/problem/tall_shape.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {
namespace {

bool has_factors(const MatrixReport& line) {
  return line.status != Status::non_finite && line.status != Status::r_overflows;
}

/// Returns a matrix of k x n with R on and above the diagonal.
template <class T>
MatrixView<const T> r_of(const Problem& p, const Factors<T>& out, index_t b) {
  const MatrixView<T> r = (p.mode == Mode::raw ? out.v : out.r)[b];
  return r.row_block(0, p.k());
}

/// A variant whose threads share every matrix has one worker.
std::pair<int, int> workers_and_threads(const Plan& plan) {
  if (plan.variant->shared_workspace_bytes != nullptr) return {1, plan.all_threads()};
  return {plan.threads, plan.threads_per_matrix};
}

/// A matrix that could be read by rows is measured in its leaves, as it would be then.
index_t part_rows_of(const Plan& plan) {
  const Problem& p = plan.problem;
  const bool has_leaves = plan.variant->shared_workspace_bytes != nullptr;
  return has_leaves && p.check == Check::full ? TallShape(p.m, p.n).leaf_rows() : 0;
}

}  // namespace

/// Finds rank and condition of the matrices of one thread.
template <class T>
class RankedBackend::Worker {
 public:
  /// Errors are measured in parts of part_rows rows each; 0: in no parts.
  Worker(const Problem& problem, int threads, index_t part_rows)
      : problem_(problem), threads_(threads), part_rows_(part_rows), r_(problem) {
    if (!problem.pivots || problem.check == Check::none) return;
    permuted_ = Batch<T>(1, problem.m, problem.n);
    if (part_rows > 0) {
      meter_.emplace(problem.m, problem.n, problem.q_cols(), problem.r_rows(), 1,
                     is_complex_number<T>);
    } else {
      finder_.emplace(measured_shape(problem, threads), problem.check);
    }
  }

  /// Whether R is not enough to decide on the rank.
  bool rank(const Factors<T>& out, index_t b, MatrixReport& line) {
    if (!has_factors(line)) return false;
    r_.set(r_of(problem_, out, b), line.scale);
    r_.enter(line);
    return sizeof(Real<T>) == 8 && is_by_gram(line.route) && r_.is_near_deficient();
  }

  void pivot(MatrixView<const T> a, const Factors<T>& out, index_t b, MatrixReport& line) {
    const MatrixView<double> p = out.p[b];
    if (!has_factors(line)) {
      std::iota(p.data, p.data + p.cols, 0.0);
      return;
    }
    r_.set(r_of(problem_, out, b), line.scale);
    r_.pivot();
    if (problem_.wants_q()) {
      const MatrixView<T> q = out.q[b];
      r_.multiply(q, threads_);
      if (problem_.sign == Sign::lapack) take_lapack_signs(q);
    }
    r_.store_r(out.r[b].row_block(0, problem_.k()));
    std::copy(r_.permutation().begin(), r_.permutation().end(), p.data);
    if (problem_.check == Check::none) return;
    measure(a, out, b, line);
    if (line.status == Status::above_bar && may_factor_again(problem_)) try_again(a, out, b, line);
  }

 private:
  /// Factors A[:, P], which is in permuted_, by reflectors.
  void try_again(MatrixView<const T> a, const Factors<T>& out, index_t b, MatrixReport& line) {
    if (!reference_) reference_.emplace(problem_);
    reference_->factor(permuted_.view()[0], {.q = out.q[b], .r = out.r[b], .v = {}, .tau = {}});
    line.tries = 2;
    measure(a, out, b, line);
  }

  /// Gives R and Q the signs that the reflectors of A[:, P] leave.
  void take_lapack_signs(MatrixView<T> q) {
    MatrixView<T> top = q.row_block(0, problem_.k());
    top.cols = problem_.k();
    const std::vector<int> signs = lapack_signs<T>(top, problem_.m == problem_.k());
    r_.apply_signs(signs);
    for (index_t i = 0; i < q.rows; ++i)
      for (index_t j = 0; j < top.cols; ++j)  // + 0 as in rows that RankAndOrder multiplies
        q(i, j) = q(i, j) * static_cast<Real<T>>(signs[static_cast<std::size_t>(j)]) + T(0);
  }

  void measure(MatrixView<const T> a, const Factors<T>& out, index_t b, MatrixReport& line) {
    const MatrixView<T> permuted = permuted_.view()[0];
    if (a.cols > 0) {  // rows without entries may be any number
      for (index_t i = 0; i < a.rows; ++i) std::copy_n(&a(i, 0), a.cols, &permuted(i, 0));
      permute_columns(permuted, r_.permutation());
    }
    const MatrixView<const T> q = problem_.wants_q() ? out.q[b] : MatrixView<T>{};
    if (meter_) {
      meter_->start<T>(out.r[b], line.scale);
      add_rows_by_parts<T>(permuted, q, out.r[b], {part_rows_, threads_}, *meter_);
      return enter_errors(problem_, meter_->finish(), line);
    }
    const auto bars_of = [&](const Errors& errors) {
      return standard_bars(problem_.m, problem_.n, precision_of(problem_), errors);
    };
    finder_->use_threads(threads_);
    enter_errors(problem_, finder_->find<T>(permuted, q, out.r[b], line.scale, bars_of), line);
  }

  Problem problem_;
  int threads_;
  index_t part_rows_;
  RankAndOrder<Wide<T>> r_;
  Batch<T> permuted_;  // A[:, P]
  std::optional<EigenQr<T>> reference_;
  // Set if something is measured: one meter for whole matrices, or one for rows in parts.
  std::optional<ErrorMeter> meter_;  // of rows in parts
  std::optional<ErrorFinder> finder_;
};

struct RankedBackend::Workers {
  template <class T>
  using OfType = std::vector<Worker<T>>;
  OfEachType<std::tuple, OfType> by_type;
};

RankedBackend::RankedBackend(SecondTry& backend)
    : BackendAround(&backend),
      reflectors_(backend.reflectors()),
      workers_(std::make_unique<Workers>()) {}

RankedBackend::~RankedBackend() = default;

template <class T>
std::vector<RankedBackend::Worker<T>>& RankedBackend::workers(const Plan& plan) {
  auto& workers = std::get<Workers::OfType<T>>(workers_->by_type);
  const auto [count, threads] = workers_and_threads(plan);
  while (std::cmp_less(workers.size(), count))
    workers.emplace_back(plan.problem, threads, part_rows_of(plan));
  return workers;
}

/// A matrix whose R comes from A'A in float64 and that is close to rank-deficient.
template <class T>
ChunkSeconds RankedBackend::decide_by_reflectors(const Plan& plan, BatchView<const T> a,
                                                 const Factors<T>& out,
                                                 std::span<MatrixReport> report) {
  const std::uint8_t tries = report.front().tries;
  const ChunkSeconds seconds = reflectors_.factor<T>(plan, a, out, report);
  report.front().route = Route::reflectors;
  report.front().tries = tries;
  workers<T>(plan).front().rank(out, 0, report.front());
  return seconds;
}

template <class T>
ChunkSeconds RankedBackend::factor_and_rank(const Plan& plan, const ChunkToFactor<T>& chunk) {
  const BatchView<const T> a = chunk.a;
  const Factors<T>& out = chunk.out;
  const std::span<MatrixReport> report = chunk.report;
  ChunkSeconds seconds = backend_.factor_any(plan, chunk);
  if (!plan.problem.ranks()) return seconds;
  const auto start = Clock::now();
  std::vector<Worker<T>>& all = workers<T>(plan);
  const auto threads = static_cast<int>(all.size());
  std::vector<char> is_doubtful(report.size());
  parallel_for(a.count, threads, [&](index_t b, int worker) {
    const auto i = static_cast<std::size_t>(b);
    is_doubtful[i] = all[static_cast<std::size_t>(worker)].rank(out, b, report[i]);
  });
  for (index_t b = 0; b < a.count; ++b) {
    const auto i = static_cast<std::size_t>(b);
    if (is_doubtful[i])
      decide_by_reflectors<T>(plan, a.slice(b, 1), slice(out, b, 1), report.subspan(i, 1));
  }
  if (plan.problem.pivots)
    parallel_for(a.count, threads, [&](index_t b, int worker) {
      all[static_cast<std::size_t>(worker)].pivot(a[b], out, b,
                                                  report[static_cast<std::size_t>(b)]);
    });
  seconds.factor += seconds_since(start);
  return seconds;
}

ChunkSeconds RankedBackend::factor_any(const Plan& plan, const AnyChunk& any) {
  return std::visit([&](const auto& chunk) { return factor_and_rank(plan, chunk); }, any);
}

}  // namespace qrtool
