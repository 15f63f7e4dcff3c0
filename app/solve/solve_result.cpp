// SPDX-License-Identifier: Apache-2.0
// solve_result.cpp: the result of `qrtool solve` in words and as JSON.
#include "app/solve/solve_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/options/options.hpp"
#include "app/process/console.hpp"
#include "app/run/verdict/verdict_text.hpp"
#include "core/join.hpp"
#include "core/text.hpp"
#include "io/file/text_output.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

std::string shape_text(const Dims& dims) { return dims.empty() ? "1" : join(dims, "x"); }

/// Describes each response: "residual standard deviation 304.854, 9 degrees of freedom, R^2 0.995".
std::string deviations_of(const SolveResult& result) {
  std::string text;
  for (std::size_t r = 0; r < result.freedoms.size(); ++r) {
    const double freedom = result.freedoms[r];
    if (!(freedom > 0)) continue;
    if (result.freedoms.size() > 1) text += escape(result.table.responses[r]) + ": ";
    text += fmt::format("residual standard deviation {:.6g}, {} degree{} of freedom",
                        result.residual_norms[r] / std::sqrt(freedom), freedom,
                        freedom == 1 ? "" : "s");
    const FitReport& fit = result.fits_of_responses[r];
    if (!std::isnan(fit.r_squared)) text += fmt::format(", R^2 {:.6g}", fit.r_squared);
    if (fit.is_perfect) text += "; a perfect fit: its se, t and p are rounding errors";
    text += '\n';
  }
  return text;
}

/// A line for each coefficient, as the file has it, in columns that people can read.
std::string table_of(const SolveResult& result) {
  const bool has_several = result.table.responses.size() > 1, has_se = !result.se.empty();
  const bool has_limits = has_se && result.table.confidence > 0;
  std::size_t width = 4, response_width = 8;
  for (const std::string& term : result.table.terms) width = std::max(width, escape(term).size());
  for (const std::string& name : result.table.responses)
    response_width = std::max(response_width, escape(name).size());
  std::string text = has_several ? fmt::format("{:{}}  ", "response", response_width) : "";
  text += fmt::format("{:{}}  {:>24}", "term", width, "x");
  if (has_se) text += fmt::format("  {:>12}  {:>9}  {:>9}", "se", "t", "p");
  if (has_limits) text += fmt::format("  {:>12}  {:>12}", "lower", "upper");
  text += '\n';
  const std::size_t responses = result.table.responses.size();
  for (std::size_t r = 0; r < responses; ++r) {
    for (std::size_t j = 0; j < result.table.terms.size(); ++j) {
      const std::size_t at = j * responses + r;
      if (has_several)
        text += fmt::format("{:{}}  ", escape(result.table.responses[r]), response_width);
      text += fmt::format("{:{}}  {:>24}", escape(result.table.terms[j]), width, result.x[at]);
      const Inference found = result.inference(j, r);
      if (has_se)
        text += fmt::format("  {:>12.6g}  {:>9.4g}  {:>9.3g}", result.se[at], found.t, found.p);
      if (has_limits) text += fmt::format("  {:>12.6g}  {:>12.6g}", found.lower, found.upper);
      text += '\n';
    }
  }
  return text;
}

/// Says which x was chosen where it is not the only solution, or that there is none.
std::string choice_text(const SolveResult& result) {
  const SolveVerdict& v = result.verdict;
  const char* kind = result.is_basic ? "a basic solution" : "of least norm";
  std::string text;
  if (result.a.m < result.a.n)
    text += fmt::format("A has fewer rows than columns: x is {}\n", kind);
  if (v.deficient() > 0)
    text += fmt::format("{} of {} A {} dependent columns (least rank {}): x is {}\n",
                        format_count(v.deficient()), format_count(v.matrices()),
                        v.deficient() == 1 ? "has" : "have", v.least_rank(), kind);
  if (const index_t few = v.count(Status::too_few_rows); few > 0)
    text += fmt::format(
        "{} of {} right sides {} too few rows for x, which is NaN, status 5 (first: {}); "
        "--least-norm gives the x of least norm\n",
        format_count(few), format_count(v.solutions()), few == 1 ? "has" : "have",
        matrix_name(result.sides.solution_dims, v.first(Status::too_few_rows)));
  if (v.second_tries() > 0)
    text += fmt::format("{} {} from a second try by reflectors\n", format_count(v.second_tries()),
                        v.second_tries() == 1 ? "solution came" : "solutions came");
  return text;
}

std::string written_files(const SolveResult& result) {
  if (is_standard_output(result.files.front())) return "X to standard output";
  std::vector<std::string> files;
  for (const std::string& file : result.files) files.push_back(escape(file));
  return join(files, ", ");
}

/// What the fits are like as a whole, and R^2 of each response of a table.
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
  const std::size_t responses = result.table.responses.size();
  Json all = Json::array();
  for (std::size_t r = 0; r < responses; ++r) {
    for (std::size_t j = 0; j < result.table.terms.size(); ++j) {
      const std::size_t at = j * responses + r;
      Json one{{"response", result.table.responses[r]},
               {"term", result.table.terms[j]},
               {"x", result.x[at]}};
      if (!result.se.empty()) {
        const Inference found = result.inference(j, r);
        one.update({{"se", result.se[at]}, {"t", found.t}, {"p", found.p}});
        if (result.table.confidence > 0)
          one.update({{"lower", found.lower}, {"upper", found.upper}});
      }
      all.push_back(std::move(one));
    }
  }
  return all;
}

}  // namespace

Inference SolveResult::inference(std::size_t term, std::size_t response) const {
  const std::size_t at = term * table.responses.size() + response;
  const double error = se.empty() ? not_measured : se[at];
  return infer(x[at], error, freedoms[response], table.confidence);
}

void SolveVerdict::Worst::include(double measured, double bar, index_t of_solution) {
  if (std::isnan(measured)) return;
  const double its_ratio = in_bars(measured, bar);
  if (solution >= 0 && !(its_ratio > ratio)) return;
  *this = {measured, its_ratio, of_solution};
}

void SolveVerdict::add(index_t first, std::span<const SolutionReport> reports) {
  for (const SolutionReport& report : reports) {
    const auto status = static_cast<std::size_t>(report.status);
    if (counts_[status]++ == 0) firsts_[status] = first;
    if (report.status != Status::non_finite && report.status != Status::r_overflows) {
      backward_error_.include(report.backward_error, report.bar, first);
      least_norm_error_.include(report.least_norm_error, report.bar, first);
    }
    second_tries_ += report.tries > 1;
    ++solutions_;
    ++first;
  }
}

void SolveVerdict::add_matrix(const MatrixFindings& findings, index_t n) {
  ++matrices_;
  if (findings.rank < 0) return;
  if (findings.condition > worst_condition_) worst_condition_ = findings.condition;
  if (findings.rank >= n) return;
  ++deficient_;
  if (least_rank_ < 0 || findings.rank < least_rank_) least_rank_ = findings.rank;
}

std::string worst_line(const SolveVerdict& verdict, std::span<const index_t> dims) {
  const SolveVerdict::Worst& worst = verdict.backward_error();
  if (worst.solution < 0) return "";
  std::string text = fmt::format("worst backward error {:.2g} ({:.2g} of its bar, solution {})",
                                 worst.error, worst.ratio, matrix_name(dims, worst.solution));
  if (const SolveVerdict::Worst& norm = verdict.least_norm_error(); norm.solution >= 0)
    text += fmt::format(", least norm {:.2g} ({:.2g}, solution {})", norm.error, norm.ratio,
                        matrix_name(dims, norm.solution));
  return text;
}

std::string verdict_line(const SolveVerdict& verdict) {
  const index_t passed = verdict.count(Status::ok), all = verdict.solutions();
  if (passed == 1 && all == 1) return "the solution passes";
  const NamedCount others[] = {{verdict.count(Status::above_bar), "above the bar"},
                               {verdict.count(Status::non_finite), "not finite"},
                               {verdict.count(Status::r_overflows), "overflow in X"},
                               {verdict.count(Status::too_few_rows), "NaN: too few rows"}};
  return passed_text(passed, all, others);
}

Json input_json(const Source& source) {
  return {{"file", source.file},
          {"dataset", source.dataset},
          {"shape", dims_of(source)},
          {"type", source.stored_type}};
}

Json to_json(const SolveVerdict& v) {
  const auto worst = [](const SolveVerdict::Worst& w) -> Json {
    if (w.solution < 0) return nullptr;
    return {{"error", w.error}, {"ratio", w.ratio}, {"solution", w.solution}};
  };
  return {{"solutions", v.solutions()},
          {"passed", v.count(Status::ok)},
          {"failed", v.failed()},
          {"status",
           {{"ok", v.count(Status::ok)},
            {"above_bar", v.count(Status::above_bar)},
            {"non_finite", v.count(Status::non_finite)},
            {"x_overflows", v.count(Status::r_overflows)},
            {"too_few_rows", v.count(Status::too_few_rows)}}},
          {"worst",
           {{"backward_error", worst(v.backward_error())},
            {"least_norm_error", worst(v.least_norm_error())}}},
          {"matrices", v.matrices()},
          {"deficient", v.deficient()},
          {"second_tries", v.second_tries()}};
}

WallTime seconds_of(const SolveResult& result) {
  const StageSeconds& stages = result.stages;
  const double measured = result.seconds.factor + result.seconds.solve;
  return {.columns = {{"start", result.start_seconds},
                      {"read", stages.read},
                      {"factor", result.seconds.factor},
                      {"solve", result.seconds.solve},
                      {"other", std::max(0.0, stages.work - measured)},
                      {"write", stages.write},
                      {"leverage", result.leverage_seconds},
                      {"sync", result.sync_seconds},
                      {"free", stages.free + result.free_seconds}},
          .overlap = stages.overlap + std::max(0.0, measured - stages.work),
          .total = result.total_seconds};
}

std::string short_summary(const SolveResult& result) {
  const SolveVerdict& v = result.verdict;
  const std::string verdict = v.failed() > 0 ? in_red(verdict_line(v)) : verdict_line(v);
  return fmt::format("{}; wrote {} (X {})\n", verdict, written_files(result),
                     shape_text(result.sides.x_dims));
}

// The answer is last, where it is a table.
std::string summary(const SolveResult& result, bool verbose) {
  const SolveVerdict& v = result.verdict;
  const index_t items = result.sides.items();
  std::string text =
      fmt::format("solved {} right side{} with {} of {}x{} ({}, {}) on {} ({} thread{})\n",
                  format_count(v.solutions()), v.solutions() == 1 ? "" : "s",
                  result.sides.shares_a() ? "one A" : format_count(items) + " A", result.a.m,
                  result.a.n, name_of(result.type), result.variant, result.device, result.threads,
                  result.threads == 1 ? "" : "s");
  text += choice_text(result);
  if (verbose) text += text_of(seconds_of(result)) + "\n";
  // That of one response stands beside its error, so that three lines precede the table.
  const std::string deviations = result.is_table() ? deviations_of(result) : "";
  const std::string worst = worst_line(v, result.sides.solution_dims);
  const bool is_beside = result.freedoms.size() == 1 && !worst.empty() && !deviations.empty();
  if (!worst.empty()) text += worst + (is_beside ? "; " + deviations : "\n");
  // A table shows R^2 beside each response, and without spare rows there is nothing to explain.
  if (result.a.m > result.a.n || result.fits.worst_solution() >= 0)
    text += fit_text(result.fits, result.fit_bar, result.sides.solution_dims, deviations.empty());
  text += short_summary(result);
  if (!is_beside) text += deviations;
  const bool shows_table = result.is_table() && !is_standard_output(result.files.front());
  return shows_table ? text + table_of(result) : text;
}

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
          {"check", to_json(result.verdict)},
          {"fit", fit_json(result)},
          {"coefficients", coefficients_json(result)},
          {"exit", result.is_good() ? 0 : 1}};
}

void print_bad_solutions(const SolveOptions& o, const SolveResult& result) {
  const SolveVerdict& v = result.verdict;
  const auto say = [&](Status status, const char* what) {
    if (v.count(status) == 0) return false;
    print_failure(fmt::format("{}: {} of {} solutions {} (first: {})", escape(result.b.file),
                              format_count(v.count(status)), format_count(v.solutions()), what,
                              matrix_name(result.sides.solution_dims, v.first(status))));
    return true;
  };
  if (say(Status::non_finite, "are NaN: A or b holds NaN or Inf") &&
      !o.system.skips_missing.value_or(false))
    print_hint("--missing skip leaves out the rows with NaN");
  if (say(Status::r_overflows, "exceed the range of their type") &&
      real_of(result.type) == ElementType::float32)
    print_hint("use --precision double");
  say(Status::above_bar, "miss the bar; see status 1 in the report");
  if (result.wrong_leverages > 0)
    print_failure(
        fmt::format("{}: the leverages of {} A miss their bar; see leverage_error in the "
                    "report",
                    escape(result.a.file), format_count(result.wrong_leverages)));
}

void print_result(const SolveOptions& o, const SolveResult& result) {
  print_bad_solutions(o, result);
  if (o.json) {
    write_json(to_json(o, result));
  } else if (!o.quiet) {
    write_stdout(summary(result, o.verbose));
  }
}

}  // namespace qrtool
