// SPDX-License-Identifier: Apache-2.0
// gram_leaf.hpp: forms R of many float32 rows as the Cholesky factor of A'A, where it is as
// accurate as R by reflectors.
#pragma once

#include "core/batch.hpp"
#include "core/cpu/tall/tall.hpp"

namespace qrtool {

/// Forms R, without Q, of leaves of n columns. It takes half the operations of reflectors, and they
/// do not wait for one another. Products of float32 are exact in float64, so that the error of A'A
/// is about 2^-53 of its columns' norms, and the error of R, with columns scaled to norm 1, is that
/// times cond(A). Where the columns are nearly orthogonal and n is a multiple of 16, sums in
/// float32 are accurate enough: the error of R is then about 2^-24 of its columns' norms, and at
/// most 2^-22. Source: Golub, Van Loan, "Matrix Computations", 5.3. Not thread-safe: each thread
/// needs its own object.
class GramLeaf {
 public:
  explicit GramLeaf(index_t n);

  /// Gives R (n x n, R_ii > 0, exact +0 below the diagonal) and the outcome. Returns false, and
  /// leaves r undefined, if A is too close to rank-deficient, has fewer than 2 n rows, or has
  /// entries that are not finite. The result depends only on the rows.
  bool factor(MatrixView<const float> a, MatrixView<float> r, LeafOutcome& outcome);

  static std::size_t workspace_bytes(index_t n);

 private:
  double* row(index_t i) { return sums_.view().data + i * padded_; }
  double add_rows(MatrixView<const float> a);
  double add_narrow_rows(MatrixView<const float> a);
  bool factor_narrow(MatrixView<const float> a, double& largest);
  bool factor_wide(MatrixView<const float> a, double& largest);
  bool factor_sums();
  double squared_condition();

  index_t n_, padded_;
  Batch<double> strip_;  // rows of A
  Batch<double> sums_;   // A'A, then R
  Batch<double> rest_;   // the compensation of Kahan's sums, then R^-1
  Batch<double> norms_;  // the squares of the columns' norms
};

}  // namespace qrtool
