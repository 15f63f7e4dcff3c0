// SPDX-License-Identifier: Apache-2.0
// matrix_kernel.hpp: the kernels that factor one matrix in strips of 32 columns, on one thread or
// several, or a complex matrix in strips of 16, on one thread. Private to core/cpu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu/batched/pack_kernel.hpp"

namespace qrtool::blocked {

using batched::Outcome;
using batched::Shape;
using batched::Strided;

/// One matrix and the places for its factors. Strides between matrices are not used.
template <class T>
struct Matrix {
  Strided<const T> a;       // m x n
  Strided<T> q, r, v, tau;  // m x q_cols, r_rows x n, m x n, 1 x k
};

/// The threads that share a matrix, seen by one of them. A single thread (size 1) never waits.
struct Team {
  int worker = 0, size = 1;
  void* self = nullptr;
  /// Tells the others that they may read panel p and all panels before it.
  void (*publish)(void* self, std::int64_t p) = nullptr;
  /// Returns when panel p was published.
  void (*wait_for)(void* self, std::int64_t p) = nullptr;
};

/// Factors matrices that are stored in T. The computation is in T or in float64.
template <class T>
struct Routine {
  /// Returns the workspace of a team of `size` threads, in bytes.
  std::size_t (*workspace_bytes)(const Shape&, int size);
  /// Forms R alone from A'A, on one thread (matrix_gram.hpp). Returns false if this shape or this
  /// matrix needs reflectors; R is undefined then. It depends only on the shape and the matrix.
  /// Null: always reflectors.
  bool (*factor_gram)(const Shape&, const Matrix<T>&, std::byte* workspace, Outcome&);
  /// Does one worker's share. The team shares `workspace`, which is aligned to 64 bytes. The result
  /// does not depend on the team.
  void (*factor)(const Shape&, const Matrix<T>&, std::byte* workspace, const Team&);
  /// The outcome, to be called after every worker has returned.
  Outcome (*outcome)(const Shape&, std::byte* workspace, int size);
  /// Whether products are computed from bfloat16 parts. Null: never.
  bool (*uses_parts)(const Shape&);
};

/// The functions of matrix_kernel.cpp.
using Kernels = batched::KernelsOf<Routine>;

extern const Kernels generic_kernels;
extern const Kernels avx2_kernels, avx512_kernels;  // x86-64
extern const Kernels amx_kernels;                   // AVX-512 with tile registers

}  // namespace qrtool::blocked
