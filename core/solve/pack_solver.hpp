// SPDX-License-Identifier: Apache-2.0
// pack_solver.hpp: solves as many small systems at a time as a SIMD vector has lanes, on one
// thread. Systems whose rank, range or backward error is in doubt are solved again one by one, by
// SystemSolver with the same R.
#pragma once

#include <span>
#include <vector>

#include "core/cpu/solve/kernel.hpp"
#include "core/solve/system.hpp"

namespace qrtool {

/// The kernels for the instruction sets of this processor, the widest first. The generic kernels
/// are always among them.
std::span<const systems::Kernels* const> systems_kernels();

/// Not thread-safe: each thread needs its own object. What is found about a system does not depend
/// on its lane or on the other systems.
template <class T>
class PackSolver {
 public:
  /// For systems of at least as many rows as columns, with p right sides each. `problem` outlives
  /// the object.
  PackSolver(const SolveProblem& problem, index_t p,
             const systems::Kernels& kernels = *systems_kernels().front());

  index_t lanes() const { return routine_.lanes; }
  static std::size_t workspace_bytes(const SolveProblem& problem, index_t p);

  /// Solves at most lanes() systems. The findings of a matrix go to its first right side's place.
  void run(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block);

 private:
  bool must_be_packed(const SystemRef<T>& system, const RightSideBlock<T>& block) const;
  /// Makes inputs_ of the systems where they are, where they are at equal distances; false: they
  /// are not.
  bool take_in_place(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block);
  void pack(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block);
  bool needs_care(index_t lane) const;
  void store(const SystemRef<T>& system, const RightSideBlock<T>& block, index_t lane);
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
  bool is_packed_ = false;
  std::vector<PackedSystem> packed_;
  std::vector<int> shifts_;
  std::vector<index_t> rows_used_;
  std::vector<systems::Solution> solutions_;
  std::vector<systems::Matrix> matrices_;
};

}  // namespace qrtool
