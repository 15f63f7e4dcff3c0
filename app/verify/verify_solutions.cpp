// SPDX-License-Identifier: Apache-2.0
// verify_solutions.cpp: `qrtool verify A B X` measures the backward errors of stored solutions and
// says whether they pass.
#include "app/verify/verify_solutions.hpp"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "app/process/progress.hpp"
#include "app/process/stopwatch.hpp"
#include "app/run/files/source_notes.hpp"
#include "app/run/verdict/verdict_text.hpp"
#include "app/solve/side_numbers.hpp"
#include "app/solve/solve_notes.hpp"
#include "app/solve/solve_result.hpp"
#include "app/solve/solve_stages.hpp"
#include "app/verify/verify_sides.hpp"
#include "core/join.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/open/factors.hpp"
#include "io/open/solutions.hpp"
#include "io/source/variable_record.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// The record of OUT about the run that made it. The texts are empty if another program wrote it.
struct Recorded {
  std::string rows, solution, rank_tolerance, missing, ridge, weights, response, intercept,
      least_norm, weights_are, a, polynomial, window;
};

Recorded read_recorded(const std::string& path) {
  const std::vector<std::string> texts = recorded_attributes(
      path, {"rows", "solution", "rank_tolerance", "missing", "ridge", "weights", "response",
             "intercept", "least_norm", "weights_are", "a", "polynomial", "window"});
  return {texts[0], texts[1], texts[2], texts[3],  texts[4],  texts[5], texts[6],
          texts[7], texts[8], texts[9], texts[10], texts[11], texts[12]};
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc()) return std::nullopt;
  return value;
}

/// Completes the options of the command line.
SystemOptions options_of(SystemOptions options, const std::string& solutions,
                         const Recorded& recorded) {
  // b of a table is a column, whatever B was.
  if (options.rows == RowsOfB::automatic && options.response.empty())
    for (const RowsOfB rows : {RowsOfB::first, RowsOfB::last, RowsOfB::matrix})
      if (recorded.rows == name_of(rows)) options.rows = rows;
  if (!options.skips_missing) options.skips_missing = recorded.missing == "skip";
  if (recorded.least_norm == "yes") options.least_norm = true;
  if (!options.ridge) options.ridge = number_of(recorded.ridge);
  if (!options.rank_tolerance) options.rank_tolerance = number_of(recorded.rank_tolerance);
  if (recorded.intercept == "yes") options.intercept = true;
  if (options.a.empty()) options.a = recorded.a;
  if (options.polynomial.empty()) options.polynomial = recorded.polynomial;
  const std::string file = escape(solutions);
  if (!recorded.window.empty())
    throw UsageError(fmt::format("{}: was made with --window {}, whose solutions verify does not "
                                 "measure again",
                                 file, escape(recorded.window)),
                     fmt::format("qrtool info {} shows the errors that were measured", file));
  if (recorded.weights_are == "column" && options.weights.empty() && !options.response.empty())
    options.weights = recorded.weights;
  if (!recorded.weights.empty() && options.weights.empty())
    throw UsageError(
        fmt::format("{}: was made with the weights {}", file, escape(recorded.weights)),
        "give them with --weights");
  if (!recorded.response.empty() && options.response.empty())
    throw UsageError(
        fmt::format("{}: was made from a table with the response {}", file,
                    escape(recorded.response)),
        fmt::format("qrtool verify TABLE {} --response {}", file, escape(recorded.response)));
  return options;
}

/// Returns A and B. If the command line does not name a dataset, the record of OUT does.
SolveFiles files_of(const VerifyOptions& o) {
  constexpr const char* side = "right_side_";
  std::vector<std::string> attributes{"right_side_file", "right_side_dataset"};
  const std::vector<const char*> reading = names_of_reading();
  for (const char* name : reading) attributes.push_back(fmt::format("{}{}", side, name));
  std::vector<const char*> names;
  for (const std::string& attribute : attributes) names.push_back(attribute.c_str());
  const std::vector<std::string> texts = recorded_attributes(o.solutions, names);
  RecordedInput b{.file = texts[0], .dataset = texts[1]};
  for (std::size_t i = 2; i < texts.size(); ++i)
    if (!texts[i].empty()) b.details.emplace_back(reading[i - 2], texts[i]);
  return {.a = o.input,
          .b = o.factors,
          .csv = o.csv,
          .raw_values = o.raw_values,
          .recorded_a = read_recorded_input(o.solutions),
          .recorded_b = std::move(b)};
}

bool is_from_solve(const std::string& file) {
  return recorded_attributes(file, {"command"}).front() == "solve";
}

SolveInputs open_inputs(const VerifyOptions& o, const SolveFiles& files,
                        const SystemOptions& options, const Limits& limits) {
  try {
    return open_solve_inputs(files, options, o.order, limits);
  } catch (const InputError& error) {
    if (!is_from_solve(o.input) || is_from_solve(o.solutions)) throw;
    throw InputError(error.what(),
                     fmt::format("the solutions come last: qrtool verify A B {}", escape(o.input)));
  }
}

/// Prints notes about doubts that the run of `solve` had, because they still hold.
void print_doubts(const VerifyOptions& o, const SolveFiles& files, const SolveInputs& inputs) {
  print_notes(inputs, o.verbose);
  print_other_reading(o.solutions, files.recorded_a, inputs.a->source());
  if (o.system.response.empty())
    print_other_reading(o.solutions, files.recorded_b, inputs.b->source());
}

/// Whether the shape of a file is that of an array. Text has only shapes m x n.
bool has_shape(const Source& source, const Dims& expected) {
  const Dims dims = dims_of(source);
  return dims == expected || (source.dataset.empty() && count_of(dims) == count_of(expected));
}

void check_solutions(const SolveInputs& inputs, const Reader& x, const Dims& expected) {
  const Dims dims = dims_of(x.source());
  if (has_shape(x.source(), expected)) return;
  throw InputError(fmt::format("{}: the shapes do not fit: X is {}, and for A {} and B {} it is {}",
                               escape(x.source().file), join(dims, "x"),
                               format_shape(inputs.a->source().leading, inputs.m(), inputs.n()),
                               join(dims_of(inputs.b->source()), "x"), join(expected, "x")));
}

/// The files beside X with a number for each number of B. A reader is null if its file does not
/// exist.
struct FitsBeside {
  std::unique_ptr<Reader> fitted, residuals;

  void require_unchanged() const {
    for (const Reader* reader : {fitted.get(), residuals.get()})
      if (reader != nullptr) reader->require_unchanged();
  }
  std::size_t workspace_bytes(ElementType type) const {
    std::size_t bytes = 0;
    for (const Reader* reader : {fitted.get(), residuals.get()})
      if (reader != nullptr) bytes += reader->workspace_bytes(type);
    return bytes;
  }
};

void require_shape_of_fits(const Reader& beside, const Dims& expected, std::string_view name) {
  if (has_shape(beside.source(), expected)) return;
  throw InputError(
      fmt::format("{}: {} has the shape {}, and for A and B it is {}", escape(beside.source().file),
                  name, join(dims_of(beside.source()), "x"), join(expected, "x")),
      fmt::format("it belongs to another B: solve again with --{} --force", name));
}

/// Returns the type by which x is judged. Text is read as float64, but may say that it holds
/// float32.
ElementType type_of_solutions(const Source& x) {
  for (const ElementType type : {ElementType::float32, ElementType::complex64})
    if (x.stored_type == name_of(type)) return is_complex(x.type) ? complex_of(type) : type;
  return x.type;
}

/// A, B and X are all real, or all complex: x of a real system may be complex, and the reverse.
void match_numbers(SolveInputs& inputs, std::unique_ptr<Reader>& x) {
  if (is_complex(inputs.a->source().type)) x = read_as_complex(std::move(x), {});
  if (!is_complex(x->source().type)) return;
  inputs.a = read_as_complex(std::move(inputs.a), {});
  inputs.b = read_as_complex(std::move(inputs.b), {});
}

/// Opens residuals and fitted values, and says in `inputs` that they are checked.
FitsBeside open_fits(const VerifyOptions& o, const Limits& limits, const Dims& dims,
                     bool as_complex, SolveInputs& inputs) {
  const auto open = [&](const char* name) {
    std::unique_ptr<Reader> reader =
        open_beside_solutions(o.solutions, name, limits.threads, memory_of_file(limits));
    if (!reader) return reader;
    require_shape_of_fits(*reader, dims, name);
    if (as_complex) reader = read_as_complex(std::move(reader), {});
    inputs.fits.type = type_of_solutions(reader->source());
    return reader;
  };
  FitsBeside fits;
  fits.fitted = open("fitted");
  fits.residuals = open("residuals");
  inputs.fits.checks_fitted = fits.fitted != nullptr;
  inputs.fits.checks_residuals = fits.residuals != nullptr;
  return fits;
}

/// Returns the reason for the status of a solution, if its errors do not show it.
const char* reason_of(const SolutionReport& report) {
  if (report.status == Status::non_finite) return "A or b holds NaN or Inf";
  if (report.status == Status::too_few_rows) return "it is NaN, and too few rows count for it";
  if (std::isnan(report.backward_error)) return "it holds numbers, and too few rows count for it";
  return std::isfinite(report.backward_error) ? nullptr : "it holds NaN or Inf";
}

const char* reason_of(const FitReport& fit) {
  if (fit.has_other_residuals) return "the residuals beside it are not b - A x within their bar";
  if (fit.has_other_fitted) return "the fitted values beside it are not A x within their bar";
  return fit.is_below_mean ? "it fits worse than the mean of b, R^2 is below 0" : nullptr;
}

template <class T>
void verify_typed(const VerifyOptions& o, const SolveJob& job, Verdict& verdict) {
  Progress progress("verify", count_of(job.inputs.sides.solution_dims), o.progress_mode(),
                    "solutions");
  SolveSink<T> sink{.keep_x = [](index_t, index_t, const T*, const Real<T>*) {},
                    .keep_reports =
                        [&](index_t first, std::span<const SolutionReport> reports) {
                          for (const SolutionReport& report : reports) {
                            Judged one = judged(first++, report);
                            one.reason = reason_of(report);
                            verdict.add(one);
                          }
                          progress.add(std::ssize(reports));
                        },
                    .keep_findings =
                        [&](index_t, std::span<const MatrixFindings> findings) {
                          for (const MatrixFindings& each : findings)
                            verdict.ranks.include(0, each.rank, each.condition, job.problem.k());
                        }};
  if (job.inputs.fits.any() || job.problem.has_intercept)
    sink.keep_fits = [&](index_t first, std::span<const FitReport> fits) {
      for (Judged& one : verdict.listed())
        if (one.at >= first && one.at < first + std::ssize(fits) && one.reason == nullptr)
          one.reason = reason_of(fits[one.at - first]);
    };
  run_solve_stages<T>(job, sink);
}

/// Returns the document, of schema qrtool.verify-solutions/1.
Json to_json(const VerifyOptions& o, const Verdict& verdict, const SolveInputs& inputs,
             double seconds) {
  Json listed = Json::array();
  for (const Judged& one : verdict.listed())
    listed.push_back({{"solution", one.at},
                      {"status", static_cast<int>(one.status)},
                      {"backward_error", one.errors[0].error},
                      {"least_norm_error", one.errors[1].error},
                      {"bar", one.bar},
                      {"residual_norm", one.residual_norm}});
  return {{"schema", "qrtool.verify-solutions/1"},
          {"version", QRTOOL_VERSION},
          {"a", input_json(inputs.a->source())},
          {"b", input_json(inputs.b->source())},
          {"solutions", o.solutions},
          {"check", check_json(verdict)},
          {o.all ? "all_solutions" : "first_failures", listed},
          {"seconds", {{"total", seconds}}},
          {"exit", verdict.failed() > 0 ? 1 : 0}};
}

}  // namespace

SystemOptions completed_options(const SystemOptions& options, const std::string& solutions) {
  return options_of(options, solutions, read_recorded(solutions));
}

ExitCode verify_solutions(const VerifyOptions& o) {
  const Stopwatch watch;
  if (!o.report.empty())
    throw UsageError("--report is for factors", "--json and --all list the errors of solutions");
  if (o.criteria != Criteria::bar)
    throw UsageError("--criteria is for factors", "there is one bar for solutions");
  const Limits all = host_limits(o.memory_bytes, o.threads);
  const Recorded recorded = read_recorded(o.solutions);
  const SystemOptions options = options_of(o.system, o.solutions, recorded);
  const SolveFiles files = files_of(o);
  SolveInputs inputs = open_inputs(o, files, options, all);
  if (!o.quiet) print_doubts(o, files, inputs);
  std::unique_ptr<Reader> x = open_solutions(o.solutions, all.threads, memory_of_file(all));
  if (o.system.response.empty()) refuse_factors(inputs, *x);
  const SideAxes axes = side_axes(inputs, inputs.sides.rows);
  check_solutions(inputs, *x, axes.x_dims);
  match_numbers(inputs, x);
  fit_weights(inputs, real_of(type_of_solutions(x->source())));
  const FitsBeside fits = open_fits(o, all, axes.fit_dims, is_complex(x->source().type), inputs);
  SolveProblem problem = solve_problem(inputs, options, type_of_solutions(x->source()));
  problem.only_checks = true;
  // Another program's solutions are not held to the least norm, which only this tool promises.
  problem.rank.is_basic = recorded.solution != "least-norm";
  const Limits limits = limits_beside_files(
      inputs, problem.type, x->workspace_bytes(problem.type) + fits.workspace_bytes(problem.type),
      all);
  const PlainSides plain = plain_sides(inputs, axes, *x, fits.fitted.get(), fits.residuals.get());
  const SolvePlan plan = plan_solve(plain.inputs.shape(), problem, limits);
  const SolveJob job{.inputs = plain.inputs,
                     .problem = problem,
                     .plan = plan,
                     .limits = limits,
                     .x = plain.x.get(),
                     .fitted = plain.fitted.get(),
                     .residuals = plain.residuals.get()};
  Verdict verdict(subject_of_solve, named_by(axes.solution_dims),
                  o.all ? std::optional<std::size_t>() : listed_failures);
  with_type(problem.type, [&](auto zero) { verify_typed<decltype(zero)>(o, job, verdict); });
  inputs.require_unchanged();
  x->require_unchanged();
  fits.require_unchanged();
  std::string worst = worst_line(verdict);
  if (!worst.empty())
    worst += real_of(problem.type) == ElementType::float32 ? "; u = 2^-23\n" : "; u = 2^-52\n";
  Outcome outcome = answer_of(o, verdict, worst, o.solutions);
  if (o.json) outcome.json = to_json(o, verdict, inputs, watch.seconds());
  return print(o, outcome);
}

Outcome answer_of(const VerifyOptions& o, const Verdict& verdict, std::string head,
                  const std::string& file) {
  const std::span<const Judged> all = verdict.listed();
  const std::span<const Judged> listed =
      o.all ? all : all.first(std::min(all.size(), listed_failures));
  std::string text = std::move(head);
  for (const Judged& one : listed) text += line_of(one, verdict);
  text += second_try_line(verdict);
  if (const index_t left = verdict.failed() - std::ssize(listed); !o.all && left > 0)
    text += fmt::format("and {} more; --all lists them\n", format_count(left));
  const std::string verified =
      fmt::format("verified {} of {}: ", counted(verdict.all(), verdict.subject()), escape(file));
  Outcome outcome{.text = text + verified + verdict_line(verdict) + "\n"};
  if (verdict.failed() == 0) return outcome;
  outcome.code = ExitCode::answer_is_no;
  if (o.quiet)
    outcome.complaints.push_back({verified + verdict_line(verdict, /*may_be_red=*/false)});
  return outcome;
}

}  // namespace qrtool
