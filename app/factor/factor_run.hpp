// SPDX-License-Identifier: Apache-2.0
// factor_run.hpp: the steps of `qrtool factor`, from the open input to the committed output.
#pragma once

#include <memory>

#include "app/factor/factor_summary.hpp"
#include "app/options/options.hpp"
#include "app/process/laps.hpp"
#include "app/run/backends/make_backend.hpp"
#include "app/run/backends/run_cost.hpp"
#include "app/run/files/outputs.hpp"
#include "core/backend/backend.hpp"
#include "core/factor/checked_backend.hpp"
#include "core/machine/comm.hpp"
#include "core/solve/packing.hpp"
#include "io/read/reader.hpp"

namespace qrtool {

/// Checks the names of the outputs, and opens the input. Errors: UsageError if it is one of the
/// outputs.
std::unique_ptr<Reader> open_input_of(const FactorOptions& options, const Limits& limits);

/// Creates the outputs of a run, in their own file or in `shared`. Their space is reserved while a
/// device starts.
Outputs create_outputs_of(const FactorOptions& options, const Source& source, int threads,
                          OutputFile* shared = nullptr);

/// Returns the memory that the files of such a run leave. Errors: LimitError if they leave nothing.
Limits limits_beside_files(const FactorOptions& options, const Reader& input, Limits limits);

/// Returns the problem that the options pose for the matrices of the input.
Problem problem_of(const Source& source, const FactorOptions& options);

/// One run on one backend. Call its steps in the order of this list.
class FactorRun {
 public:
  /// `laps` began with the process, or with the work on this input. All arguments outlive the run.
  FactorRun(const FactorOptions& options, Reader& input, Backend& backend, Laps& laps);

  void make_plan();
  /// Errors: LimitError if Q of a matrix by rows would have to be written by columns.
  void refuse_columns() const;
  /// Prints the notes of --verbose and --explain.
  void say_plan() const;
  /// Creates the outputs of a run that begins then.
  Outputs create_outputs() const {
    return create_outputs_of(options_, input_.source(), backend_.limits().threads);
  }
  /// Records the plan in the outputs of this run. Errors: as refuse_columns().
  void take_outputs(Outputs outputs);
  /// Reads, factors, checks and writes all matrices. Every rank calls it, and rank 0 alone has
  /// outputs.
  void run_stages(Comm& comm);
  /// If pivoting has found dependent columns in float32, prints what float64 says of them.
  void compare_ranks();
  /// Writes leverages, if they are wanted.
  void write_leverages();
  void commit();
  FactorResult finish();

  Plan& plan() { return result_.plan; }
  Backend& backend() { return backend_; }

 private:
  /// Returns the matrices as systems, for their ranks in `precision`.
  SolveProblem systems_of(ElementType precision) const;
  /// Ends the lap of the stages, whose times have their own columns. The next lap is freeing
  /// memory.
  void end_stages() { laps_.lap(); }
  template <class T>
  void factor_by_matrices(Comm& comm, ProgressMode mode);
  template <class T>
  void factor_by_pieces(ProgressMode mode);
  template <class T>
  void factor_by_rows(Comm& comm, ProgressMode mode);

  const FactorOptions& options_;
  Reader& input_;
  Backend& backend_;
  CheckedBackend checked_;  // on backend_
  Laps& laps_;
  Outputs outputs_;
  FactorResult result_;
};

/// Returns the attributes that an output records of every dataset in it.
std::vector<std::pair<std::string, AttributeValue>> common_attributes(const Source& source);
/// Returns the datasets that a run writes, without the parts that only the plan knows.
OutputSpec planned_output(const Source& source, const Problem& problem);

/// Plans a run on an open input, and returns the memory and the time that it would need. `laps` as
/// in FactorRun.
RunCost cost_of(const FactorOptions& options, Reader& input, const Limits& all, Laps& laps);
/// --dry-run: opens the input, plans and returns what the run would need for each dataset. Errors:
/// those that the run would have before its first matrix; a full disk is a part of the answer.
std::vector<RunCost> costs_of_factor(const FactorOptions& options);

}  // namespace qrtool
