// SPDX-License-Identifier: Apache-2.0
// verify.cpp: `qrtool verify` measures the errors of stored factors and says whether they pass.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "app/commands/commands.hpp"
#include "app/process/console.hpp"
#include "app/run/backends/make_backend.hpp"
#include "app/run/files/several.hpp"
#include "app/run/files/source_notes.hpp"
#include "app/run/measure/measure.hpp"
#include "app/run/verdict/verdict_text.hpp"
#include "app/verify/verify_answer.hpp"
#include "app/verify/verify_solutions.hpp"
#include "core/join.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/open/factors.hpp"
#include "io/open/output.hpp"
#include "io/open/solution_set.hpp"
#include "io/report/report_file.hpp"
#include "io/write/factor_files.hpp"
#include "io/write/writer.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// The verdict, and with --all the errors of every matrix.
struct VerifyResult {
  const VerifyOptions& options;
  const FactoredInput& input;
  Check check;
  Verdict verdict;
  std::vector<Measurement> all;
  StageSeconds stages;
  double total_seconds = 0;

  /// The matrices that the text lists one by one.
  std::span<const Measurement> listed() const {
    if (options.all) return all;
    return verdict.failures().first(std::min(verdict.failures().size(), listed_failures));
  }
  std::span<const index_t> leading() const { return input.a.source().leading; }
};

/// Returns how many tries OUT records for matrix b, or 0 where it records nothing.
std::uint8_t recorded_tries(const StoredFactors& factors, index_t b) {
  return std::cmp_less(b, factors.tries.size()) ? factors.tries[static_cast<std::size_t>(b)] : 0;
}

/// The matrices whose factors came from a second try.
index_t second_tries(const StoredFactors& factors) {
  return std::count_if(factors.tries.begin(), factors.tries.end(),
                       [](std::uint8_t tries) { return tries > 1; });
}

MatrixReport report_line(const Measurement& m, const StoredFactors& factors) {
  return {.residual = m.errors.residual,
          .orthogonality = m.errors.orthogonality,
          .lower = m.errors.lower,
          .diagonal_ratio = m.errors.diagonal_ratio,
          .status = m.status,
          .scale = m.errors.scale,
          .tries = recorded_tries(factors, m.matrix),
          .bars = m.bars};
}

std::string unit_text(Precision precision) {
  if (precision.u == mixed_precision.u) return "2^-10, mixed precision";
  return precision.u == single_precision.u ? "2^-23" : "2^-52";
}

std::string stored_shapes(const StoredFactors& f) {
  std::string text;
  const std::pair<const char*, const Reader*> named[] = {
      {"Q", f.q.get()}, {"R", f.r.get()}, {"P", f.p.get()}, {"V", f.v.get()}, {"tau", f.tau.get()}};
  for (const auto& [name, reader] : named) {
    if (reader == nullptr) continue;
    const Source& s = reader->source();
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", name, format_shape(s.leading, s.m, s.n));
  }
  return text;
}

/// "matrix 12 fails: residual 3.1e-03 (8.7e+11 of its bar), orthogonality ..."
std::string line_of(const Measurement& m, const VerifyResult& result) {
  const std::string name = "matrix " + matrix_name(result.leading(), m.matrix);
  if (m.status == Status::non_finite) return name + " fails: it holds NaN or Inf";
  if (std::isnan(m.errors.residual)) return name + " fails: its factors hold NaN or Inf";
  std::string text =
      fmt::format("{} {}: {}", name, m.status == Status::ok ? "passes" : "fails",
                  error_text("residual", m.errors.residual, m.bars.residual, " of its bar"));
  if (result.input.has_q())
    text += ", " + error_text("orthogonality", m.errors.orthogonality, m.bars.orthogonality, "");
  return text + ", " + error_text("lower", m.errors.lower, m.bars.lower, "");
}

std::string verdict_line(const VerifyResult& result) {
  const Verdict& verdict = result.verdict;
  const std::string count = format_count(verdict.matrices());
  const bool is_one = verdict.matrices() == 1, pass = verdict.failed() == 0;
  const std::string answer =
      is_one ? (pass ? "it passes" : "it fails")
             : (pass ? "all pass"
                     : fmt::format("{} of {} fail", format_count(verdict.failed()), count));
  return fmt::format("verified {} {} of {}: {}", count, is_one ? "matrix" : "matrices",
                     escape(result.input.factors.file), answer);
}

VerifyAnswer answer_of(const VerifyResult& result) {
  VerifyAnswer answer;
  const FactoredInput& input = result.input;
  if (input.factors.p) answer.worst += "pivoted: A[:, P] is compared with the factors\n";
  if (!input.has_q())
    answer.worst += "R alone: the residual is ||A'A - R'R|| / ||A||^2, a weaker check\n";
  if (const std::string worst = worst_line(result.verdict, result.leading()); !worst.empty())
    answer.worst += fmt::format("{}{}\n", worst,
                                result.options.criteria == Criteria::m_eps
                                    ? "; bars m 2^-23"
                                    : fmt::format("; u = {}", unit_text(input.precision())));
  if (result.check == Check::probe)
    answer.worst += "these errors are estimates, except those of matrices close to a bar\n";
  for (const Measurement& m : result.listed()) answer.listed.push_back(line_of(m, result));
  if (const index_t count = second_tries(input.factors); count > 0)
    answer.after_list = fmt::format("{} {} from a second try\n", format_count(count),
                                    count == 1 ? "matrix came" : "matrices came");
  answer.verdict = verdict_line(result);
  answer.failed = result.verdict.failed();
  return answer;
}

Json to_json(const VerifyResult& result) {
  const FactoredInput& input = result.input;
  const Source& a = input.a.source();
  std::vector<index_t> shape = a.leading;
  shape.insert(shape.end(), {a.m, a.n});
  const bool is_recorded = !input.factors.tries.empty();
  const Json tries_again = is_recorded ? Json(second_tries(input.factors)) : Json();
  return {{"schema", "qrtool.verify/1"},
          {"version", QRTOOL_VERSION},
          {"input",
           {{"file", a.file},
            {"dataset", a.dataset},
            {"shape", shape},
            {"type", a.stored_type},
            {"order", name_of(a.order)}}},
          {"factors",
           {{"file", input.factors.file},
            {"kind", input.has_reflectors() ? "reflectors"
                     : input.has_q()        ? "qr"
                                            : "r"},
            {"pivoted", input.factors.p != nullptr},
            {"by_qrtool", input.factors.by_qrtool}}},
          {"criteria", result.options.criteria == Criteria::bar ? "bar" : "m-eps"},
          {"unit_roundoff", input.precision().u},
          {"check", to_json(result.verdict, result.check)},
          {"second_tries", tries_again},
          {result.options.all ? "all_matrices" : "first_failures",
           to_json(result.options.all ? result.all : result.verdict.failures(), input.has_q())},
          {"seconds",
           {{"read", result.stages.read},
            {"check", result.stages.work},
            {"total", result.total_seconds}}},
          {"exit", result.verdict.failed() > 0 ? 1 : 0}};
}

void print_notes(const VerifyResult& result, const MeasurePlan& plan) {
  print_source_details(result.input.a.source());
  print_message(fmt::format("{}: {}", escape(result.input.factors.file),
                            stored_shapes(result.input.factors)));
  print_message(plan.by_rows ? fmt::format("{} rows at a time, {} threads",
                                           format_count(plan.block_rows), plan.threads_per_matrix)
                             : fmt::format("{} matrices at a time, {} in flight, {} threads",
                                           format_count(plan.chunk_matrices), plan.buffers,
                                           plan.threads * plan.threads_per_matrix));
}

void measure_all(const MeasurePlan& plan, ReportFile* report, VerifyResult& result) {
  const VerifyOptions& o = result.options;
  const Source& a = result.input.a.source();
  const Precision precision = result.input.precision();
  const auto bars_of = [&](const Errors& errors) {
    return o.criteria == Criteria::m_eps ? m_eps_bars(a.m)
                                         : standard_bars(a.m, a.n, precision, errors);
  };
  Progress progress("verify", work_of(result.input, plan), o.progress_mode(), plan.unit());
  const auto collect = [&](std::span<const Measurement> measured) {
    for (const Measurement& m : measured) {
      result.verdict.add(m);
      if (o.all) result.all.push_back(m);
      const MatrixReport line = report_line(m, result.input.factors);
      if (report != nullptr) report->write({&line, 1});
    }
  };
  const Listener listener{.found = collect, .done = [&](index_t count) { progress.add(count); }};
  result.stages = measure(result.input, plan, bars_of, listener);
}

bool holds_factors(const std::string& file) {
  try {
    open_factors(file, Order::row);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<Reader> open_matrices(const VerifyOptions& o, const RecordedInput& recorded,
                                      const Limits& limits) {
  try {
    return open_recorded_input({.path = o.input,
                                .dataset = o.dataset,
                                .order = o.order,
                                .threads = limits.threads,
                                .memory_bytes = limits.host_bytes / 2,
                                .csv = o.csv,
                                .raw_values = o.raw_values,
                                .takes_complex = true},
                               recorded);
  } catch (const InputError& error) {
    if (!holds_factors(o.input) || holds_factors(o.factors)) throw;
    throw InputError(error.what(),
                     fmt::format("the matrices come first, then the factors: qrtool verify {} {}",
                                 escape(o.factors), escape(o.input)));
  }
}

/// Says where the matrices are others than those that the factors record.
void print_differences(const VerifyOptions& o, const Source& a, const RecordedInput& recorded) {
  const auto note = [&](std::string_view what, std::string_view made, std::string_view used) {
    // A format without datasets has none to name; the note on the file says enough.
    if (made.empty() || used.empty() || made == used || o.quiet) return;
    print_message(fmt::format("note: {} was made from {} {}, not from {}", escape(o.factors), what,
                              escape(made), escape(used)));
  };
  note("the file", recorded.file, a.file.substr(a.file.rfind('/') + 1));
  note("the dataset", recorded.dataset, a.dataset);
  if (recorded.order != Order::automatic)
    note("the order", name_of(recorded.order), name_of(a.order));
  if (!o.quiet) print_other_reading(o.factors, recorded, a);
}

/// Before any work: the report must replace neither the matrices nor the factors.
void check_report(const VerifyOptions& o) {
  refuse_same_file(o.input, o.report);
  check_report_name(o.factors, o.report);
  if (!o.force) refuse_existing(o.report);
}

/// Whether an output holds the solutions of `solve`.
bool holds_solutions(const std::string& file) {
  const auto has = [&](const char* name) {
    return std::filesystem::exists(factor_file(file, name));
  };
  if (has("X") && !has("R") && !has("V")) return true;
  return !read_recorded_input(file).file.empty() &&
         recorded_attributes(file, {"command"}).front() == "solve";
}

/// Solutions need A and B, or the table whose response OUT records.
std::optional<VerifyOptions> with_table(const VerifyOptions& o) {
  if (!holds_solutions(o.factors)) return std::nullopt;
  const std::string response = recorded_attributes(o.factors, {"response"}).front();
  const std::string name = escape(o.factors);
  if (response.empty())
    throw UsageError(fmt::format("{}: holds solutions, which are compared with A and b", name),
                     fmt::format("qrtool verify A B {}", name));
  VerifyOptions table = o;
  table.system.response = response;
  table.solutions = std::exchange(table.factors, "");
  return table;
}

/// An answer as JSON, and its exit code.
struct JsonAnswer {
  Json json;
  ExitCode code = ExitCode::good;
};

/// Verifies the factors of one dataset. `source` is one of the datasets that OUT records, or empty
/// where OUT holds the factors of one.
JsonAnswer verify_one(const VerifyOptions& o, const std::string& source) {
  const Stopwatch watch;
  const Limits limits = host_limits(o.memory_bytes, o.threads);
  const RecordedInput recorded = read_recorded_input(o.factors, source);
  const std::unique_ptr<Reader> a = open_matrices(o, recorded, limits);
  print_differences(o, a->source(), recorded);
  if (!o.quiet) print_source_notes(a->source());
  StoredFactors factors = open_factors(o.factors, a->source().order, limits.threads, source);
  const FactoredInput input{*a, factors};
  check_shapes(input);
  const MeasurePlan plan = plan_measurement(input, o.check, limits);

  VerifyResult result{.options = o,
                      .input = input,
                      .check = plan.check,
                      .verdict = Verdict(input.has_q()),
                      .all = {},
                      .stages = {}};
  if (o.verbose) print_notes(result, plan);
  std::unique_ptr<ReportFile> report;
  if (!o.report.empty()) report = create_report_file(o.report, o.force, report_columns({}));
  measure_all(plan, report.get(), result);
  a->require_unchanged();
  if (!o.quiet) note_rounded(a->source());
  for (const auto* factor : {&factors.q, &factors.r, &factors.p, &factors.v, &factors.tau})
    if (*factor) (*factor)->require_unchanged();
  if (report) report->commit();
  result.total_seconds = watch.seconds();
  if (result.verdict.matrices() == 0)
    print_message(fmt::format("{}: 0 matrices", escape(a->source().file)));
  const VerifyAnswer answer = answer_of(result);
  print_answer(o, answer);
  return {o.json ? to_json(result) : Json(), answer.exit_code()};
}

/// The datasets in an output of several that the options name; all where they name none.
std::vector<std::string> chosen_sources(const VerifyOptions& o,
                                        const std::vector<std::string>& sources) {
  std::vector<std::string> named = o.datasets;
  if (const Location in = split_location(o.input); !in.dataset.empty()) named.push_back(in.dataset);
  if (named.empty()) return sources;
  std::vector<std::string> chosen;
  for (const std::string& name : named) {
    const auto found = std::find_if(sources.begin(), sources.end(), [&](const std::string& each) {
      return name_in_output(each) == name_in_output(name);
    });
    if (found == sources.end())
      throw InputError(fmt::format("{}: holds no factors of {}", escape(o.factors), escape(name)),
                       fmt::format("it holds those of {}", escape(join(sources, ", "))));
    chosen.push_back(*found);
  }
  return chosen;
}

/// Verifies each dataset; the highest exit code counts.
ExitCode verify_several(const VerifyOptions& o, const std::vector<std::string>& sources) {
  if (!o.report.empty())
    throw UsageError("--report is for the factors of one dataset",
                     "name one with --dataset, or leave --report away");
  VerifyOptions each = o;
  each.input = split_location(o.input).file;
  each.dataset.clear();
  ExitCode worst = ExitCode::good;
  Json answers = Json::array();
  for (const std::string& source : sources) {
    JsonAnswer answer;
    const std::optional<Failure> failure = attempt([&] { answer = verify_one(each, source); });
    if (failure) {
      answer = {to_json(*failure), failure->code};
      answer.json["dataset"] = source;
    }
    worst = std::max(worst, answer.code);
    answers.push_back(std::move(answer.json));
  }
  if (o.json)
    write_json({{"schema", "qrtool.verify-several/1"},
                {"version", QRTOOL_VERSION},
                {"datasets", answers},
                {"exit", static_cast<int>(worst)}});
  return worst;
}

}  // namespace

ExitCode run_verify(const VerifyOptions& o) {
  require_own_report(o.solutions.empty() ? o.factors : o.solutions);
  if (!o.solutions.empty()) return verify_solutions(o);
  if (const auto table = with_table(o)) return verify_solutions(*table);
  if (!o.report.empty()) check_report(o);
  const std::vector<std::string> recorded = recorded_datasets(o.factors);
  if (!recorded.empty()) {
    const std::vector<std::string> chosen = chosen_sources(o, recorded);
    if (chosen.size() > 1) return verify_several(o, chosen);
    VerifyOptions one = o;
    one.input = split_location(o.input).file;
    one.dataset.clear();
    const JsonAnswer answer = verify_one(one, chosen.front());
    if (o.json) write_json(answer.json);
    return answer.code;
  }
  if (o.datasets.size() > 1)
    throw UsageError(fmt::format("{}: holds the factors of one dataset", escape(o.factors)),
                     "give one --dataset, or none");
  const JsonAnswer answer = verify_one(o, "");
  if (o.json) write_json(answer.json);
  return answer.code;
}

}  // namespace qrtool
