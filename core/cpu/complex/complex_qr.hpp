// SPDX-License-Identifier: Apache-2.0
// complex_qr.hpp: factors batches of row-major complex matrices on the CPU.
#pragma once

#include <complex>
#include <cstddef>
#include <span>

#include "core/backend/backend.hpp"
#include "core/batch.hpp"
#include "core/cpu/complex/complex_kernel.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// The kernels for the instruction sets of this processor, the widest first. The generic kernels
/// are always among them.
std::span<const complex_qr::Kernels* const> complex_kernels();

/// Whether float32 matrices of m rows are computed in float64 and rounded once.
constexpr bool complex_qr_widens(index_t m) { return m < 16; }

/// How matrices are factored. packs: one matrix in each SIMD lane; strips: one matrix at a time, in
/// strips of 16 columns. The factors of both are within the bar, but differ in their rounding.
enum class ComplexRoute { packs, strips };
/// The faster route for a full batch of this shape. It depends on m and n alone.
ComplexRoute complex_route(const Problem& problem);

/// Factors complex matrices of one shape, A = Q R with unitary Q (Q^H Q = I) and an upper
/// triangular R whose diagonal is real, by Householder reflectors H = I - tau v v^H (LAPACK zgeqrf,
/// zungqr: Q = H_0 .. H_k-1, and H_j^H zeroes column j below its diagonal). Not thread-safe: each
/// thread needs its own object, and an object keeps its workspace from call to call.
///
/// Of `problem` count, m, n, mode and sign count; T is float or double, and takes the place of the
/// type. Every column is scaled by a power of two, exactly, so that factor(2^p A) = (Q, 2^p R) bit
/// for bit. float32 with fewer than 16 rows is computed in float64 and rounded once. The factors of
/// a matrix depend on the matrix, the problem, the route and the instruction set alone: neither on
/// its place in the batch nor on the other matrices.
template <class T>
class ComplexQr {
 public:
  using Complex = std::complex<T>;

  explicit ComplexQr(const Problem& problem)
      : ComplexQr(problem, complex_route(problem), *complex_kernels().front()) {}
  ComplexQr(const Problem& problem, ComplexRoute route, const complex_qr::Kernels& kernels);

  /// The most matrices that one call takes: those of a pack, or 1.
  index_t matrices_at_once() const { return route_ == ComplexRoute::packs ? packs_.lanes : 1; }

  /// Factors at most matrices_at_once() matrices, m x n. `out` has the factors of the mode (see
  /// Factors): q m x q_cols and r r_rows x n with +0 below its diagonal; or v m x n, V\R, and tau
  /// 1 x k, for which 2 Re tau = |tau|^2 v^H v up to rounding, 1 <= Re tau <= 2 and |tau - 1| <= 1,
  /// or tau = 0. In mode raw the diagonal has LAPACK's signs. `outcomes` has one entry for each
  /// matrix; its scale is the exponent of the largest real or imaginary part. The factors of a
  /// matrix that is not finite are undefined; the caller must set them.
  void factor(BatchView<const Complex> a, const Factors<Complex>& out,
              std::span<batched::Outcome> outcomes);

 private:
  batched::Shape shape_;
  ComplexRoute route_;
  batched::Routine<T> packs_;
  complex_qr::Routine<T> strips_;
  HostMemory workspace_;
};

/// The workspace of one ComplexQr<T>, in bytes.
template <class T>
std::size_t complex_qr_workspace_bytes(const Problem& problem, ComplexRoute route);

/// Factors all matrices of `a` on `threads` threads, one pack or matrix after another on each. The
/// factors of a matrix with NaN or Inf are NaN, and its outcome says so. Bits depend neither on the
/// threads nor on the other matrices. This is the body of a CPU variant: problem (see ComplexQr), a
/// chunk of the batch, m x n, its factors (see ComplexQr::factor), and one outcome for each matrix.
template <class T>
void factor_complex(const Problem& problem, BatchView<const std::complex<T>> a,
                    const Factors<std::complex<T>>& out, int threads,
                    std::span<batched::Outcome> outcomes);

}  // namespace qrtool
