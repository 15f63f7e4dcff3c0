// SPDX-License-Identifier: Apache-2.0
// gram_probe.hpp: checks R of a tall matrix in the one pass in which its rows are read.
//
//     ||A'A - R'R||  from  A'(A X) - R'(R X)        X: n x 8, eight fixed normal vectors
//
// For a normal vector x the mean of ||E x||^2 is ||E||^2. So the root of the mean over eight of
// them estimates ||E||: for the least favourable E, of rank one, the estimate is below a quarter of
// ||E|| with a probability of 1.4e-4, and below a tenth with 1.1e-7. Up to 8 columns X is the
// identity, and ||E|| is exact. Only n x 8 sums are kept, for each leaf apart, so that the result
// does not depend on who adds which leaf when.
//
// A complex A has four complex vectors, for which the probabilities are the same, and its rows are
// real ones of their parts: X and the products are real matrices of 2n x 8, from which A^H (A X)
// follows as in core/measure/error_meter.cpp. Up to 4 columns ||E|| is exact.
#pragma once

#include <span>
#include <vector>

#include "core/batch.hpp"
#include "core/matrix/allocate_host.hpp"
#include "core/matrix/complex.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tall_shape.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {

/// Returns the number of vectors by which R of this type is checked, which is also the most columns
/// for which the error is exact.
constexpr index_t gram_probe_vectors(ElementType type) { return 8 / parts_in(type); }

template <class T>
class GramProbe {
 public:
  explicit GramProbe(const TallShape& shape, const AllocateHost& allocate = allocate_host);
  /// Return the bytes that the constructor allocates, and the bytes that a thread needs in add().
  static std::size_t bytes(const TallShape& shape);
  static std::size_t worker_bytes(const TallShape& shape);

  /// Adds the rows of whole leaves, the first of which has the number `leaf`, on `threads` threads.
  /// Calls may be made at the same time for different leaves.
  void add(index_t leaf, MatrixView<const T> rows, int threads);
  /// Returns the sums of some leaves. They are trivially copyable, so that they can be sent to
  /// another rank.
  std::span<double> sums(index_t leaf, index_t leaves) const;
  /// Returns the errors of R (k x n), after every leaf was added. `scale` is the scale of A
  /// (Magnitude::scale). The orthogonality is not measured.
  Errors finish(MatrixView<const T> r, int scale) const;

 private:
  static constexpr index_t vectors = gram_probe_vectors(element_type<T>);

  void add_leaf(MatrixView<const Real<T>> rows, double* slot) const;
  double squares_of(const double* products) const;

  TallShape shape_;
  index_t columns_;        // in real numbers
  index_t slot_size_;      // doubles: exponent, ||A_i||^2, A_i' A_i X
  std::vector<double> x_;  // columns x 8
  HostMemory memory_;
};

}  // namespace qrtool
