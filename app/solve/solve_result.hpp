// SPDX-License-Identifier: Apache-2.0
// solve_result.hpp: the result of `qrtool solve` for people and for machines.
#pragma once

#include <string>
#include <vector>

#include "app/options/options.hpp"
#include "app/run/verdict/outcome.hpp"
#include "app/run/verdict/verdict_text.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "core/solve/results/fit.hpp"
#include "core/solve/results/inference.hpp"
#include "core/solve/shapes.hpp"
#include "io/read/reader.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Sums up the fits of a run.
struct FitVerdict {
  double least = not_measured, greatest = not_measured;  // of R^2; NaN where no solution has one
  double worst = not_measured;  // orthogonality of residuals; NaN where none were formed
  index_t worst_solution = -1;

  /// Adds the fits of solutions first, first + 1, ...
  void add(index_t first, std::span<const FitReport> fits);
};

/// The result of a run of `solve`.
struct SolveResult {
  const Source &a, &b;
  const RightSides& sides;
  ElementType type = ElementType::float64;
  double bar = 0, fit_bar = 0;
  std::string backend = "cpu", device = {}, variant = {};
  int threads = 1;
  std::vector<std::string> files = {};
  Verdict verdict = {subject_of_solve, named_by(sides.solution_dims)};
  FitVerdict fits = {};
  index_t wrong_leverages = 0;  // A whose leverages miss their bar
  SolveSeconds seconds = {};
  RunTimes times = {};
  /// For a table: x and standard errors (terms x responses), and the numbers of each response.
  CoefficientTable table = {};
  std::vector<double> x = {}, se = {}, residual_norms = {}, freedoms = {};
  std::vector<FitReport> fits_of_responses = {};
  std::vector<index_t> ranks = {};  // of A for all responses, or for each

  bool is_good() const { return verdict.failed() == 0 && wrong_leverages == 0; }
  bool is_table() const { return !table.terms.empty(); }
};

/// Describes the run. Its document has the schema qrtool.solve/1.
Outcome outcome_of(const SolveOptions& options, const SolveResult& result);

/// Returns the member "check" of its document.
nlohmann::ordered_json check_json(const Verdict& verdict);
/// Returns the complaints of `solve`, also with groups.
std::vector<Complaint> complaints_of(const SolveOptions& options, const Verdict& verdict,
                                     const std::string& file, ElementType type);
/// Says which x was chosen if there are several solutions, or that there is none, and how many came
/// from a second try. `those`: the noun for the ranks.
std::string choice_text(const SolveOptions& options, const Verdict& verdict,
                        std::string_view those);

}  // namespace qrtool
