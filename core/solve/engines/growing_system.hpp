// SPDX-License-Identifier: Apache-2.0
// growing_system.hpp: one least-squares problem whose rows come one after another, and which has a
// solution after each of them.
//
//   [R z; 0 rho] := Q'[R z; 0 rho; a b]     a row at a time, by rotations: additions alone
//   G := G + [a b]'[a b]                    in pairs of float64, beside it
//
// R gives x, and G, which rounds no digit that R keeps, judges and corrects it: ||b - A x|| and
// A'(b - A x) follow from G to about 2^-100 ||[A b]||^2. Source of the rotations: LINPACK's dchud;
// of the pairs: Dekker, "A floating-point technique for extending the available precision" (1971).
#pragma once

#include <span>
#include <vector>

#include "core/solve/system_solver.hpp"

namespace qrtool {

/// A copy keeps the problem of its time. Entries of rows are at most about 1.
class GrowingSystem final : public SystemRows<double> {
 public:
  explicit GrowingSystem(index_t n);

  /// Adds a row [a b] of n + 1 finite numbers, of which only a copy is changed.
  void add_row(const double* ab);
  /// Returns R (n x n) and z, which are packed in n + 1 columns.
  MatrixView<const double> r() const { return {factor_.data(), n_, n_, n_ + 1}; }
  MatrixView<const double> z() const { return {factor_.data() + n_, n_, 1, n_ + 1}; }

  void add_residual(index_t first, MatrixView<const double> x, ResidualSums<double>& sums) override;
  void add_precise_residual(index_t j, const double* x, std::vector<double>& gradient,
                            double& r_squares) override;
  /// There are no rows to factor again.
  bool factor_again(index_t, MatrixView<double>, double*) override { return false; }

 private:
  double squares_of(const double* x, bool has_b, double* gradient) const;

  void rotate(std::vector<double>& factor);

  index_t n_, rows_ = 0;                  // rows in the block
  std::vector<double> factor_;            // of all rows, (n + 1)^2 as all others
  std::vector<double> base_, block_;      // of all rows before the block, and of the block
  std::vector<double> high_, low_, row_;  // row_: n + 1
};

}  // namespace qrtool
