// SPDX-License-Identifier: Apache-2.0
// blocked_qr.hpp: QR of one row-major matrix in strips of columns, on one thread or several.
#pragma once

#include <cstddef>
#include <span>

#include "core/cpu/blocked/kernel.hpp"
#include "core/cpu/reference/eigen_qr.hpp"
#include "core/problem.hpp"

namespace qrtool {

/// The instruction sets that this processor has, widest first; the generic one is always there.
std::span<const blocked::Kernels* const> blocked_kernels();

/// Factors one matrix after another of a problem's shape, each on some threads that it starts
/// itself. The factors do not depend on how many. Not thread-safe: one per caller.
///
/// Scaling, signs and the type computed in are EigenQr's. Method: core/cpu/blocked/kernel.cpp.
template <class T>
class BlockedQr {
 public:
  /// With memory for `most_threads`.
  BlockedQr(const Problem& problem, int most_threads,
            const blocked::Kernels& kernels = *blocked_kernels().front());

  /// a is m x n, `threads` at most most_threads; the factors of a matrix that is not finite are
  /// left to the caller.
  blocked::Outcome factor(MatrixView<const T> a, const MatrixFactors<T>& out, int threads);

 private:
  blocked::Shape shape_;
  blocked::Routine<T> routine_;
  int most_threads_;
  HostMemory workspace_;
};

/// Of one BlockedQr on as many threads as are of use on this machine.
std::size_t blocked_qr_workspace_bytes(const Problem& problem);

}  // namespace qrtool
