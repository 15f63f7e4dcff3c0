// SPDX-License-Identifier: Apache-2.0
// complex_kernel.hpp: the kernels that factor complex matrices one at a time, in strips of columns.
// Private to core/cpu.
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
  std::size_t (*workspace_bytes)(const Shape&);
  /// Factors the only matrix of a pack in strips of 16 columns (complex_strips.hpp).
  void (*factor)(const Shape&, const Pack<T>&, std::byte* workspace);
};

/// The functions of complex_kernel.cpp, compiled for one instruction set, and those for packs.
/// Workspaces are aligned to 64 bytes.
struct Kernels {
  const char* target;
  const batched::Kernels& packs;
  batched::Routines<Routine> strips;
};

extern const Kernels generic_kernels;
extern const Kernels avx2_kernels, avx512_kernels;  // x86-64

}  // namespace qrtool::complex_qr
