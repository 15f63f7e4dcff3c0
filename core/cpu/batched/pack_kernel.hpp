// SPDX-License-Identifier: Apache-2.0
// pack_kernel.hpp: the kernels that factor a pack of small matrices, one matrix per SIMD lane.
// Private to core/cpu.
//
// A complex m x n matrix in memory is a real m x 2n matrix whose rows are re, im, re, im, ..
// Pointers are to real numbers, and `ld` and `stride` count them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qrtool::batched {

/// Row-major matrices: entry (i, j) of matrix b is data[b * stride + i * ld + j]. `data` is null if
/// the caller does not ask for these matrices.
template <class T>
struct Strided {
  T* data = nullptr;
  std::int64_t ld = 0, stride = 0;
};

/// The shape of every matrix and the factors to compute; k = min(m, n).
struct Shape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t q_cols = 0, r_rows = 0;
  bool is_raw = false;       // V\R and tau are asked for, not Q and R
  bool is_positive = false;  // R_ii >= 0
};

/// The properties of one matrix that the kernel finds.
struct Outcome {
  bool is_finite = true;  // where false, the factors are undefined
  bool r_fits = true;     // R is within the range of T
  int scale = 0;          // exponent of the largest entry, as Magnitude::scale()
};

/// `count` matrices, at most `lanes`, and the places for their factors.
template <class T>
struct Pack {
  std::int64_t count = 0;
  Strided<const T> a;           // m x n
  Strided<T> q, r, v, tau;      // m x q_cols, r_rows x n, m x n, 1 x k
  Outcome* outcomes = nullptr;  // `count` outcomes
};

/// Factors matrices that are stored in T. The computation is in T or in float64.
template <class T>
struct Routine {
  int lanes;
  std::size_t (*workspace_bytes)(const Shape&);
  /// `workspace` must be aligned to 64 bytes.
  void (*factor)(const Shape&, const Pack<T>&, std::byte* workspace);
};

/// Routines for the stored and the computed types.
template <template <class> class Routine>
struct Routines {
  Routine<float> in_float, float_in_double;
  Routine<double> in_double;
};

/// The routines of one instruction set.
template <template <class> class Routine>
struct KernelsOf {
  const char* target;
  Routines<Routine> real, complex;
};

/// The functions of pack_kernel.cpp.
using Kernels = KernelsOf<Routine>;

extern const Kernels generic_kernels;
extern const Kernels avx2_kernels, avx512_kernels;  // x86-64

}  // namespace qrtool::batched
