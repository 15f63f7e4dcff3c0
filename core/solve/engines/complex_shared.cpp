// SPDX-License-Identifier: Apache-2.0
// complex_shared.cpp: one factorization of a complex A, and then tiles of right sides on all
// threads.
#include <algorithm>

#include "core/cpu/cpu_backend.hpp"
#include "core/machine/parallel.hpp"
#include "core/solve/engines/gap_groups.hpp"
#include "core/solve/engines/shared_engine.hpp"

namespace qrtool {
namespace {

/// The number of right sides that a thread solves for at a time.
constexpr index_t tile_sides = 32;

/// z := Q^H B for the rows of B's tile.
template <class T>
void multiply_adjoint(MatrixView<const Wide<T>> q, MatrixView<const T> b, MatrixView<Wide<T>> z) {
  using S = Wide<T>;
  for (index_t i = 0; i < z.rows; ++i) std::fill_n(&z(i, 0), z.cols, S(0));
  for (index_t i = 0; i < b.rows; ++i) {
    S row[tile_sides];
    for (index_t c = 0; c < b.cols; ++c) row[c] = static_cast<S>(b(i, c));
    for (index_t j = 0; j < q.cols; ++j) {
      const S qij = conjugate(q(i, j));
      S* const zj = &z(j, 0);
#pragma omp simd
      for (index_t c = 0; c < b.cols; ++c) zj[c] += product(qij, row[c]);
    }
  }
}

}  // namespace

template <class R>
SharedEngine<std::complex<R>>::SharedEngine(const SolveProblem& problem, const Limits& limits)
    : problem_(problem), limits_(limits), rows_(problem.m) {
  const index_t rows = problem.packed_rows(), n = problem.n, k = problem.k();
  a_ = Batch<T>(1, rows, n);
  q_ = Batch<S>(1, rows, k);
  r_ = Batch<S>(1, k, n);
  for (int i = 0; i < limits.threads; ++i)
    workers_.push_back({.solver = SystemSolver<T>(problem.rules()),
                        .b = Batch<T>(1, rows, tile_sides),
                        .z = Batch<S>(1, std::max<index_t>(k, 1), tile_sides),
                        .packed = {},
                        .gaps = {}});
}

template <class R>
std::size_t SharedEngine<std::complex<R>>::workspace_bytes(const SolveProblem& problem,
                                                           int threads) {
  const auto rows = static_cast<std::size_t>(problem.packed_rows());
  const auto n = static_cast<std::size_t>(problem.n), k = static_cast<std::size_t>(problem.k());
  // A, Q and the memory of factoring A; and for each thread a tile of right sides with its
  // solutions.
  const std::size_t of_a = rows * n * (sizeof(T) + 6 * sizeof(S)) + 4 * k * n * sizeof(S);
  const std::size_t of_thread =
      rows * tile_sides * sizeof(T) + (12 * tile_sides + 6 * n) * n * sizeof(S);
  return of_a + of_thread * static_cast<std::size_t>(threads);
}

template <class R>
MatrixFindings SharedEngine<std::complex<R>>::take_matrix(MatrixView<const T> a, const R* w,
                                                          index_t step) {
  rows_.reset();
  if (w != nullptr) rows_.weigh(w, step);
  if (problem_.skips_missing) rows_.leave_out(a);
  rows_used_ = rows_.used();
  a_is_finite_ = pack_matrix<T>(problem_, a, rows_, a_.view()[0], scales_);
  findings_ = {};
  if (!a_is_finite_ || rows_used_ < problem_.least_rows()) return findings_;
  const Problem factored{.count = 1,
                         .m = problem_.packed_rows(),
                         .n = problem_.n,
                         .type = ElementType::complex128,
                         .mode = Mode::reduced};
  if (!factored.is_empty()) {
    const Batch<S> wide(1, factored.m, factored.n);
    const MatrixView<T> packed = a_.view()[0];
    std::copy_n(packed.data, factored.m * factored.n, wide.view().data);
    CpuBackend cpu(limits_);
    const Plan plan = make_plan(factored, cpu.variants(), limits_);
    std::vector<MatrixReport> report(1);
    cpu.factor<std::complex<double>>(
        plan, wide.view(), Factors<S>{.q = q_.view(), .r = r_.view(), .v = {}, .tau = {}}, report);
  }
  for (Worker& worker : workers_)
    worker.solver.take_factor(MatrixView<const S>(r_.view()[0]), scales_);
  findings_ = workers_.front().solver.findings();
  return findings_;
}

template <class R>
void SharedEngine<std::complex<R>>::solve_tile(const RightSideBlock<T>& block, index_t first,
                                               index_t count, Worker& worker) {
  PackedSystem& packed = worker.packed;
  packed.rows_used = rows_used_;
  packed.scale_b.resize(static_cast<std::size_t>(count));
  packed.b_is_finite.resize(packed.scale_b.size());
  const MatrixView<T> all = worker.b.view()[0];
  const MatrixView<T> b{all.data, all.rows, count, all.ld};
  for (index_t j = 0; j < count; ++j) {
    const T* const from = block.b + block.b_places.start(first + j);
    const index_t step = block.b_places.step;
    const PackedScale of_b = pack_right_side(problem_, from, step, rows_, b, j);
    packed.scale_b[j] = of_b.scale;
    bool has_gap = false;
    for (index_t i = 0; problem_.skips_missing && i < problem_.m; ++i)
      has_gap = has_gap || (rows_[i] != 0 && is_nan(from[i * step]));
    if (has_gap) worker.gaps.push_back(first + j);
    // For a right side with a gap, everything found here is replaced later, but a given x must
    // stay.
    packed.b_is_finite[j] = of_b.is_finite || has_gap;
  }
  const MatrixView<S> tile = worker.z.view()[0];
  const MatrixView<S> z{tile.data, problem_.k(), count, tile.ld};
  multiply_adjoint<T>(q_.view()[0], b, z);
  solve_packed<T>(problem_, {nullptr, first}, {a_.view()[0], b, packed, z}, worker.solver, block);
  for (index_t j = 0; j < count && !block.findings.empty(); ++j)
    block.findings[first + j] = findings_;
}

template <class R>
std::vector<index_t> SharedEngine<std::complex<R>>::run(const RightSideBlock<T>& block) {
  PackedSystem all;
  all.a_is_finite = a_is_finite_;
  all.rows_used = rows_used_;
  if (refuse_system<T>(problem_, {nullptr, 0}, all, block.count, block)) {
    std::fill(block.findings.begin(), block.findings.end(), MatrixFindings{});
    return {};
  }
  const index_t tiles = (block.count + tile_sides - 1) / tile_sides;
  parallel_for(tiles, static_cast<int>(workers_.size()), [&](index_t t, int worker) {
    const index_t first = t * tile_sides;
    solve_tile(block, first, std::min(tile_sides, block.count - first),
               workers_[static_cast<std::size_t>(worker)]);
  });
  return take_gaps(workers_);
}

template class SharedEngine<std::complex<float>>;
template class SharedEngine<std::complex<double>>;

}  // namespace qrtool
