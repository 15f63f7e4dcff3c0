// SPDX-License-Identifier: Apache-2.0
// factor_rows.hpp: one matrix a few rows at a time, by one process or several: R in one pass over
// its rows, Q in a second.
#pragma once

#include <functional>
#include <string>

#include "app/run/pipeline.hpp"
#include "core/backend.hpp"
#include "core/comm.hpp"
#include "core/tall.hpp"
#include "io/reader.hpp"
#include "io/writer.hpp"

namespace qrtool {

/// What a matrix is factored from and into.
struct RowJob {
  const Plan& plan;  // by rows
  Backend& backend;
  Reader& input;
  Writer* output;                           // rank 0; null elsewhere
  std::string scratch;                      // directory for the tree; empty: in memory
  std::function<void(index_t rows)> added;  // rows that a pass is through with
};

/// Time of all matrices so far.
struct RowSeconds {
  StageSeconds stages;
  ChunkSeconds chunks;
};

/// Factors one matrix after another. Every rank calls the same; the bits of the factors do not
/// depend on how many there are.
template <class T>
class RowFactor {
 public:
  RowFactor(const RowJob& job, Comm& comm);
  ~RowFactor();

  /// Writes Q and R, and returns the line of the report on every rank. Mode r: R is not checked,
  /// since that would take a second look at A.
  MatrixReport run(index_t matrix);
  const RowSeconds& seconds() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qrtool
