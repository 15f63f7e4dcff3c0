// SPDX-License-Identifier: Apache-2.0
// fit_outputs.hpp: what residuals and fitted values are in an output, and what became of the fits.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "app/solve/solve_inputs.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// The datasets that the inputs' wishes name, in the shape of B, broadcast.
std::vector<MatrixDataset> fit_datasets(const SolveInputs& inputs);

/// The columns of the report: r_squared, and orthogonality where fits are written.
std::vector<NumberDataset> fit_columns(const Dims& of_solutions, const FitWishes& wishes,
                                       double bar);

/// Sums up the fits of a run.
class FitVerdict {
 public:
  /// Of solutions first, first + 1, ...
  void add(index_t first, std::span<const FitReport> fits);

  /// Of R^2; NaN where no solution has one.
  double least() const { return least_; }
  double greatest() const { return greatest_; }
  /// The residuals that are the least orthogonal; NaN where none were formed.
  double worst() const { return worst_; }
  index_t worst_solution() const { return worst_solution_; }

 private:
  double least_ = not_measured, greatest_ = not_measured, worst_ = not_measured;
  index_t worst_solution_ = -1;
};

/// Two lines at the most: "R^2 0.12 to 0.98" where it is asked for, and how orthogonal to A the
/// residuals are.
std::string fit_text(const FitVerdict& fits, double bar, std::span<const index_t> dims,
                     bool tells_r_squared);
nlohmann::ordered_json to_json(const FitVerdict& fits);

}  // namespace qrtool
