// SPDX-License-Identifier: Apache-2.0
// system_engine.hpp: solves many systems, each with a matrix of its own: R of [A B] by a backend,
// so that z = Q'B comes with it, and the solutions from R and z.
#pragma once

#include <vector>

#include "core/backend.hpp"
#include "core/solve/packing.hpp"

namespace qrtool {

/// One matrix and its right sides, which are neighbours in a block.
template <class T>
struct SystemRef {
  const T* a;     // m x n, packed
  index_t first;  // right side
};

/// The seconds of packing and factoring, and of solving and checking.
struct SolveSeconds {
  double factor = 0, solve = 0;

  SolveSeconds& operator+=(const SolveSeconds& other) {
    factor += other.factor;
    solve += other.solve;
    return *this;
  }
};

/// Not thread-safe: workspaces stay from call to call.
template <class T>
class SystemEngine {
 public:
  /// `plan` factors packed_rows x (n + p) matrices of T in mode r. backend and problem outlive the
  /// engine.
  SystemEngine(const SolveProblem& problem, Backend& backend, const Plan& plan, int threads);

  /// The shape and type that the plan is made for.
  static Problem factored_problem(const SolveProblem& problem, index_t systems, index_t p);
  /// The bytes of a system in addition to those that the plan counts.
  static std::size_t workspace_bytes(const SolveProblem& problem, index_t p);

  /// Solves the systems, each with p right sides of the block. The findings of a matrix go to its
  /// first right side's place in block.findings.
  SolveSeconds run(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block);

 private:
  struct Packed {
    int scale_a = 0;
    bool a_is_finite = true;
    index_t rows_used = 0;
    std::vector<int> scale_b;
    std::vector<char> b_is_finite;
  };
  struct Worker {
    RowFactors rows;
    SystemSolver<T> solver;
    Batch<double> z;
  };

  void pack(const SystemRef<T>& system, const RightSideBlock<T>& block, Worker& worker,
            MatrixView<T> ab, Packed& packed) const;
  void solve(const SystemRef<T>& system, const RightSideBlock<T>& block, Worker& worker,
             index_t number);

  const SolveProblem& problem_;
  Backend& backend_;
  Plan plan_;
  index_t p_;
  std::vector<Worker> workers_;
  Batch<T> systems_, factors_;
  std::vector<Packed> packed_;
  std::vector<MatrixReport> reports_;
};

/// Fills the places of a right side that has no solution with NaN and sets its status.
template <class T>
void refuse_right_side(const SolveProblem& problem, const RightSideBlock<T>& block, index_t s);

/// Copies x and se (n x p each) of a right side to their places in the block. Where X is given,
/// take_solution() copies it to x before, and put_solution() does nothing.
template <class T>
void put_solution(const SolveProblem& problem, MatrixView<const T> x, MatrixView<const T> se,
                  index_t column, const RightSideBlock<T>& block, index_t s);
template <class T>
void take_solution(const SolveProblem& problem, const RightSideBlock<T>& block, index_t s,
                   MatrixView<T> x, index_t column);

}  // namespace qrtool
