// SPDX-License-Identifier: Apache-2.0
// solve_run.hpp: the steps of `qrtool solve`, from the open inputs to the committed output.
#pragma once

#include <memory>
#include <span>

#include "app/engine/solve_device.hpp"
#include "app/engine/solve_plan.hpp"
#include "app/options/options.hpp"
#include "app/process/laps.hpp"
#include "app/run/backends/run_cost.hpp"
#include "app/run/matrices/leverage_run.hpp"
#include "app/solve/solve_inputs.hpp"
#include "app/solve/solve_result.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Call its steps in the order of this list.
class SolveRun {
 public:
  /// `laps` as for solve_inputs(). All arguments outlive the run.
  SolveRun(const SolveOptions& options, const SolveInputs& inputs, const Limits& limits,
           Laps& laps);

  /// `before`: as for make_backend().
  void make_plan(const std::shared_ptr<Backend>& before = nullptr);
  void create_output();
  void run_stages();
  /// If float32 has found dependent columns, records what float64 says of them.
  void compare_ranks();
  /// Writes leverages, if they are wanted.
  void write_leverages();
  void commit();
  SolveResult finish();
  /// Whether a device solves, once there is a plan.
  bool has_device() const { return device_.has_value(); }

  /// Call these functions after make_plan(). device: null if the CPU solves.
  const SolveProblem& problem() const { return problem_; }
  const SolvePlan& plan() const { return plan_; }
  const Limits& limits() const { return limits_; }  // beside the files
  SolveDevice* device() { return device_ ? &*device_ : nullptr; }
  const std::string& variant() const { return result_.variant; }
  const std::string& backend_name() const { return result_.backend; }
  OutputSpec output_spec() const;

 private:
  template <class T>
  void run_typed();
  template <class E>
  void write_groups(const char* name, index_t group, index_t groups, const E* values);
  template <class Lines, class Field>
  void write_column(const char* name, index_t first, const Lines& lines, Field field);
  void keep_reports(index_t first, std::span<const SolutionReport> reports);
  void keep_fits(index_t first, std::span<const FitReport> fits);
  void write_fits(index_t first, index_t count, const void* residuals, const void* fitted);
  void keep_findings(index_t first, std::span<const MatrixFindings> findings);
  void keep_ranks(index_t first, std::span<const MatrixFindings> findings);
  bool is_table() const;
  CoefficientTable coefficients() const;
  std::string device() const;
  /// Returns the digest of the table by which variants were chosen.
  std::string rates() const;
  bool has_report() const;
  Dims findings_dims() const;
  std::vector<MatrixDataset> datasets() const;

  const SolveOptions& options_;
  const SolveInputs& inputs_;
  Limits limits_;
  Laps& laps_;
  SolveProblem problem_;
  SolvePlan plan_;
  std::optional<SolveDevice> device_;  // none: the CPU
  std::unique_ptr<Writer> output_;
  std::vector<std::int32_t> ranks_;          // of each A, where leverages are wanted
  std::vector<DependentColumns> dependent_;  // the first ones in float32
  SolveResult result_;
};

/// Errors: UsageError if right sides of one A have their own rows or weights, and so their own
/// leverages.
void require_one_leverage(const SolveInputs& inputs, const SolveProblem& problem);

/// Returns the job that computes the leverages. The arguments must outlive it. `ranks` has the rank
/// of each A in the report.
LeverageJob leverage_job(const SolveInputs& inputs, const SolveProblem& problem,
                         const Limits& limits, std::span<const std::int32_t> ranks);

/// Returns the job of leverages that belong to right sides: a number means the matrix of that right
/// side.
LeverageJob job_of_sides(const SolveInputs& inputs, const SolveProblem& problem,
                         const Limits& limits);

/// Estimates the cost of a run that has a plan. The time is the time of factoring [A b], or of
/// factoring A and of the products with all b.
RunCost cost_of(const SolveOptions& options, const SolveInputs& inputs, const Limits& limits,
                SolveRun& run);

}  // namespace qrtool
