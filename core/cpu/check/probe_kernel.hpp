// SPDX-License-Identifier: Apache-2.0
// probe_kernel.hpp: the products of GramProbe (core/gram_probe.hpp), in float64. Private to core.
#pragma once

#include <cstdint>

namespace qrtool::probe {

/// The columns of X.
inline constexpr std::int64_t vectors = 8;

/// The same source compiled for one instruction set.
struct Kernels {
  /// s += A'(A x) for `rows` rows of A, which has n columns; x and s are n x 8. No row has a gap.
  void (*add_products)(const double* a, std::int64_t rows, std::int64_t n, const double* x,
                       double* s);
  /// to := from in float64.
  void (*widen)(const float* from, std::int64_t count, double* to);
  double (*sum_of_squares)(const double* from, std::int64_t count);
};

extern const Kernels generic_probe;
extern const Kernels avx2_probe, avx512_probe;  // x86-64

/// The kernels for this processor.
const Kernels& kernels();

}  // namespace qrtool::probe
