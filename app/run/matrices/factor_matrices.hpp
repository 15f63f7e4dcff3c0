// SPDX-License-Identifier: Apache-2.0
// factor_matrices.hpp: the stages of `qrtool factor` for chunks of whole matrices.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "app/process/progress.hpp"
#include "app/run/files/outputs.hpp"
#include "app/run/pipeline/pipeline.hpp"
#include "app/run/verdict/verdict.hpp"
#include "core/backend/backend.hpp"
#include "io/read/reader.hpp"

namespace qrtool {

/// Matrices with their factors and one line of the report for each.
template <class T>
using MatrixChunk = Chunk<T, std::vector<MatrixReport>>;

/// A buffer for plan.chunk_matrices matrices, in memory of the backend.
template <class T>
MatrixChunk<T> allocate_matrices(Backend& backend, const Plan& plan);

/// The places of a chunk for the factors, and for the report, of the matrices that it holds.
template <class T>
Factors<T> factors_of(const MatrixChunk<T>& chunk);
template <class T>
std::span<MatrixReport> lines_of(MatrixChunk<T>& chunk);

/// Adds the lines of the report from matrix `first` on, each with its bars.
void add_to_verdict(Verdict& verdict, const Problem& problem, index_t first,
                    std::span<const MatrixReport> lines);

/// The steps for run_stages() and share_stages().
template <class T>
struct MatrixSteps {
  const Plan& plan;
  Reader& input;
  Backend& backend;
  Outputs& outputs;
  Verdict& verdict;
  ChunkSeconds& seconds;
  Progress& progress;

  index_t chunks() const;
  void begin(MatrixChunk<T>& chunk, index_t number) const;
  void read(MatrixChunk<T>& chunk);
  void work(MatrixChunk<T>& chunk);
  void keep(MatrixChunk<T>& chunk);
  void after_work(std::vector<MatrixChunk<T>>& chunks);
  std::vector<std::span<std::byte>> parts(MatrixChunk<T>& chunk) const;
};

}  // namespace qrtool
