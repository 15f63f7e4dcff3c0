// SPDX-License-Identifier: Apache-2.0
// kernel.hpp: QR of one matrix in strips of 32 columns, on one thread or several. Private
// to core/cpu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu/batched/kernel.hpp"

namespace qrtool::blocked {

using batched::Outcome;
using batched::Shape;
using batched::Strided;

/// One matrix and the places of its factors; strides are not looked at.
template <class T>
struct Matrix {
  Strided<const T> a;       // m x n
  Strided<T> q, r, v, tau;  // m x q_cols, r_rows x n, m x n, 1 x k
};

/// The threads that share a matrix, as one of them sees it. Alone (size 1) it never waits.
struct Team {
  int worker = 0, size = 1;
  void* self = nullptr;
  /// Panel p, and all before it, may be read by the others.
  void (*publish)(void* self, std::int64_t p) = nullptr;
  /// Returns when panel p was published.
  void (*wait_for)(void* self, std::int64_t p) = nullptr;
};

/// T is stored; computed in T, or in float64 inside.
template <class T>
struct Routine {
  /// For a team of `size`.
  std::size_t (*workspace_bytes)(const Shape&, int size);
  /// A worker's share. `workspace` is the team's, aligned to 64 bytes; the result does not depend
  /// on the team.
  void (*factor)(const Shape&, const Matrix<T>&, std::byte* workspace, const Team&);
  /// After every worker is done.
  Outcome (*outcome)(const Shape&, std::byte* workspace, int size);
};

/// The same source compiled for one instruction set.
struct Kernels {
  const char* target;
  Routine<float> in_float, float_in_double;
  Routine<double> in_double;
};

extern const Kernels generic_kernels;
extern const Kernels avx2_kernels, avx512_kernels;  // x86-64

}  // namespace qrtool::blocked
