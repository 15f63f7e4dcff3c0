// SPDX-License-Identifier: Apache-2.0
// batched_qr.hpp: QR of several small row-major matrices at once on one thread, one matrix per SIMD
// lane.
#pragma once

#include <cstddef>
#include <span>

#include "core/backend.hpp"
#include "core/batch.hpp"
#include "core/cpu/batched/kernel.hpp"
#include "core/problem.hpp"

namespace qrtool {

/// The instruction sets that this processor has, widest first; the generic one is always there.
std::span<const batched::Kernels* const> batched_kernels();

/// Factors one pack after another of a problem's shape. Not thread-safe: one per thread.
///
/// Scaling, signs and the type computed in are EigenQr's. A matrix's factors do not depend on its
/// lane or on what lies in the others. Method: core/cpu/batched/kernel.cpp.
template <class T>
class BatchedQr {
 public:
  explicit BatchedQr(const Problem& problem,
                     const batched::Kernels& kernels = *batched_kernels().front());

  /// Matrices that are factored at once.
  index_t lanes() const { return routine_.lanes; }

  /// a holds at the most lanes() matrices, m x n; outcomes has one entry for each. The factors of
  /// a matrix that is not finite are left to the caller.
  void factor(BatchView<const T> a, const Factors<T>& out, std::span<batched::Outcome> outcomes);

 private:
  batched::Shape shape_;
  batched::Routine<T> routine_;
  HostMemory workspace_;
};

/// Of one BatchedQr.
std::size_t batched_qr_workspace_bytes(const Problem& problem);
/// Matrices that one pack of the problem holds on this processor.
index_t batched_qr_lanes(const Problem& problem);

}  // namespace qrtool
