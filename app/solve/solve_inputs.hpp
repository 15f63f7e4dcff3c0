// SPDX-License-Identifier: Apache-2.0
// solve_inputs.hpp: opens A, B and weights, and finds out how they belong together.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/engine/solve_plan.hpp"
#include "app/options/options.hpp"
#include "app/solve/state.hpp"
#include "core/problem/problem.hpp"
#include "core/solve/packing.hpp"
#include "core/solve/results/fit.hpp"
#include "core/solve/shapes.hpp"
#include "io/read/reader.hpp"
#include "io/read/stored_factors.hpp"

namespace qrtool {

/// The systems of a run.
struct SolveInputs {
  std::unique_ptr<Reader> a, b, w;  // w: null without weights
  RightSides sides;
  bool b_is_column = false;             // the last two stored dimensions of B are columns x rows
  bool w_is_shared = false;             // m weights for all right sides
  bool w_is_column = false;             // of the table
  index_t added_columns = 0;            // ones and powers, to an A that is no table
  int weight_exponent = 0;              // `w` reads the weights divided by 2^weight_exponent; even
  std::vector<std::string> names;       // of the columns of A; empty: they have none
  std::vector<std::string> responses;   // of the columns of a table that are B
  FitWishes fits;                       // what is written beside X; `solve` alone sets it
  std::shared_ptr<StoredState> before;  // of which A and B begin with the rows; null: they do not

  /// Describes A with all rows, also those of which only a state is left.
  const Source& all_rows() const { return before ? before->all_rows : a->source(); }

  /// Returns the shapes that a plan depends on.
  SystemsShape shape() const;
  index_t m() const { return a->source().m; }
  index_t n() const { return a->source().n; }
  void require_unchanged() const;
};

/// Checks that an input is a table, as --response needs it. Errors: InputError.
void require_table(const std::string& path);

/// The use of the columns of a table. The numbers are places in a row that is read.
struct TableRoles {
  std::vector<index_t> responses = {}, weights = {}, others = {};
};
/// Returns the roles by --response and, if it names a column, --weights. Errors: InputError.
TableRoles roles_of(const Source& table, const SystemOptions& options);

/// Returns the columns of a table that the options name, as far as they are known without reading
/// the table: lists for InputSpec::needed_columns.
std::vector<std::string> needed_columns(const SystemOptions& options);

/// Whether these are all columns that a table needs to have numbers in.
bool needs_no_others(const SystemOptions& options);

/// The files that a run reads.
struct SolveFiles {
  std::string a, b;         // b: empty where A is a table
  CsvOptions csv;           // for the files that are CSV
  bool raw_values = false;  // for the files that are HDF5
  // The records about A and B in the solutions to verify.
  RecordedInput recorded_a = {}, recorded_b = {};
};

/// Returns the memory that each file may use. A run has four at most: A, B, weights, and X.
inline std::size_t memory_of_file(const Limits& limits) { return limits.host_bytes / 4; }

/// Refuses a file that does not exist, if its name is a dataset in the file of A. Errors:
/// InputError.
void refuse_dataset_as_file(const std::string& file, const std::string& a);

/// Opens A, B and the weights. Errors: InputError if the shapes do not fit; UsageError if they fit
/// in two ways.
SolveInputs open_solve_inputs(const SolveFiles& files, const SystemOptions& options, Order order,
                              const Limits& limits);

/// Returns the limits less the memory for reading the inputs in `type`, and less `other_bytes` of
/// other files. Errors: LimitError if nothing is left.
Limits limits_beside_files(const SolveInputs& inputs, ElementType type, std::size_t other_bytes,
                           Limits limits);

/// Returns the problem that is solved for each A. `type` is the type of X.
SolveProblem solve_problem(const SolveInputs& inputs, const SystemOptions& options,
                           ElementType type);

/// Returns the type of X: complex if A and B are. Its parts are float32 if those of A and B are, or
/// of the type that is asked for.
ElementType type_of(const SolveInputs& inputs, std::optional<ElementType> precision);

}  // namespace qrtool
