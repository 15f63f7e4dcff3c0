// SPDX-License-Identifier: Apache-2.0
// system_engine.cpp: pack | factor | solve and check, some systems at a time.
#include "core/solve/system_engine.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/solve/team.hpp"

namespace qrtool {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

template <class T>
void refuse_right_side(const SolveProblem& problem, const RightSideBlock<T>& block, index_t s) {
  const index_t start = block.x_places.start(s);
  for (T* to : {block.x, block.se}) {
    if (to == nullptr) continue;
    for (index_t i = 0; i < problem.n; ++i)
      to[start + i * block.x_places.step] = std::numeric_limits<T>::quiet_NaN();
  }
  block.reports[s] = {};
  block.reports[s].status = Status::non_finite;
}

template <class T>
void put_solution(const SolveProblem& problem, MatrixView<const T> x, MatrixView<const T> se,
                  index_t column, const RightSideBlock<T>& block, index_t s) {
  if (problem.only_checks) return;
  const index_t start = block.x_places.start(s), step = block.x_places.step;
  for (index_t i = 0; i < problem.n; ++i) block.x[start + i * step] = x(i, column);
  if (block.se == nullptr) return;
  for (index_t i = 0; i < problem.n; ++i) block.se[start + i * step] = se(i, column);
}

template <class T>
void take_solution(const SolveProblem& problem, const RightSideBlock<T>& block, index_t s,
                   MatrixView<T> x, index_t column) {
  if (!problem.only_checks) return;
  const index_t start = block.x_places.start(s);
  for (index_t i = 0; i < problem.n; ++i) x(i, column) = block.x[start + i * block.x_places.step];
}

template <class T>
SystemEngine<T>::SystemEngine(const SolveProblem& problem, Backend& backend, const Plan& plan,
                              int threads)
    : problem_(problem),
      backend_(backend),
      plan_(plan),
      p_(plan.problem.n - problem.n),
      systems_(plan.chunk_matrices, plan.problem.m, plan.problem.n),
      factors_(plan.chunk_matrices, plan.problem.k(), plan.problem.n),
      packed_(static_cast<std::size_t>(plan.chunk_matrices)),
      reports_(packed_.size()) {
  for (int i = 0; i < threads; ++i)
    workers_.push_back({RowFactors(problem.m), SystemSolver<T>(problem.rules()),
                        Batch<double>(1, std::max<index_t>(problem.k(), 1), p_)});
}

template <class T>
Problem SystemEngine<T>::factored_problem(const SolveProblem& problem, index_t systems, index_t p) {
  return {.count = systems,
          .m = problem.packed_rows(),
          .n = problem.n + p,
          .type = element_type<T>,
          .mode = Mode::r,
          .sign = Sign::positive};
}

template <class T>
std::size_t SystemEngine<T>::workspace_bytes(const SolveProblem& problem, index_t p) {
  return static_cast<std::size_t>(p) * (sizeof(SolutionReport) + sizeof(int)) +
         static_cast<std::size_t>(problem.n * (problem.n + 8 * p)) * sizeof(double) +
         sizeof(MatrixReport) + sizeof(MatrixFindings) + sizeof(Packed);
}

template <class T>
void SystemEngine<T>::pack(const SystemRef<T>& system, const RightSideBlock<T>& block,
                           Worker& worker, MatrixView<T> ab, Packed& packed) const {
  const MatrixView<const T> a{system.a, problem_.m, problem_.n, problem_.n};
  RowFactors& rows = worker.rows;
  rows.reset();
  if (block.w != nullptr)
    rows.weigh(block.w + block.w_places.start(system.first), block.w_places.step);
  if (problem_.skips_missing) {
    rows.leave_out(a);
    for (index_t j = 0; j < p_; ++j)
      rows.leave_out(block.b + block.b_places.start(system.first + j), block.b_places.step);
  }
  packed.rows_used = rows.used();
  const PackedScale of_a = pack_matrix<T>(problem_, a, rows, {ab.data, ab.rows, a.cols, ab.ld});
  packed.scale_a = of_a.scale;
  packed.a_is_finite = of_a.is_finite;
  packed.scale_b.resize(static_cast<std::size_t>(p_));
  packed.b_is_finite.resize(static_cast<std::size_t>(p_));
  for (index_t j = 0; j < p_; ++j) {
    const T* b = block.b + block.b_places.start(system.first + j);
    const PackedScale of_b =
        pack_right_side(problem_, b, block.b_places.step, rows, ab, problem_.n + j);
    packed.scale_b[j] = of_b.scale;
    packed.b_is_finite[j] = of_b.is_finite;
  }
}

template <class T>
void SystemEngine<T>::solve(const SystemRef<T>& system, const RightSideBlock<T>& block,
                            Worker& worker, index_t number) {
  const Packed& packed = packed_[number];
  if (!packed.a_is_finite) {
    for (index_t j = 0; j < p_; ++j) refuse_right_side(problem_, block, system.first + j);
    if (!block.findings.empty()) block.findings[system.first] = {};
    return;
  }
  const index_t n = problem_.n, k = problem_.k();
  const MatrixView<T> ab = systems_.view()[number], factor = factors_.view()[number];
  worker.solver.take_factor(MatrixView<const T>{factor.data, k, n, factor.ld});
  if (!block.findings.empty()) block.findings[system.first] = worker.solver.findings();
  const MatrixView<double> z = worker.z.view()[0].row_block(0, k);
  for (index_t i = 0; i < k; ++i)
    for (index_t j = 0; j < p_; ++j) z(i, j) = static_cast<double>(factor(i, n + j));
  PackedRows<T> rows(problem_, {ab.data, ab.rows, n, ab.ld}, {ab.data + n, ab.rows, p_, ab.ld});
  const Batch<T> solution(2, n, p_);
  for (index_t j = 0; j < p_; ++j)
    take_solution<T>(problem_, block, system.first + j, solution.view()[0], j);
  const std::vector<index_t> rows_used(static_cast<std::size_t>(p_), packed.rows_used);
  worker.solver.solve(rows, 0, z, {packed.scale_a, packed.scale_b},
                      {.x = solution.view()[0],
                       .se = block.se != nullptr ? solution.view()[1] : MatrixView<T>{},
                       .reports = block.reports.subspan(static_cast<std::size_t>(system.first),
                                                        static_cast<std::size_t>(p_)),
                       .rows_used = rows_used});
  for (index_t j = 0; j < p_; ++j) {
    const index_t s = system.first + j;
    if (!packed.b_is_finite[j]) {
      refuse_right_side(problem_, block, s);
      continue;
    }
    put_solution<T>(problem_, solution.view()[0], solution.view()[1], j, block, s);
  }
}

template <class T>
SolveSeconds SystemEngine<T>::run(std::span<const SystemRef<T>> systems,
                                  const RightSideBlock<T>& block) {
  SolveSeconds seconds;
  const auto all = std::ssize(systems);
  const auto threads = static_cast<int>(workers_.size());
  for (index_t first = 0; first < all; first += plan_.chunk_matrices) {
    const index_t count = std::min(plan_.chunk_matrices, all - first);
    const auto start = Clock::now();
    const BatchView<T> ab = systems_.view().slice(0, count);
    for_each_in_team(count, threads, [&](index_t i, int worker) {
      pack(systems[first + i], block, workers_[worker], ab[i], packed_[i]);
    });
    if (!plan_.problem.is_empty())
      backend_.factor(plan_, ab,
                      Factors<T>{.q = {}, .r = factors_.view().slice(0, count), .v = {}, .tau = {}},
                      std::span(reports_).first(static_cast<std::size_t>(count)));
    seconds.factor += seconds_since(start);
    const auto factored = Clock::now();
    for_each_in_team(count, threads, [&](index_t i, int worker) {
      solve(systems[first + i], block, workers_[worker], i);
    });
    seconds.solve += seconds_since(factored);
  }
  return seconds;
}

#define QRTOOL_FOR(T)                                                                       \
  template class SystemEngine<T>;                                                           \
  template void refuse_right_side(const SolveProblem&, const RightSideBlock<T>&, index_t);  \
  template void put_solution(const SolveProblem&, MatrixView<const T>, MatrixView<const T>, \
                             index_t, const RightSideBlock<T>&, index_t);                   \
  template void take_solution(const SolveProblem&, const RightSideBlock<T>&, index_t,       \
                              MatrixView<T>, index_t);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
#undef QRTOOL_FOR

}  // namespace qrtool
