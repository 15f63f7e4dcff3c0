// SPDX-License-Identifier: Apache-2.0
// system.hpp: one system A X = B from its place in memory to its solutions and back.
#pragma once

#include <vector>

#include "core/solve/packing.hpp"

namespace qrtool {

/// One matrix and its right sides, which are neighbours in a block.
template <class T>
struct SystemRef {
  const T* a;          // m x n, packed
  index_t first;       // right side
  index_t absent = 0;  // its first rows, which are none of it, whatever is in their places
};

/// The findings about a system while it is being packed.
struct PackedSystem {
  bool is_copy = false;      // as it is in memory, whatever it holds
  std::vector<int> scale_a;  // of each column
  bool a_is_finite = true;
  index_t rows_used = 0;
  std::vector<int> scale_b;
  std::vector<char> b_is_finite;
};

/// ab (packed_rows x (n + p)) := [A B], scaled and with factored rows. `rows` is a workspace.
template <class T>
void pack_system(const SolveProblem& problem, const SystemRef<T>& system,
                 const RightSideBlock<T>& block, RowFactors& rows, MatrixView<T> ab,
                 PackedSystem& packed);

/// ab (m x (n + p)) := [A B] without scaling, if all rows count once.
template <class T>
void copy_system(const SolveProblem& problem, const SystemRef<T>& system,
                 const RightSideBlock<T>& block, MatrixView<T> ab, PackedSystem& packed);

/// A packed system whose matrix is finite: A, B, the findings about them, and z = Q^H B (k x p).
template <class T>
struct FactoredSystem {
  MatrixView<const T> a, b;
  const PackedSystem& packed;
  MatrixView<const Wide<T>> z;
};
/// Returns the factored system whose A and B lie in one matrix [A B].
template <class T>
FactoredSystem<T> in_one(const SolveProblem& problem, MatrixView<T> ab, const PackedSystem& packed,
                         MatrixView<Wide<T>> z) {
  const index_t n = problem.n;
  return {{ab.data, ab.rows, n, ab.ld}, {ab.data + n, ab.rows, ab.cols - n, ab.ld}, packed, z};
}

/// Solves a system whose R `solver` has taken. The results go to their places in the block.
template <class T>
void solve_packed(const SolveProblem& problem, const SystemRef<T>& system,
                  const FactoredSystem<T>& factored, SystemSolver<T>& solver,
                  const RightSideBlock<T>& block);

/// Fills the places of a right side that has no solution with NaN and sets its status to `why`. A
/// given X must be NaN if there are too few rows; otherwise it is above its bar.
template <class T>
void refuse_right_side(const SolveProblem& problem, const RightSideBlock<T>& block, index_t s,
                       Status why = Status::non_finite);
/// As above, for all right sides of a system that has no solution: too few rows count, or its
/// matrix is not finite. Returns false if it has one.
template <class T>
bool refuse_system(const SolveProblem& problem, const SystemRef<T>& system,
                   const PackedSystem& packed, index_t p, const RightSideBlock<T>& block);

/// Copies x and se (n x p each) of a right side to their places in the block. If X is given,
/// take_solution() copies it to x first, and put_solution() does nothing.
template <class T>
void put_solution(const SolveProblem& problem, MatrixView<const T> x, MatrixView<const Real<T>> se,
                  index_t column, const RightSideBlock<T>& block, index_t s);
/// Computes the covariance of a right side's solution from its standard errors, which are in their
/// places, and from the correlations that R gives (n x n; empty: there are none). Does nothing if
/// it is not wanted.
template <class T>
void put_covariance(const SolveProblem& problem, std::span<const Wide<T>> correlations,
                    const RightSideBlock<T>& block, index_t s);
template <class T>
void take_solution(const SolveProblem& problem, const RightSideBlock<T>& block, index_t s,
                   MatrixView<T> x, index_t column);

}  // namespace qrtool
