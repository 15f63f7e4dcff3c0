// SPDX-License-Identifier: Apache-2.0
// leverage_run.hpp: the leverages of the rows of every A, after the factors or the solutions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/solve/packing.hpp"
#include "io/read/reader.hpp"
#include "io/write/writer.hpp"

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
  /// The matrix of A that a number means; empty: the number itself.
  std::function<index_t(index_t number)> a_of = {};
  /// The rank of each matrix in the report; empty, or negative: not known.
  std::span<const std::int32_t> ranks = {};

  std::optional<index_t> rank_of(index_t matrix) const {
    const bool has_rank = !ranks.empty() && ranks[static_cast<std::size_t>(matrix)] >= 0;
    return has_rank ? std::optional<index_t>(ranks[static_cast<std::size_t>(matrix)])
                    : std::nullopt;
  }
};

/// Returns the dataset: a number for each row of every A.
MatrixDataset leverage_dataset(const std::vector<index_t>& leading, index_t m, ElementType type);
/// Returns the column of the report: one number for each A.
NumberDataset leverage_column(const std::vector<index_t>& leading, const SolveProblem& problem);

/// Reads every A again, and writes its leverages and their errors. Returns how many A have an
/// error above the bar.
index_t write_leverages(const LeverageJob& job, Writer& output);

/// A matrix that has dependent columns in float32, and its rank there.
struct DependentColumns {
  index_t number = 0;  // as the functions of the job count
  std::int32_t rank = 0;
};
inline constexpr std::size_t most_compared_ranks = 1000;
/// Reads the first of these matrices again, as long as that is little work, and records in the
/// output how many have another rank in float64, by the tolerance of the job. Returns a note for
/// `file`, or an empty text if no rank differs.
std::string compare_ranks(const LeverageJob& job, std::span<const DependentColumns> dependent,
                          const std::string& file, Writer& output);

}  // namespace qrtool
