// SPDX-License-Identifier: Apache-2.0
// leverage_run.hpp: the leverages of the rows of every A, after the factors or the solutions.
#pragma once

#include <functional>
#include <vector>

#include "core/solve/packing.hpp"
#include "io/reader.hpp"
#include "io/writer.hpp"

namespace qrtool {

/// Reads numbers of rows first, ... of a matrix.
using ReadOfRows =
    std::function<void(index_t matrix, index_t first, index_t count, double* numbers)>;

/// The matrices of a run.
struct LeverageJob {
  Reader& a;
  ReadOfRows b = {};  // NaN for a row that their right sides lack; empty: they lack none
  ReadOfRows w = {};  // weights; empty: all 1
  index_t matrices = 1;
  const SolveProblem& problem;
  const Limits& limits;
  bool has_report = false;  // their errors have a column of numbers in the output
};

/// The dataset: a number for each row of every A.
MatrixDataset leverage_dataset(const std::vector<index_t>& leading, index_t m, ElementType type);
/// The column of the report: one number for each A.
NumberDataset leverage_column(const std::vector<index_t>& leading, const SolveProblem& problem);

/// Reads every A again, and writes its leverages and their errors. Returns how many A have an
/// error above the bar.
index_t write_leverages(const LeverageJob& job, Writer& output);

}  // namespace qrtool
