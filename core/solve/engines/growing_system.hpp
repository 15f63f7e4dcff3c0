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

/// R of rows that come one after another. Errors of as many rotations as there are rows would add
/// up, and hide the rank; so blocks of rows are put together in a tree:
///
///   rows     0 .. 15 16 .. 31 32 .. 47 48 .. 63 64 .. 79 80 ..
///   level 0  .        .        .        .        R
///   level 1  .                 .                    blocks of the same size are one of
///   level 2  R                                      the next level
///
/// R of a column that depends on those before it is then at most 3.2 2^-52 times its norm, in 10^6
/// rows of 4 kinds, where blocks one after another came to 12 in 200,000.
class RowTree {
 public:
  /// `width`: the columns of R, which is packed.
  explicit RowTree(index_t width);

  /// Adds a row to R of all rows before it.
  void add_row(const double* row, std::vector<double>& r);

 private:
  void rotate(const double* row, std::vector<double>& r);
  void join(const std::vector<double>& below, std::vector<double>& r);

  index_t width_, rows_ = 0;                 // rows in the block
  std::vector<double> block_, row_;          // R of the block; a row that is rotated
  std::vector<std::vector<double>> levels_;  // R of 2^level blocks each, or empty
};

/// The problem after some rows. Entries of rows are at most about 1.
class GrowingSystem final : public SystemRows<double> {
 public:
  explicit GrowingSystem(index_t n);

  /// Adds a row [a b] of n + 1 finite numbers. `tree` has had all rows before it.
  void add_row(const double* ab, RowTree& tree);
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

  index_t n_;
  std::vector<double> factor_, high_, low_;  // (n + 1)^2
};

}  // namespace qrtool
