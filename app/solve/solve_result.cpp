// SPDX-License-Identifier: Apache-2.0
// solve_result.cpp: the result of `qrtool solve` in words and as JSON.
#include "app/solve/solve_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/join.hpp"
#include "core/text.hpp"
#include "io/file/text_output.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

const char* kind_of_solution(const SolveOptions& o) {
  return o.basic ? "a basic solution" : "of least norm";
}

/// Describes each response: "12 of 16 rows used; residual standard deviation 304.854, 9 degrees of
/// freedom, R^2 0.995, condition 31.6".
std::string deviations_of(const SolveResult& result) {
  std::string text;
  const double condition = result.verdict.ranks.worst_condition;
  for (std::size_t r = 0; r < result.freedoms.size(); ++r) {
    const double freedom = result.freedoms[r];
    if (!(freedom > 0)) continue;
    if (result.freedoms.size() > 1) text += escape(result.table.responses[r]) + ": ";
    const index_t rank = result.ranks.empty() ? 0 : result.ranks[r % result.ranks.size()];
    const double rows = freedom + static_cast<double>(rank);
    if (rows < static_cast<double>(result.a.m))
      text += fmt::format("{} of {} rows used; ", rows, result.a.m);
    text += fmt::format("residual standard deviation {:.6g}, {} degree{} of freedom",
                        result.residual_norms[r] / std::sqrt(freedom), freedom,
                        freedom == 1 ? "" : "s");
    const FitReport& fit = result.fits_of_responses[r];
    if (!std::isnan(fit.r_squared)) text += fmt::format(", R^2 {:.6g}", fit.r_squared);
    if (!std::isnan(condition)) text += fmt::format(", condition {:.3g}", condition);
    if (fit.is_perfect) text += "; a perfect fit: its se, t and p are rounding errors";
    text += '\n';
  }
  return text;
}

/// Returns at most two lines: "R^2 0.12 to 0.98" if it is asked for, and how orthogonal the
/// residuals are to A.
std::string fit_text(const FitVerdict& fits, double bar, std::span<const index_t> dims,
                     bool tells_r_squared) {
  std::string text;
  if (tells_r_squared && !std::isnan(fits.least))
    text += fits.least == fits.greatest
                ? fmt::format("R^2 {:.6g}\n", fits.least)
                : fmt::format("R^2 {:.6g} to {:.6g}\n", fits.least, fits.greatest);
  if (fits.worst_solution >= 0)
    text += fmt::format(
        "residuals orthogonal to A: {:.2g} at the worst ({:.2g} of the bar, "
        "solution {})\n",
        fits.worst, MeasuredError(fits.worst, bar, 0).ratio,
        matrix_name(dims, fits.worst_solution));
  return text;
}

Json to_json(const FitVerdict& fits) {
  // NaN becomes null.
  Json json{{"r_squared", nullptr}, {"orthogonality", nullptr}};
  if (!std::isnan(fits.least))
    json["r_squared"] = {{"least", fits.least}, {"greatest", fits.greatest}};
  if (fits.worst_solution >= 0)
    json["orthogonality"] = {{"worst", fits.worst}, {"solution", fits.worst_solution}};
  return json;
}

/// A fitted coefficient of a column of the table, with its statistics.
struct Coefficient {
  const std::string &response, &term;
  double x, se;  // se: NaN where there is none
  Inference inference;
};

std::vector<Coefficient> coefficients_of(const SolveResult& result) {
  const CoefficientTable& table = result.table;
  std::vector<Coefficient> all;
  for (std::size_t r = 0; r < table.responses.size(); ++r) {
    for (std::size_t j = 0; j < table.terms.size(); ++j) {
      const std::size_t at = j * table.responses.size() + r;
      const double se = result.se.empty() ? not_measured : result.se[at];
      all.push_back({table.responses[r], table.terms[j], result.x[at], se,
                     infer(result.x[at], se, result.freedoms[r], table.confidence)});
    }
  }
  return all;
}

std::size_t width_of(std::span<const std::string> names, std::size_t least) {
  for (const std::string& name : names) least = std::max(least, escape(name).size());
  return least;
}

/// Returns a line for each coefficient, as the file has it, in columns that people can read.
std::string table_of(const SolveResult& result) {
  const CoefficientTable& table = result.table;
  const bool has_several = table.responses.size() > 1, has_se = !result.se.empty();
  const bool has_limits = has_se && table.confidence > 0;
  const std::size_t width = width_of(table.terms, 4), of_response = width_of(table.responses, 8);
  std::string text = has_several ? fmt::format("{:{}}  ", "response", of_response) : "";
  text += fmt::format("{:{}}  {:>24}", "term", width, "x");
  if (has_se) text += fmt::format("  {:>12}  {:>9}  {:>9}", "se", "t", "p");
  if (has_limits) text += fmt::format("  {:>12}  {:>12}", "lower", "upper");
  text += '\n';
  for (const auto& [response, term, x, se, found] : coefficients_of(result)) {
    if (has_several) text += fmt::format("{:{}}  ", escape(response), of_response);
    text += fmt::format("{:{}}  {:>24}", escape(term), width, x);
    if (has_se) text += fmt::format("  {:>12.6g}  {:>9.4g}  {:>9.3g}", se, found.t, found.p);
    if (has_limits) text += fmt::format("  {:>12.6g}  {:>12.6g}", found.lower, found.upper);
    text += '\n';
  }
  return text;
}

/// Returns the quality of all fits together, and R^2 of each response of a table.
Json fit_json(const SolveResult& result) {
  Json json = to_json(result.fits);
  if (!result.is_table()) return json;
  json["responses"] = Json::array();
  for (std::size_t r = 0; r < result.fits_of_responses.size(); ++r)
    json["responses"].push_back({{"response", result.table.responses[r]},
                                 {"r_squared", result.fits_of_responses[r].r_squared},
                                 {"is_perfect", result.fits_of_responses[r].is_perfect}});
  return json;
}

/// Returns one JSON object for each coefficient.
Json coefficients_json(const SolveResult& result) {
  if (!result.is_table()) return nullptr;
  Json all = Json::array();
  for (const auto& [response, term, x, se, found] : coefficients_of(result)) {
    Json one{{"response", response}, {"term", term}, {"x", x}};
    if (!result.se.empty()) one.update({{"se", se}, {"t", found.t}, {"p", found.p}});
    if (!result.se.empty() && result.table.confidence > 0)
      one.update({{"lower", found.lower}, {"upper", found.upper}});
    all.push_back(std::move(one));
  }
  return all;
}

WallTime seconds_of(const SolveResult& result) {
  return wall_time(result.times,
                   {{"factor", result.seconds.factor}, {"solve", result.seconds.solve}});
}

/// Returns the verdict and the names of the files: "all 3 pass; wrote x.npz (X 3x5)".
std::string last_line(const SolveResult& result) {
  const Dims& x = result.sides.x_dims;
  return fmt::format("{}; wrote {} (X {})\n", verdict_line(result.verdict),
                     written_files(result.files, "X"), x.empty() ? "1" : join(x, "x"));
}

// Returns the text for standard output. If the answer is a table, it comes last.
std::string summary(const SolveOptions& o, const SolveResult& result) {
  const Verdict& v = result.verdict;
  std::string text =
      fmt::format("solved {} right side{} with {} of {}x{} ({}, {}) on {} ({} thread{})\n",
                  format_count(v.all()), v.all() == 1 ? "" : "s",
                  result.sides.shares_a() ? "one A" : format_count(result.sides.items()) + " A",
                  result.a.m, result.a.n, name_of(result.type), result.variant, result.device,
                  result.threads, result.threads == 1 ? "" : "s");
  if (result.a.m < result.a.n)
    text += fmt::format("A has fewer rows than columns: x is {}\n", kind_of_solution(o));
  text += choice_text(o, v, "A");
  if (o.verbose) text += text_of(seconds_of(result)) + "\n";
  // The deviation of one response is on the line of its error, so that three lines precede the
  // table.
  const std::string deviations = result.is_table() ? deviations_of(result) : "";
  const std::string worst = worst_line(v);
  const bool is_beside = result.freedoms.size() == 1 && !worst.empty() && !deviations.empty();
  if (!worst.empty()) text += worst + (is_beside ? "; " + deviations : "\n");
  // A table shows R^2 beside each response, and without spare rows there is nothing to explain.
  if (result.a.m > result.a.n || result.fits.worst_solution >= 0)
    text += fit_text(result.fits, result.fit_bar, result.sides.solution_dims, deviations.empty());
  text += last_line(result);
  if (!is_beside) text += deviations;
  const bool shows_table = result.is_table() && !is_standard_output(result.files.front());
  return shows_table ? text + table_of(result) : text;
}

/// Returns the document, of schema qrtool.solve/1.
Json to_json(const SolveOptions& o, const SolveResult& result) {
  return {{"schema", "qrtool.solve/1"},
          {"version", QRTOOL_VERSION},
          {"a", input_json(result.a)},
          {"b", input_json(result.b)},
          {"rows", name_of(result.sides.rows)},
          {"output", {{"files", result.files}, {"x_shape", result.sides.x_dims}}},
          {"type", name_of(result.type)},
          {"solution", o.basic ? "basic" : "least-norm"},
          {"backend", result.backend},
          {"device", result.device},
          {"variant", result.variant},
          {"bar", result.bar},
          {"seconds", to_json(seconds_of(result))},
          {"check", check_json(result.verdict)},
          {"fit", fit_json(result)},
          {"coefficients", coefficients_json(result)},
          {"exit", result.is_good() ? 0 : 1}};
}

}  // namespace

Json check_json(const Verdict& verdict) {
  Json check = to_json(verdict);
  check.update({{"matrices", verdict.ranks.matrices},
                {"deficient", verdict.ranks.deficient},
                {"second_tries", verdict.second_tries}});
  return check;
}

void FitVerdict::add(index_t first, std::span<const FitReport> fits) {
  for (const FitReport& fit : fits) {
    // NaN is neither less nor more.
    if (!(fit.r_squared >= least) && !std::isnan(fit.r_squared)) least = fit.r_squared;
    if (!(fit.r_squared <= greatest) && !std::isnan(fit.r_squared)) greatest = fit.r_squared;
    if (!(fit.orthogonality <= worst) && !std::isnan(fit.orthogonality)) {
      worst = fit.orthogonality;
      worst_solution = first;
    }
    ++first;
  }
}

std::string choice_text(const SolveOptions& o, const Verdict& v, std::string_view those) {
  std::string text;
  if (v.ranks.deficient > 0)
    text += fmt::format("{} of {} {} with dependent columns (least rank {}): x is {}\n",
                        format_count(v.ranks.deficient), format_count(v.ranks.matrices), those,
                        v.ranks.least, kind_of_solution(o));
  if (const index_t few = v.count(Status::too_few_rows); few > 0)
    text += fmt::format(
        "{} of {} too few rows for x, which is NaN (first: {}){}\n", format_count(few),
        counted(v.all(), v.subject()) + (few == 1 ? " has" : " have"),
        v.name_of(v.first(Status::too_few_rows)),
        o.system.least_norm || o.window.are_given() ? ""
                                                    : "; --least-norm gives the x of least norm");
  return text + second_try_line(v);
}

std::vector<Complaint> complaints_of(const SolveOptions& o, const Verdict& verdict,
                                     const std::string& file, ElementType type) {
  const bool is_single = real_of(type) == ElementType::float32;
  const std::string range = fmt::format("the range of {}", is_single ? "float32" : "float64");
  const char* const missing_hint = "--missing skip leaves out the rows with NaN";
  const char* const range_hint = is_single ? "use --precision double" : "";
  return complaints_of(
      verdict, file,
      {{Status::non_finite, "is NaN: A or b holds NaN or Inf", "are NaN: A or b holds NaN or Inf",
        "", o.system.skips_missing.value_or(false) ? "" : missing_hint},
       {Status::r_overflows, "exceeds " + range, "exceed " + range, "", range_hint},
       {Status::above_bar, "misses the bar", "miss the bar", "; see its status"}});
}

Outcome outcome_of(const SolveOptions& o, const SolveResult& result) {
  Outcome outcome{.code = result.is_good() ? ExitCode::good : ExitCode::answer_is_no,
                  .complaints = complaints_of(o, result.verdict, result.b.file, result.type),
                  .line = last_line(result)};
  complain_of_leverages(result.a.file, result.wrong_leverages, outcome.complaints);
  if (o.json)
    outcome.json = to_json(o, result);
  else
    outcome.text = summary(o, result);
  return outcome;
}

}  // namespace qrtool
