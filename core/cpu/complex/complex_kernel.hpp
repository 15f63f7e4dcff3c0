// SPDX-License-Identifier: Apache-2.0
// complex_kernel.hpp: the kernels that factor complex matrices, in packs of small ones or one at a
// time. Private to core/cpu.
//
// A complex m x n matrix in memory is a real m x 2n matrix whose rows are re, im, re, im, ..
// Pointers are to real numbers, and `ld` and `stride` count them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu/batched/pack_kernel.hpp"

namespace qrtool::complex_qr {

using batched::Outcome;
using batched::Shape;
using batched::Strided;

/// Some matrices and the places for their factors.
template <class T>
using Pack = batched::Pack<T>;

/// Factors matrices that are stored in T. The computation is in T or in float64.
template <class T>
struct Routine {
  int lanes;  // the most matrices of a pack
  /// Factors a pack, one matrix in each SIMD lane (complex_pack.hpp).
  std::size_t (*pack_bytes)(const Shape&);
  void (*factor_pack)(const Shape&, const Pack<T>&, std::byte* workspace);
  /// Factors the only matrix of a pack in strips of 16 columns (complex_strips.hpp).
  std::size_t (*strip_bytes)(const Shape&);
  void (*factor_strips)(const Shape&, const Pack<T>&, std::byte* workspace);
};

/// The functions of complex_kernel.cpp, compiled for one instruction set. Workspaces are aligned to
/// 64 bytes.
struct Kernels {
  const char* target;
  Routine<float> in_float, float_in_double;
  Routine<double> in_double;
};

extern const Kernels generic_kernels;
extern const Kernels avx2_kernels, avx512_kernels;  // x86-64

}  // namespace qrtool::complex_qr
