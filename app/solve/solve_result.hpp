// SPDX-License-Identifier: Apache-2.0
// solve_result.hpp: sums up the solutions of a run, and prints them for people and for machines.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "app/process/wall_time.hpp"
#include "app/run/pipeline/pipeline.hpp"
#include "app/solve/fit_outputs.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "core/solve/results/inference.hpp"
#include "core/solve/shapes.hpp"
#include "io/read/reader.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Counts of solutions, and the worst errors in bars.
class SolveVerdict {
 public:
  /// Solutions first, first + 1, ...
  void add(index_t first, std::span<const SolutionReport> reports);
  void add_matrix(const MatrixFindings& findings, index_t n);

  index_t solutions() const { return solutions_; }
  index_t count(Status status) const { return counts_[static_cast<std::size_t>(status)]; }
  index_t first(Status status) const { return firsts_[static_cast<std::size_t>(status)]; }
  index_t failed() const {
    return solutions_ - count(Status::ok) - count(Status::unchecked) - count(Status::too_few_rows);
  }
  index_t second_tries() const { return second_tries_; }
  index_t matrices() const { return matrices_; }
  /// Matrices whose columns are dependent, and the least rank of them.
  index_t deficient() const { return deficient_; }
  index_t least_rank() const { return least_rank_; }
  double worst_condition() const { return worst_condition_; }

  struct Worst {
    double error = 0, ratio = 0;
    index_t solution = -1;
    void include(double measured, double bar, index_t of_solution);
  };
  const Worst& backward_error() const { return backward_error_; }
  const Worst& least_norm_error() const { return least_norm_error_; }

 private:
  index_t solutions_ = 0, second_tries_ = 0, matrices_ = 0, deficient_ = 0, least_rank_ = -1;
  double worst_condition_ = 0;
  std::array<index_t, solution_status_names.size()> counts_{}, firsts_{};
  Worst backward_error_, least_norm_error_;
};

/// The result of a run of `solve`, or of `verify` for solutions.
struct SolveResult {
  const Source &a, &b;
  const RightSides& sides;
  ElementType type = ElementType::float64;
  bool is_basic = false;
  double bar = 0, fit_bar = 0;
  std::string route = {}, backend = "cpu", device = {}, variant = {};
  int threads = 1;
  std::vector<std::string> files = {};
  SolveVerdict verdict = {};
  FitVerdict fits = {};
  index_t wrong_leverages = 0;  // A whose leverages miss their bar
  StageSeconds stages = {};
  SolveSeconds seconds = {};
  double start_seconds = 0, leverage_seconds = 0, sync_seconds = 0, free_seconds = 0;
  double total_seconds = 0;
  /// These members belong to a table: x and standard errors (terms x responses), and what belongs
  /// to each response.
  CoefficientTable table = {};
  std::vector<double> x = {}, se = {}, residual_norms = {}, freedoms = {};
  std::vector<FitReport> fits_of_responses = {};

  bool is_good() const { return verdict.failed() == 0 && wrong_leverages == 0; }
  bool is_table() const { return !table.terms.empty(); }
  Inference inference(std::size_t term, std::size_t response) const;
};

/// "worst backward error 1.2e-16 (0.03 of its bar, solution 7)"; empty where nothing was checked.
std::string worst_line(const SolveVerdict& verdict, std::span<const index_t> dims);
std::string verdict_line(const SolveVerdict& verdict);

/// Prints bad solutions to standard error, then the result.
struct SolveOptions;
void print_result(const SolveOptions& options, const SolveResult& result);
void print_bad_solutions(const SolveOptions& options, const SolveResult& result);

/// Describes the run in a few lines for standard output. `verbose` adds the times.
std::string summary(const SolveResult& result, bool verbose);
/// The verdict and what was written, in one line: "all 3 pass; wrote x.npz (X 3x5)".
std::string short_summary(const SolveResult& result);

/// Where the time of a run of `solve` went.
WallTime seconds_of(const SolveResult& result);

/// Schema qrtool.solve/1.
nlohmann::ordered_json to_json(const SolveOptions& options, const SolveResult& result);
nlohmann::ordered_json to_json(const SolveVerdict& verdict);
nlohmann::ordered_json input_json(const Source& source);

}  // namespace qrtool
