// SPDX-License-Identifier: Apache-2.0
// leverage.hpp: how much each row of A moves its own fitted value,
//
//   h_i = ||row i of the first r columns of Q||^2,  W^1/2 A P = Q R,  0 <= h_i <= 1,  sum h_i = r
//
// with pivoted columns and the rank r. A ridge adds its rows to A, and h_i is then the diagonal of
// W^1/2 A (A'WA + l I)^-1 A'W^1/2, whose sum is below r. Everything is float64, or complex128 where
// A is complex; a transpose is then a conjugate one.
//
// The rank is the one that the report says of A, where it says one. Otherwise R of A with columns
// scaled to norms near 1 decides, by the rule of core/solve/ranked/ranked_factor. The columns that
// count are the first r of R's own order.
//
// A small matrix gives Q by Householder reflectors. A large one is read in blocks of rows, three
// times: R by a tree of blocks; G = Z'Z of Z = A P R^-1, which departs from the identity by the
// rounding errors of R; and h_i = ||S^-T z_i||^2, S'S = G. Sources: Belsley, Kuh, Welsch,
// "Regression Diagnostics" (1980); Yamamoto et al., "Roundoff error analysis of the CholeskyQR2
// algorithm", ETNA 44 (2015).
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "core/solve/packing.hpp"

namespace qrtool {

/// The findings about the leverages of a matrix.
struct LeverageReport {
  index_t rank = 0;
  double error = not_measured;  // the largest of |sum h - r| / r, -h_i and h_i - 1
};

/// Whether a matrix of this shape is small.
bool is_small_for_leverage(index_t m, index_t n);

/// Returns the rows of one matrix that are factored in a block.
index_t leverage_block_rows(index_t n);

/// Gives access to the rows of a large matrix. One thread calls `read` before each group of blocks,
/// to bring their rows into memory. Then several threads may call `rows`, which writes the rows
/// first .. first + rows.rows - 1 of W^1/2 A, with zeros for rows that are left out. S is float64
/// or complex128.
template <class S>
struct LargeRows {
  std::function<void(index_t first, index_t count)> read;
  std::function<void(index_t first, MatrixView<S> rows)> rows;
};
/// Takes the leverages of the rows first, ... in ascending order, between 0 and 1.
using KeepLeverages = std::function<void(index_t first, std::span<const double> leverages)>;

/// Computes the leverages of all rows of a small matrix, on one thread. rank: of A, if it is known.
/// rows: m x n.
template <class S>
LeverageReport small_leverages(const SolveProblem& problem, const std::optional<index_t>& rank,
                               MatrixView<S> rows, std::span<double> leverages);

/// Computes the leverages of a large matrix.
template <class S>
LeverageReport large_leverages(const SolveProblem& problem, const std::optional<index_t>& rank,
                               int threads, const LargeRows<S>& in, const KeepLeverages& keep);

/// Returns the rank of the same rows by the rule of `problem`, in the arithmetic of S.
template <class S>
index_t rank_of_rows(const SolveProblem& problem, int threads, const LargeRows<S>& in);

/// Returns the host memory that large_leverages needs.
std::size_t leverage_bytes(const SolveProblem& problem, int threads);

}  // namespace qrtool
