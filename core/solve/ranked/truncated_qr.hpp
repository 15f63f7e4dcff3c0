// SPDX-License-Identifier: Apache-2.0
// truncated_qr.hpp: S P = Q R with column pivoting in float64 or complex128, as far as the
// numerical rank goes.
//
//   S P = Q [ R11 R12 ]   R11: rank x rank; every column of R22 is at most
//           [  0  R22 ]   tolerance times the longest column of S
//
// Columns are chosen 64 at a time on a random sample of the rows of what is left, so that most of
// the work is products of matrices; where diagonal entries come near to the tolerance, and for few
// columns, the longest column that is left is chosen, one after another. Sources: LAPACK geqp3;
// Martinsson, Quintana-Orti, Heavner, van de Geijn 2017, HQRRP; Duersch, Gu 2017.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

template <class S>
class TruncatedQr {
 public:
  using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
  using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;

  /// Factors s (k x n). With `is_complete` it goes on until no row or column is left, or all are
  /// zero.
  TruncatedQr(Matrix s, double tolerance, bool is_complete);

  index_t rank() const { return rank_; }
  /// Returns R, with zeros below the diagonal. R22 is triangular only if the factor is complete.
  Matrix r() const;
  /// Returns R with the reflectors below the diagonal.
  const Matrix& triangle() const { return s_; }
  /// Column j of S P is column permutation()[j] of S.
  const std::vector<int>& permutation() const { return permutation_; }
  /// c := Q^H c.
  void apply_adjoint(Vector& c) const;

 private:
  /// Only swaps the longest columns to the front, at most `most_steps`.
  TruncatedQr(Matrix s, index_t most_steps);

  void choose_by_blocks();
  bool factor_block(const std::vector<int>& chosen, Matrix& sample);
  void choose_one_by_one(index_t most_steps);
  void take_step(index_t j, std::vector<double>& norms, std::vector<double>& first_norms);
  void swap_columns(index_t i, index_t j);

  Matrix s_;
  Vector coefficients_;  // of the adjoint reflectors, which lie below the diagonal
  std::vector<int> permutation_;
  double least_ = 0;
  index_t steps_ = 0, rank_ = 0;
};

}  // namespace qrtool
