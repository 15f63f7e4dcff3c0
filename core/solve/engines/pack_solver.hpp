// SPDX-License-Identifier: Apache-2.0
// pack_solver.hpp: solves as many small systems at a time as a SIMD vector has lanes, on one
// thread. Systems whose rank, range or backward error is in doubt are solved again one by one, by
// SystemSolver with the same R.
#pragma once

#include <span>
#include <vector>

#include "core/cpu/solve/solution_kernel.hpp"
#include "core/solve/system.hpp"

namespace qrtool {

/// Returns the kernels for the instruction sets of this processor, the widest first. The generic
/// kernels are always among them.
std::span<const systems::Kernels* const> systems_kernels();

/// Whether systems with p right sides each should be solved in packs that factor A themselves, even
/// if another method would factor A faster: packs do not copy A, and check only x.
bool pays_as_pack(const SolveProblem& problem, index_t systems, index_t p);

/// Solves packs of systems. Not thread-safe: each thread needs its own object. The result for a
/// system does not depend on its lane or on the other systems.
template <class T>
class PackSolver {
 public:
  /// Says how run() gets R: it computes R itself, or R is given.
  enum class Factor { own, given };

  /// Takes systems of at least as many rows as columns, with p right sides each. `problem` outlives
  /// the object.
  PackSolver(const SolveProblem& problem, index_t p, Factor factor = Factor::own,
             const systems::Kernels& kernels = *systems_kernels().front());

  index_t lanes() const { return routine_.lanes; }
  static std::size_t workspace_bytes(const SolveProblem& problem, index_t p);

  /// Solves at most lanes() systems. A system that A'A cannot solve is put off. The findings of a
  /// matrix go to the place of its first right side.
  void run(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block);
  /// Solves the systems that run() has postponed.
  void finish(const RightSideBlock<T>& block);

  /// Systems that are packed as [A B], and R of each of them.
  struct Factored {
    BatchView<const T> ab, r;
    std::span<const PackedSystem> packed;
  };
  /// Solves systems whose R is given. Calls with_care(i) for every system i that it does not solve.
  template <class WithCare>
  void run_factored(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block,
                    const Factored& factored, WithCare with_care) {
    solve_factored(systems, block, factored);
    for (index_t l = 0; l < std::ssize(systems); ++l)
      needs_care(l) ? with_care(l) : store(systems[l], block, l);
  }

 private:
  static std::size_t kernel_bytes(const systems::Routine<T>& routine, systems::Shape shape);
  void solve_put_off(const RightSideBlock<T>& block);
  void call_kernel(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block);
  void solve_factored(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block,
                      const Factored& factored);
  bool must_be_packed(const SystemRef<T>& system, const RightSideBlock<T>& block) const;
  /// Makes inputs_ refer to the systems without copying. Returns false if they are not at equal
  /// distances.
  bool take_in_place(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block);
  void pack(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block);
  void take_packed(BatchView<const T> ab, std::span<const PackedSystem> packed);
  bool needs_care(index_t lane) const;
  void store(const SystemRef<T>& system, const RightSideBlock<T>& block, index_t lane);
  std::vector<double> correlations_of(index_t lane);
  void solve_with_care(const SystemRef<T>& system, const RightSideBlock<T>& block, index_t lane);

  const SolveProblem& problem_;
  index_t p_;
  systems::Shape shape_;
  systems::Rules rules_;
  systems::Routine<T> routine_;
  HostMemory workspace_;
  RowFactors rows_;
  SystemSolver<T> solver_;
  Batch<T> ab_, x_, se_;  // of each lane; solutions are rows
  Batch<double> r_, z_;
  systems::Pack<T> inputs_;
  std::vector<PackedSystem> packed_;
  std::span<const PackedSystem> inputs_packed_;  // empty: the inputs are not packed
  std::vector<int> shifts_, scales_;             // of right sides, and of columns
  std::vector<index_t> rows_used_;
  std::vector<systems::Solution> solutions_;
  std::vector<systems::Matrix> matrices_;
  std::vector<SystemRef<T>> put_off_;
};

}  // namespace qrtool
