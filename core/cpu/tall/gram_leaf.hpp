// SPDX-License-Identifier: Apache-2.0
// gram_leaf.hpp: R of tall float32 rows as the Cholesky factor of A'A, where that is as accurate as
// reflectors.
#pragma once

#include "core/batch.hpp"
#include "core/tall.hpp"

namespace qrtool {

/// R alone of leaves of n columns. Half the operations of reflectors, none of which waits for
/// another: products of float32 are exact in float64, so A'A is in error by some 2^-53 of its
/// columns' norms, and R, columns scaled to norm 1, by that times cond(A). Where the columns are
/// nearly orthogonal, and n a multiple of 16, sums in float32 do: R is then in error by some 2^-24
/// of its columns' norms, at most 2^-22. Source: Golub, Van Loan, "Matrix Computations", 5.3. Not
/// thread-safe: one per thread.
class GramLeaf {
 public:
  explicit GramLeaf(index_t n);

  /// R (n x n, R_ii > 0, exact +0 below the diagonal) and what was found. False, with anything in
  /// r, where A is too near to rank-deficient, has fewer than 2 n rows, or entries that are not
  /// finite. A pure function of the rows.
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
  Batch<double> strip_, sums_, rest_;  // rows of A; A'A, then R; what its sums have lost, then R^-1
  Batch<double> norms_;                // of the columns
};

}  // namespace qrtool
