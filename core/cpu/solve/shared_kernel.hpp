// SPDX-License-Identifier: Apache-2.0
// shared_kernel.hpp: the kernels that solve for many right sides of one matrix whose QR is known,
// and check the solutions. Private to core.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu/solve/solution_kernel.hpp"

namespace qrtool::shared {

/// One matrix that is ready to be used: A D^-1 = QR with factored rows and columns of norm 1, to a
/// factor of 2. All parts are row-major.
struct Matrix {
  std::int64_t m = 0, n = 0, data_rows = 0;
  const double *a = nullptr, *q = nullptr;  // m x n
  const double* r = nullptr;                // n x n
  const double* row_factors = nullptr;      // of the data_rows rows of right sides
  const double* row_norms = nullptr;        // of R^-1; null: no standard errors
  const double* powers = nullptr;           // D^-1: powers of two from 2^-500 to 2^500
  double norm = 0;                          // ||R||
  double freedom = 0;                       // rows that count, less n
  double bar = 0;
  bool is_given = false;  // X is given, and only checked
};

/// The outcome of a right side.
enum class Kind : char { solved, refused, needs_care };

/// `count` right sides, at most `most_right_sides`. b: data_rows entries each; entry i of right
/// side s is b[i b.ld + s], or with b_has_rows b[s b.ld + i]; x and se likewise.
template <class T>
struct Tile {
  std::int64_t count = 0;
  const T* b = nullptr;
  std::int64_t b_ld = 0;
  T *x = nullptr, *se = nullptr;
  std::int64_t x_ld = 0;
  bool has_rows = false;
  Kind* kinds = nullptr;
  double *residual_norms = nullptr, *errors = nullptr;
};

/// The right sides that are solved together: an even number of vectors.
constexpr std::int64_t most_right_sides = 32;

template <class T>
struct Routine {
  std::size_t (*workspace_bytes)(const Matrix&);
  /// `workspace` is aligned to 64 bytes. A right side with NaN or infinity is refused.
  void (*solve)(const Matrix&, const Tile<T>&, std::byte* workspace);
};

struct Kernels {
  const char* target;
  Routine<float> in_float;
  Routine<double> in_double;
};

extern const Kernels generic_kernels;
extern const Kernels avx2_kernels, avx512_kernels;  // x86-64

}  // namespace qrtool::shared
