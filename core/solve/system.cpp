// SPDX-License-Identifier: Apache-2.0
// system.cpp: packs a system, solves it with a known factor, and stores its solutions.
#include "core/solve/system.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qrtool {

template <class T>
void pack_system(const SolveProblem& problem, const SystemRef<T>& system,
                 const RightSideBlock<T>& block, RowFactors& rows, MatrixView<T> ab,
                 PackedSystem& packed) {
  const MatrixView<const T> a{system.a, problem.m, problem.n, problem.n};
  const index_t p = ab.cols - problem.n;
  rows.reset();
  if (block.w != nullptr)
    rows.weigh(block.w + block.w_places.start(system.first), block.w_places.step);
  if (problem.skips_missing) {
    rows.leave_out(a);
    for (index_t j = 0; j < p; ++j)
      rows.leave_out(block.b + block.b_places.start(system.first + j), block.b_places.step);
  }
  rows.leave_out_first(system.absent);
  packed.is_copy = false;
  packed.rows_used = rows.used();
  packed.a_is_finite =
      pack_matrix<T>(problem, a, rows, {ab.data, ab.rows, a.cols, ab.ld}, packed.scale_a);
  packed.scale_b.resize(static_cast<std::size_t>(p));
  packed.b_is_finite.resize(static_cast<std::size_t>(p));
  for (index_t j = 0; j < p; ++j) {
    const T* b = block.b + block.b_places.start(system.first + j);
    const PackedScale of_b =
        pack_right_side(problem, b, block.b_places.step, rows, ab, problem.n + j);
    packed.scale_b[j] = of_b.scale;
    packed.b_is_finite[j] = of_b.is_finite;
  }
}

template <class T>
void copy_system(const SolveProblem& problem, const SystemRef<T>& system,
                 const RightSideBlock<T>& block, MatrixView<T> ab, PackedSystem& packed) {
  const index_t n = problem.n, p = ab.cols - n;
  const VectorPlaces& places = block.b_places;
  for (index_t i = 0; i < problem.m; ++i) {
    std::copy_n(system.a + i * n, n, &ab(i, 0));
    for (index_t j = 0; j < p; ++j)
      ab(i, n + j) = block.b[places.start(system.first + j) + i * places.step];
  }
  packed.is_copy = true;
  packed.scale_a.assign(static_cast<std::size_t>(n), 0);
  packed.a_is_finite = true;
  packed.rows_used = problem.m;
  packed.scale_b.assign(static_cast<std::size_t>(p), 0);
  packed.b_is_finite.assign(static_cast<std::size_t>(p), true);
}

template <class T>
void solve_packed(const SolveProblem& problem, const SystemRef<T>& system,
                  const FactoredSystem<T>& factored, SystemSolver<T>& solver,
                  const RightSideBlock<T>& block) {
  const PackedSystem& packed = factored.packed;
  const index_t n = problem.n, p = factored.b.cols;
  if (!block.findings.empty()) block.findings[system.first] = solver.findings();
  PackedRows<T> rows(problem, factored.a, factored.b);
  const Batch<T> solution(1, n, p);
  const Batch<Real<T>> errors(1, n, p);
  const MatrixView<T> x = solution.view()[0];
  const MatrixView<Real<T>> se = errors.view()[0];
  for (index_t j = 0; j < p; ++j) take_solution<T>(problem, block, system.first + j, x, j);
  const std::vector<index_t> rows_used(static_cast<std::size_t>(p), packed.rows_used);
  solver.solve(rows, 0, factored.z, packed.scale_b,
               {.x = x,
                .se = block.se != nullptr ? se : MatrixView<Real<T>>{},
                .reports = block.reports.subspan(static_cast<std::size_t>(system.first),
                                                 static_cast<std::size_t>(p)),
                .rows_used = rows_used});
  const std::vector<Wide<T>> correlations =
      block.covariance != nullptr ? solver.factor().correlations() : std::vector<Wide<T>>{};
  for (index_t j = 0; j < p; ++j) {
    const index_t s = system.first + j;
    if (packed.b_is_finite[j]) {
      put_solution<T>(problem, x, se, j, block, s);
      put_covariance<T>(problem, correlations, block, s);
    } else {
      refuse_right_side(problem, block, s);
    }
  }
}

template <class T>
void refuse_right_side(const SolveProblem& problem, const RightSideBlock<T>& block, index_t s,
                       Status why) {
  const index_t start = block.x_places.start(s);
  if (problem.only_checks && why == Status::too_few_rows)
    for (index_t i = 0; i < problem.n; ++i)
      if (!is_nan(block.x[start + i * block.x_places.step])) why = Status::above_bar;
  const auto fill = [&]<class E>(E* to) {
    for (index_t i = 0; to != nullptr && i < problem.n; ++i)
      to[start + i * block.x_places.step] = not_a_number<E>();
  };
  fill(block.x);
  fill(block.se);
  put_covariance<T>(problem, {}, block, s);
  block.reports[s] = {};
  block.reports[s].status = why;
}

template <class T>
bool refuse_system(const SolveProblem& problem, const SystemRef<T>& system,
                   const PackedSystem& packed, index_t p, const RightSideBlock<T>& block) {
  const bool has_few = packed.rows_used < problem.least_rows();
  if (!has_few && packed.a_is_finite) return false;
  const Status why = has_few ? Status::too_few_rows : Status::non_finite;
  for (index_t j = 0; j < p; ++j) refuse_right_side(problem, block, system.first + j, why);
  if (!block.findings.empty()) block.findings[system.first] = {};
  return true;
}

template <class T>
void put_solution(const SolveProblem& problem, MatrixView<const T> x, MatrixView<const Real<T>> se,
                  index_t column, const RightSideBlock<T>& block, index_t s) {
  if (problem.only_checks) return;
  const index_t start = block.x_places.start(s), step = block.x_places.step;
  for (index_t i = 0; i < problem.n; ++i) block.x[start + i * step] = x(i, column);
  if (block.se == nullptr) return;
  for (index_t i = 0; i < problem.n; ++i) block.se[start + i * step] = se(i, column);
}

template <class T>
void put_covariance(const SolveProblem& problem, std::span<const Wide<T>> correlations,
                    const RightSideBlock<T>& block, index_t s) {
  if (block.covariance == nullptr) return;
  const index_t n = problem.n, start = block.x_places.start(s), step = block.x_places.step;
  const MatrixView<T> to{block.covariance + s * n * n, n, n, n};
  for (index_t i = 0; i < n; ++i) {
    const auto of_i = static_cast<double>(block.se[start + i * step]);
    for (index_t j = 0; j < n; ++j) {
      const auto of_j = static_cast<double>(block.se[start + j * step]);
      // The parentheses keep it symmetric to the last bit.
      to(i, j) = correlations.empty() ? not_a_number<T>()
                                      : static_cast<T>(correlations[i * n + j] * (of_i * of_j));
    }
  }
}

template <class T>
void take_solution(const SolveProblem& problem, const RightSideBlock<T>& block, index_t s,
                   MatrixView<T> x, index_t column) {
  if (!problem.only_checks) return;
  const index_t start = block.x_places.start(s);
  for (index_t i = 0; i < problem.n; ++i) x(i, column) = block.x[start + i * block.x_places.step];
}

#define QRTOOL_FOR(T)                                                                              \
  template void pack_system(const SolveProblem&, const SystemRef<T>&, const RightSideBlock<T>&,    \
                            RowFactors&, MatrixView<T>, PackedSystem&);                            \
  template void copy_system(const SolveProblem&, const SystemRef<T>&, const RightSideBlock<T>&,    \
                            MatrixView<T>, PackedSystem&);                                         \
  template void solve_packed(const SolveProblem&, const SystemRef<T>&, const FactoredSystem<T>&,   \
                             SystemSolver<T>&, const RightSideBlock<T>&);                          \
  template void refuse_right_side(const SolveProblem&, const RightSideBlock<T>&, index_t, Status); \
  template bool refuse_system(const SolveProblem&, const SystemRef<T>&, const PackedSystem&,       \
                              index_t, const RightSideBlock<T>&);                                  \
  template void put_solution(const SolveProblem&, MatrixView<const T>, MatrixView<const Real<T>>,  \
                             index_t, const RightSideBlock<T>&, index_t);                          \
  template void put_covariance(const SolveProblem&, std::span<const Wide<T>>,                      \
                               const RightSideBlock<T>&, index_t);                                 \
  template void take_solution(const SolveProblem&, const RightSideBlock<T>&, index_t,              \
                              MatrixView<T>, index_t);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
