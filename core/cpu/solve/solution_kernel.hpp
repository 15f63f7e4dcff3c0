// SPDX-License-Identifier: Apache-2.0
// solution_kernel.hpp: the kernels that solve least-squares problems with as many small matrices as
// a SIMD vector has lanes, and check the solutions. Private to core.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu/batched/pack_kernel.hpp"

namespace qrtool::systems {

using batched::Strided;

/// min ||A x_j - b_j|| for A (m x n, m >= n) and p right sides.
struct Shape {
  std::int64_t m = 0, n = 0, p = 0;
  std::int64_t data_rows = 0;  // the rows below belong to a penalty
  bool is_factored = false;    // R of [A B] is given
  bool is_gram = false;        // R of A from A'A; what needs care is left to reflectors
  bool is_masked = false;      // one A for all, with weights and rows of each right side; p = 1
  bool skips_missing = false;  // where is_masked: rows in which b has NaN do not count
};

/// Says which solutions the kernel leaves to the slower, more careful way.
struct Rules {
  double bar = 0;                   // for the backward error
  double least_singular_value = 0;  // of A with columns scaled to norm 1
  double most_condition = 0;        // of the same
  bool is_given = false;            // X is given, and only checked
  bool wants_se = false;
};

/// The findings about one right side. The residual norm belongs to the data rows, without a ridge.
struct Solution {
  double residual_norm = 0, backward_error = 0;
  bool needs_care = false;  // the fields above, and x, mean nothing
};

/// The findings about one matrix: estimates of its condition, unscaled and with columns scaled to
/// norm 1.
struct Matrix {
  double condition = 0, scaled_condition = 0;
  bool is_finite = true;  // A and its right sides
};

/// One A (m x n) for all systems, scaled and with factored rows. ld is a multiple of 4, and entries
/// beyond n are 0.
struct SharedMatrix {
  const double* a = nullptr;
  std::int64_t ld = 0;
  const double* row_factors = nullptr;  // of the data_rows rows of b; 0 leaves a row out
};

/// `count` systems, at most `lanes`; more if is_masked, there are no weights and all right sides
/// leave out the same rows. x, se: n entries for right side j of system l, beginning with number (l
/// p + j) n. The stored number is x_i 2^(shift - scale), with one shift for each right side and one
/// scale for each column.
template <class T>
struct Pack {
  std::int64_t count = 0;
  Strided<const T> a;  // m x n
  Strided<const T> r;  // n x (n + p): R of A, upper triangular, and Q'B; where is_factored
  Strided<const T> b;  // m x p, or p x m where right sides are rows
  bool b_has_rows = false;
  SharedMatrix shared;                      // where is_masked, in place of a
  Strided<const T> w;                       // where is_masked: 1 x data_rows weights; null: all 1
  const int* shifts = nullptr;              // null: 0
  const int* scales = nullptr;              // count x n; n for all where is_masked; null: 0
  const std::int64_t* rows_used = nullptr;  // of each system, for the degrees of freedom
  T *x = nullptr, *se = nullptr;
  Solution* solutions = nullptr;  // count x p
  Matrix* matrices = nullptr;     // count
};

/// The lane of a system in the pack, and the exponents by which its columns are scaled; null: 0.
struct PackLane {
  int lane = 0;
  const int* scales = nullptr;
};

template <class T>
struct Routine {
  int lanes;
  std::size_t (*workspace_bytes)(const Shape&);
  /// `workspace` must be aligned to 64 bytes.
  void (*solve)(const Shape&, const Rules&, const Pack<T>&, std::byte* workspace);
  /// Returns, after solve() of systems whose R is not given, R of the scaled A (n x n) and Q'B (n x
  /// p), for which the largest entry of every right side is brought to [1/2, 1) by a power of two.
  void (*take_factor)(const Shape&, std::byte* workspace, const PackLane&, double* r, double* z);
};

struct Kernels {
  const char* target;
  Routine<float> in_float;
  Routine<double> in_double;
};

extern const Kernels generic_kernels;
extern const Kernels avx2_kernels, avx512_kernels;  // x86-64

}  // namespace qrtool::systems
