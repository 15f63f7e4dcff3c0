// SPDX-License-Identifier: Apache-2.0
// solve_columns.hpp: what the report of `qrtool solve` holds, and what it says about itself.
#pragma once

#include <string>
#include <vector>

#include "app/solve/solve_inputs.hpp"
#include "core/solve/results/fit.hpp"
#include "core/solve/shapes.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// The shapes of the columns of a report, and the bar of the errors.
struct SolveColumns {
  const Dims& of_solutions;
  const Dims& of_matrices;
  double bar = 0;
  FitWishes fits = {};
  double fit_bar = 0;
};

/// Returns residual_norm, backward_error, least_norm_error, status and tries of every solution, and
/// rank, condition and scaled_condition of every matrix; r_squared of every solution, and
/// orthogonality if fits are wanted.
std::vector<NumberDataset> solve_columns(const SolveColumns& columns);

/// Returns the name of a file in the record of an output.
inline std::string without_directory(const std::string& file) {
  return file.substr(file.rfind('/') + 1);
}

/// Returns the datasets that the inputs' wishes name, in the shape of B, broadcast.
std::vector<MatrixDataset> fit_datasets(const SolveInputs& inputs);

}  // namespace qrtool
