// SPDX-License-Identifier: Apache-2.0
// matrices.hpp: generates test matrices by name. Entry (i, j) of matrix b depends only on the seed,
// b, i, j and the shape, so that cutting a batch differently does not change it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/batch.hpp"

namespace qrtool {

struct MatrixKind {
  std::string_view name;
  std::string_view summary;
  bool uses_cond = false;  // MatrixRequest::cond changes the matrices
};

/// Lists every kind that `fill_matrix` knows: gauss, uniform, identity, zero, upper, constant,
/// graded-rows, graded-columns, hilbert, rank-deficient, near-deficient, clustered, band, tiny,
/// huge, mixed, cond, kahan, integers, zero-columns, offset, near-duplicates, counts, zero-quarter,
/// noise-quarter, small-half, near-collinear, contest.
std::span<const MatrixKind> matrix_kinds();
/// Whether `cond` changes the matrices of this kind; false for an unknown kind.
bool uses_cond(std::string_view kind);

struct MatrixRequest {
  // One of matrix_kinds(), or several joined by "+", which the matrices of a batch have in turn.
  std::string_view kind = "gauss";
  // The ratio of the largest singular value to the smallest (kind "cond"), or of the scales (graded
  // kinds), or of the common part of columns to their differences ("offset", "near-duplicates").
  double cond = 1e6;
  std::uint64_t seed = 0;
};

/// Fills matrix number b of a batch. Complex gauss, uniform and integers are X + iY of two real
/// matrices; every other kind is real with random phases of its rows and columns, which keep sizes
/// and singular values. Errors: UsageError for an unknown kind.
template <class T>
void fill_matrix(const MatrixRequest& request, index_t b, MatrixView<T> a);

/// Fills the rows first .. first + rows - 1 of a matrix whose kind computes each entry alone, as
/// all kinds do except the one with its own singular values.
template <class T>
void fill_rows(const MatrixRequest& request, index_t b, MatrixView<T> a, index_t first,
               index_t rows);

/// Returns a good hash of a counter: SplitMix64's finaliser (Steele, Lea, Flood 2014).
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Returns a standard normal number that depends only on its arguments.
double normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

}  // namespace qrtool
