// SPDX-License-Identifier: Apache-2.0
// factor_rows.hpp: factors one matrix a few rows at a time, by one process or several. A first pass
// over its rows gives R, a second one Q.
#pragma once

#include <functional>
#include <string>

#include "app/run/pipeline/pipeline.hpp"
#include "core/cpu/tall/tall.hpp"
#include "core/factor/second_try.hpp"
#include "core/machine/comm.hpp"
#include "io/read/reader.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// The input, the plan and the output of a matrix that is factored by rows.
struct RowJob {
  const Plan& plan;  // by rows
  SecondTry& backend;
  Reader& input;
  Writer* output;                           // rank 0; null elsewhere
  std::string scratch;                      // directory for the tree; empty: in memory
  std::function<void(index_t rows)> added;  // called with the rows that a pass has done
};

/// The time that all matrices have taken so far.
struct RowSeconds {
  StageSeconds stages;
  ChunkSeconds chunks;
};

/// Factors one matrix after another. Every rank makes the same calls. The bits of the factors do
/// not depend on the number of ranks.
template <class T>
class RowFactor {
 public:
  RowFactor(const RowJob& job, Comm& comm);
  ~RowFactor();

  /// Writes Q and R, and returns the line of the report on every rank. In mode r GramProbe checks
  /// R, without a second pass over A. If an error is above its bar, reads the matrix again for a
  /// second try by reflectors.
  MatrixReport run(index_t matrix);
  const RowSeconds& seconds() const;

 private:
  struct State;
  void remake(bool by_reflectors, index_t matrix);
  MatrixReport try_again(index_t matrix, const MatrixReport& first);

  std::unique_ptr<State> state_;
};

}  // namespace qrtool
