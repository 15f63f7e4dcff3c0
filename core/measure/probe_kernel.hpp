// SPDX-License-Identifier: Apache-2.0
// probe_kernel.hpp: the products of GramProbe (core/measure/gram_probe.hpp), in float64. Private to
// core.
#pragma once

#include <cstdint>
#include <span>

namespace qrtool::probe {

/// The number of columns of X.
inline constexpr std::int64_t vectors = 8;

/// The most rows that stay in registers at a time.
inline constexpr std::int64_t most_rows = 8;

/// The functions of probe_kernel.cpp, compiled for one instruction set.
struct Kernels {
  const char* target;
  /// s += A'(A x) for `rows` rows of A, which has n columns; x and s are n x 8. No row has a gap.
  /// Returns the sum of the squares of A. `work` has most_rows n entries.
  double (*add_single)(const float* a, std::int64_t rows, std::int64_t n, const double* x,
                       double* s, double* work);
  double (*add_double)(const double* a, std::int64_t rows, std::int64_t n, const double* x,
                       double* s);
};

extern const Kernels generic_probe;
extern const Kernels avx2_probe, avx512_probe;  // x86-64

/// Returns the kernels that this processor can run, the fastest first.
std::span<const Kernels* const> kernels();

}  // namespace qrtool::probe
