// SPDX-License-Identifier: Apache-2.0
// kernel_call.hpp: makes the arguments of the kernels of packs and of strips from a problem and its
// matrices. Private to core/cpu.
#pragma once

#include "core/cpu/batched/pack_kernel.hpp"
#include "core/eigen/eigen_qr.hpp"
#include "core/matrix/complex.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

inline batched::Shape shape_of(const Problem& p) {
  const bool raw = p.mode == Mode::raw;
  return {.m = p.m,
          .n = p.n,
          .k = p.k(),
          .q_cols = p.q_cols(),
          .r_rows = p.r_rows(),
          .is_raw = raw,
          .is_positive = !raw && p.sign == Sign::positive};
}

/// Whether complex64 matrices of m rows are computed in complex128 and rounded once.
constexpr bool complex_kernels_widen(index_t m) { return m < 16; }

/// Returns the routine for matrices of T, which is chosen by the problem's type.
template <class T, template <class> class Routine>
const Routine<Real<T>>& routine_of(const batched::KernelsOf<Routine>& kernels, const Problem& p) {
  const auto& routines = is_complex_number<T> ? kernels.complex : kernels.real;
  if constexpr (sizeof(Real<T>) == 8) {
    return routines.in_double;
  } else {
    const bool widens = is_complex_number<T> ? complex_kernels_widen(p.m) : computes_in_float64(p);
    return widens ? routines.float_in_double : routines.in_float;
  }
}

template <class T>
batched::Strided<Real<T>> strided(const BatchView<T>& view) {
  const BatchView<Real<T>> real = interleaved(view);
  return {real.data, real.ld, real.stride};
}
template <class T>
batched::Strided<Real<T>> strided(const MatrixView<T>& view) {
  const MatrixView<Real<T>> real = interleaved(view);
  return {real.data, real.ld, 0};
}

}  // namespace qrtool
