// SPDX-License-Identifier: Apache-2.0
// system_engine.cpp: pack | factor | solve and check, some systems at a time.
#include "core/solve/engines/system_engine.hpp"

#include <algorithm>

#include "core/machine/clock.hpp"
#include "core/solve/engines/team.hpp"

namespace qrtool {
namespace {

/// Beyond these the plain sums of a pack would err by more than a small part of the bar, or R of a
/// pack would outgrow the caches by far.
constexpr index_t most_pack_rows = 4096, most_pack_columns = 256;

}  // namespace

template <class T>
SystemEngine<T>::SystemEngine(const SolveProblem& problem, Backend& backend, const Plan& plan,
                              int threads)
    : problem_(problem),
      backend_(backend),
      plan_(plan),
      p_(plan.problem.n - problem.n),
      solves_packs_(packs_for(problem, plan)) {
  if constexpr (!is_complex_number<T>) {
    using Factor = typename PackSolver<T>::Factor;
    const bool is_own = solves_packs_ == Packs::own_factor;
    for (int i = 0; i < threads && solves_packs_ != Packs::none; ++i)
      packs_.emplace_back(problem, p_, is_own ? Factor::own : Factor::given);
    if (is_own) return;
  }
  systems_ = Batch<T>(plan.chunk_matrices, plan.problem.m, plan.problem.n);
  factors_ = Batch<T>(plan.chunk_matrices, plan.problem.k(), plan.problem.n);
  packed_.resize(static_cast<std::size_t>(plan.chunk_matrices));
  reports_.resize(packed_.size());
  for (int i = 0; i < threads; ++i)
    workers_.push_back({RowFactors(problem.m), SystemSolver<T>(problem.rules()),
                        Batch<Wide<T>>(1, std::max<index_t>(problem.k(), 1), p_)});
}

/// Systems are solved in packs if R of [A B] would be computed in packs on the CPU.
template <class T>
typename SystemEngine<T>::Packs SystemEngine<T>::packs_for(const SolveProblem& problem,
                                                           const Plan& plan) {
  const index_t rows = problem.packed_rows(), n = problem.n;
  if (is_complex_number<T>) return Packs::none;
  if (rows < n || n == 0 || plan.problem.n == n || plan.variant == nullptr) return Packs::none;
  if (std::string_view(plan.variant->name) == "cpu/batched") return Packs::own_factor;
  const bool is_small = rows <= most_pack_rows && n <= most_pack_columns;
  return is_small ? Packs::given_factor : Packs::none;
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
         static_cast<std::size_t>(problem.n * (problem.n + 8 * p)) * sizeof(Wide<T>) +
         sizeof(MatrixReport) + sizeof(MatrixFindings) + sizeof(PackedSystem) +
         static_cast<std::size_t>(problem.n) * sizeof(int);
}

template <class T>
void SystemEngine<T>::solve(const SystemRef<T>& system, const RightSideBlock<T>& block,
                            Worker& worker, index_t number) {
  if (refuse_system(problem_, system, packed_[number], p_, block)) return;
  const index_t n = problem_.n, k = problem_.k();
  const MatrixView<T> ab = systems_.view()[number], factor = factors_.view()[number];
  worker.solver.take_factor(MatrixView<const T>{factor.data, k, n, factor.ld},
                            packed_[number].scale_a);
  const MatrixView<Wide<T>> z = worker.z.view()[0].row_block(0, k);
  for (index_t i = 0; i < k; ++i)
    for (index_t j = 0; j < p_; ++j) z(i, j) = static_cast<Wide<T>>(factor(i, n + j));
  solve_packed<T>(problem_, system, in_one(problem_, ab, packed_[number], z), worker.solver, block);
}

template <class T>
SolveSeconds SystemEngine<T>::run_packs(
    std::span<const SystemRef<T>> systems,
    const RightSideBlock<T>& block) requires(!is_complex_number<T>) {
  const auto start = Clock::now();
  const auto all = std::ssize(systems);
  const index_t lanes = packs_.front().lanes(), packs = (all + lanes - 1) / lanes;
  for_each_in_team(packs, static_cast<int>(packs_.size()), [&](index_t i, int thread) {
    const index_t first = i * lanes, count = std::min(lanes, all - first);
    packs_[thread].run(
        systems.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), block);
  });
  for_each_in_team(std::ssize(packs_), static_cast<int>(packs_.size()),
                   [&](index_t i, int) { packs_[i].finish(block); });
  return {.solve = seconds_since(start)};
}

template <class T>
void SystemEngine<T>::solve_chunk(std::span<const SystemRef<T>> systems,
                                  const RightSideBlock<T>& block) {
  const auto threads = static_cast<int>(workers_.size());
  const auto all = std::ssize(systems);
  if (packs_.empty()) {
    for_each_in_team(all, threads,
                     [&](index_t i, int worker) { solve(systems[i], block, workers_[worker], i); });
    return;
  }
  if constexpr (!is_complex_number<T>) solve_in_packs(systems, block);
}

/// Solves the systems whose R is in factors_.
template <class T>
void SystemEngine<T>::solve_in_packs(
    std::span<const SystemRef<T>> systems,
    const RightSideBlock<T>& block) requires(!is_complex_number<T>) {
  const auto threads = static_cast<int>(workers_.size());
  const auto all = std::ssize(systems);
  const index_t lanes = packs_.front().lanes(), packs = (all + lanes - 1) / lanes;
  for_each_in_team(packs, threads, [&](index_t pack, int worker) {
    const index_t first = pack * lanes, count = std::min(lanes, all - first);
    const auto place = static_cast<std::size_t>(first), number = static_cast<std::size_t>(count);
    packs_[worker].run_factored(
        systems.subspan(place, number), block,
        {systems_.view().slice(first, count), factors_.view().slice(first, count),
         std::span<const PackedSystem>(packed_).subspan(place, number)},
        [&](index_t i) { solve(systems[first + i], block, workers_[worker], first + i); });
  });
}

template <class T>
SolveSeconds SystemEngine<T>::run(std::span<const SystemRef<T>> systems,
                                  const RightSideBlock<T>& block) {
  if constexpr (!is_complex_number<T>) {
    if (solves_packs_ == Packs::own_factor) return run_packs(systems, block);
  }
  SolveSeconds seconds;
  const auto all = std::ssize(systems);
  const auto threads = static_cast<int>(workers_.size());
  for (index_t first = 0; first < all; first += plan_.chunk_matrices) {
    const index_t count = std::min(plan_.chunk_matrices, all - first);
    const auto start = Clock::now();
    const BatchView<T> ab = systems_.view().slice(0, count);
    for_each_in_team(count, threads, [&](index_t i, int worker) {
      pack_system(problem_, systems[first + i], block, workers_[worker].rows, ab[i], packed_[i]);
    });
    if (!plan_.problem.is_empty())
      backend_.factor<T>(
          plan_, ab, Factors<T>{.q = {}, .r = factors_.view().slice(0, count), .v = {}, .tau = {}},
          std::span(reports_).first(static_cast<std::size_t>(count)));
    seconds.factor += seconds_since(start);
    const auto factored = Clock::now();
    solve_chunk(systems.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                block);
    seconds.solve += seconds_since(factored);
  }
  return seconds;
}

template class SystemEngine<float>;
template class SystemEngine<double>;
template class SystemEngine<std::complex<float>>;
template class SystemEngine<std::complex<double>>;

}  // namespace qrtool
