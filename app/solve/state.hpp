// SPDX-License-Identifier: Apache-2.0
// state.hpp: the state that `solve --state` and `append` write and to which `append` adds rows
// (core/solve/engines/system_state.hpp). A system that goes on has the n + p rows of its state
// above its new rows.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/options/options.hpp"
#include "core/solve/packing.hpp"
#include "core/solve/results/fit.hpp"
#include "io/read/reader.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

struct SolveInputs;

/// Recorded as the name of the file to whose state the rows were appended.
inline constexpr const char* appended_to_name = "appended_to";

/// Counts and sums of the rows of a system, each of which is a number of the dataset state/sums.
struct StateSums {
  double rows = 0, used = 0;    // used: those that count
  std::vector<Spread> spreads;  // of the parts of each right side
};

/// A stored state.
struct StoredState {
  Source all_rows;      // A, with the rows for which the state stands
  index_t rows = 0;     // of the state of a system
  index_t spreads = 0;  // in its sums
  std::unique_ptr<Reader> gram, sums;

  StateSums sums_of(index_t system) const;
};

/// The state of one system as it is written. The arrays have n + p rows.
template <class T>
struct SystemState {
  Batch<T> r;  // [R Z] and [0 T]
  Batch<Wide<T>> gram;
  StateSums sums;
  double error = not_measured;  // of R against gram
};

/// Returns a reader of the rows of `state`, which is in `file`, for each of its matrices, and below
/// them those of `rows`, in the type of the state.
std::unique_ptr<Reader> append_rows(const std::string& file, std::unique_ptr<Reader> state,
                                    std::unique_ptr<Reader> rows);

/// Puts the state of an output of `solve --state` above the rows of the inputs. Errors: InputError
/// if the file has none, or if it is of other columns, right sides or numbers.
void append_to_state(const std::string& file, SolveInputs& inputs);

/// Refuses systems whose right sides do not share the rows that count. Errors: UsageError.
void require_state(const SolveInputs& inputs, const SolveOptions& options);

/// Return the datasets and the report column of a state, and the bar of its error.
std::vector<MatrixDataset> state_datasets(const SolveInputs& inputs, const SolveProblem& problem);
NumberDataset state_column(const SolveInputs& inputs, const SolveProblem& problem);
double state_bar(const SolveInputs& inputs, const SolveProblem& problem);

template <class T>
void write_state(index_t system, index_t n, const SystemState<T>& state, Writer& output);

}  // namespace qrtool
