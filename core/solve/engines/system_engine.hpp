// SPDX-License-Identifier: Apache-2.0
// system_engine.hpp: solves many systems, each with a matrix of its own. Small real ones go into
// packs (core/solve/engines/pack_solver); for all others a backend computes R of [A B], so that z =
// Q^H B comes with it, and the solutions follow from R and z.
#pragma once

#include <vector>

#include "core/backend/backend.hpp"
#include "core/solve/engines/pack_solver.hpp"
#include "core/solve/system.hpp"

namespace qrtool {

/// The seconds for packing and factoring, and the seconds for solving and checking.
struct SolveSeconds {
  double factor = 0, solve = 0;

  SolveSeconds& operator+=(const SolveSeconds& other) {
    factor += other.factor;
    solve += other.solve;
    return *this;
  }
};

/// Solves systems with a matrix each on the CPU. Not thread-safe: workspaces stay from call to
/// call.
template <class T>
class SystemEngine {
 public:
  /// `plan` factors packed_rows x (n + p) matrices of T in mode r. backend and problem outlive the
  /// engine.
  SystemEngine(const SolveProblem& problem, Backend& backend, const Plan& plan, int threads);

  /// Returns the shape and type that the plan is made for.
  static Problem factored_problem(const SolveProblem& problem, index_t systems, index_t p);
  /// Returns the bytes of a system in addition to the bytes that the plan counts.
  static std::size_t workspace_bytes(const SolveProblem& problem, index_t p);

  /// Solves the systems, each with p right sides of the block. The findings of a matrix go to its
  /// first right side's place in block.findings.
  SolveSeconds run(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block);

 private:
  struct Worker {
    RowFactors rows;
    SystemSolver<T> solver;
    Batch<Wide<T>> z;
  };

  /// Whether systems are solved in packs, and whether packs compute R or use the R of a backend.
  enum class Packs { none, own_factor, given_factor };
  static Packs packs_for(const SolveProblem& problem, const Plan& plan);
  SolveSeconds run_packs(std::span<const SystemRef<T>> systems,
                         const RightSideBlock<T>& block) requires(!is_complex_number<T>);
  void solve_chunk(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block);
  void solve_in_packs(std::span<const SystemRef<T>> systems,
                      const RightSideBlock<T>& block) requires(!is_complex_number<T>);
  void solve(const SystemRef<T>& system, const RightSideBlock<T>& block, Worker& worker,
             index_t number);

  const SolveProblem& problem_;
  Backend& backend_;
  Plan plan_;
  index_t p_;
  Packs solves_packs_;
  std::vector<PackSolver<T>> packs_;  // one for each thread
  std::vector<Worker> workers_;
  Batch<T> systems_, factors_;
  std::vector<PackedSystem> packed_;
  std::vector<MatrixReport> reports_;
};

}  // namespace qrtool
