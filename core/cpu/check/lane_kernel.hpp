// SPDX-License-Identifier: Apache-2.0
// lane_kernel.hpp: measures a pack of small factorizations in float64, one matrix per SIMD lane.
// Private to core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/cpu/batched/pack_kernel.hpp"

namespace qrtool::check_lanes {

using index_t = std::int64_t;
using batched::Strided;

/// A is m x n, Q is m x q_cols, and R has as many rows as Q has columns. Sums of Q'Q have the runs
/// that core/measure/error_meter.cpp explains.
struct Shape {
  index_t m = 0, n = 0, q_cols = 0;
  index_t gram_run = 32;
};

/// The most matrices of a pack.
inline constexpr int most_lanes = 8;

/// The norms of `count` matrices, A and R times half * rest.
struct Norms {
  double a[most_lanes], residual[most_lanes], orthogonality[most_lanes], lower[most_lanes];
  double largest[most_lanes], least[most_lanes];  // |r_ii|
};

template <class T>
struct Pack {
  index_t count = 0;  // at most `lanes`
  Strided<const T> a, q, r;
  const double *half, *rest;  // of each lane
};

/// The functions of lane_kernel.cpp, compiled for one instruction set.
struct Kernels {
  const char* target;
  int lanes;
  std::size_t (*workspace_bytes)(const Shape&);
  /// `workspace` must be aligned to 64 bytes.
  void (*measure_single)(const Shape&, const Pack<float>&, std::byte* workspace, Norms&);
  void (*measure_double)(const Shape&, const Pack<double>&, std::byte* workspace, Norms&);
};

extern const Kernels generic_check_lanes;
extern const Kernels avx2_check_lanes, avx512_check_lanes;  // x86-64

/// Returns the kernels for the instruction sets of this processor, the widest first.
std::span<const Kernels* const> kernels();

}  // namespace qrtool::check_lanes
