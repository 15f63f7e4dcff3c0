// SPDX-License-Identifier: Apache-2.0
// batched_qr.hpp: factors several small row-major matrices at once on one thread, one matrix per
// SIMD lane.
#pragma once

#include <cstddef>
#include <span>

#include "core/backend/backend.hpp"
#include "core/batch.hpp"
#include "core/cpu/batched/pack_kernel.hpp"
#include "core/matrix/complex.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// Returns the kernels for the instruction sets of this processor, the widest first. The generic
/// kernels are always among them.
std::span<const batched::Kernels* const> batched_kernels();

/// Factors packs of real or complex matrices of one shape, one pack after another. Not thread-safe:
/// each thread needs its own object.
///
/// Scaling, signs and the type of the computation are the same as in EigenQr, but complex64 is
/// computed in complex128 up to 15 rows only. The factors of a matrix do not depend on its lane or
/// on the other matrices. For tau of complex reflectors 2 Re tau = |tau|^2 v^H v up to rounding, 1
/// <= Re tau <= 2 and |tau - 1| <= 1, or tau = 0. Method: core/cpu/batched/pack_kernel.cpp.
template <class T>
class BatchedQr {
 public:
  explicit BatchedQr(const Problem& problem,
                     const batched::Kernels& kernels = *batched_kernels().front());

  /// The number of matrices that are factored at once.
  index_t matrices_at_once() const { return routine_.lanes; }

  /// `a` holds at most matrices_at_once() matrices, m x n, and `outcomes` has one entry for each.
  /// The factors of a matrix that is not finite are undefined; the caller must set them.
  void factor(BatchView<const T> a, const Factors<T>& out, std::span<batched::Outcome> outcomes);

 private:
  batched::Shape shape_;
  batched::Routine<Real<T>> routine_;
  HostMemory workspace_;
};

/// Whether packs are faster than strips of cpu/blocked for a full batch of complex matrices.
bool complex_takes_packs(index_t m, index_t n);

/// Returns the workspace of one BatchedQr, in bytes.
std::size_t batched_qr_workspace_bytes(const Problem& problem);
/// Returns the number of matrices in a pack on this processor.
index_t batched_qr_lanes(const Problem& problem);

}  // namespace qrtool
