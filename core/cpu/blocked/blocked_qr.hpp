// SPDX-License-Identifier: Apache-2.0
// blocked_qr.hpp: factors one row-major matrix in strips of columns, on one thread or several.
#pragma once

#include <cstddef>
#include <span>

#include "core/cpu/blocked/matrix_kernel.hpp"
#include "core/eigen/eigen_qr.hpp"
#include "core/matrix/complex.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// Returns the kernels for the instruction sets of this processor, the widest first. The generic
/// kernels are always among them.
std::span<const blocked::Kernels* const> blocked_kernels();

/// Returns the first kernels whose arithmetic the problem allows: --arithmetic strict has no
/// bfloat16.
const blocked::Kernels& blocked_kernels_for(const Problem& problem);

/// Whether these kernels multiply bfloat16 parts of float32 numbers.
bool blocked_multiplies_parts(const Problem& problem);

/// Factors matrices of one shape, one after another, each on several threads that it starts. The
/// factors do not depend on the number of threads. Not thread-safe: each caller needs its own
/// object.
///
/// Scaling, signs and the type of the computation are the same as in EigenQr. Complex matrices take
/// one thread, and types and tau as in BatchedQr. Methods: core/cpu/blocked/matrix_kernel.cpp,
/// complex_strips.hpp.
template <class T>
class BlockedQr {
 public:
  /// Allocates the workspace for `most_threads` threads.
  explicit BlockedQr(const Problem& problem, int most_threads = 1)
      : BlockedQr(problem, most_threads, blocked_kernels_for(problem)) {}
  BlockedQr(const Problem& problem, int most_threads, const blocked::Kernels& kernels);

  /// `a` is m x n, and `threads` is at most most_threads. The factors of a matrix that is not
  /// finite are undefined; the caller must set them.
  blocked::Outcome factor(MatrixView<const T> a, const MatrixFactors<T>& out, int threads = 1);

 private:
  blocked::Shape shape_;
  blocked::Routine<Real<T>> routine_;
  int most_threads_;
  HostMemory workspace_;
};

/// Returns the workspace of one BlockedQr on all threads of this machine that would get work.
std::size_t blocked_qr_workspace_bytes(const Problem& problem);

}  // namespace qrtool
