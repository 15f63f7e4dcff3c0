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
#include "app/run/files/source_notes.hpp"
#include "app/run/measure/measure.hpp"
#include "app/run/verdict/outcome.hpp"
#include "app/run/verdict/verdict_text.hpp"
#include "app/solve/solve_columns.hpp"
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

struct VerifyResult {
  const VerifyOptions& options;
  const FactoredInput& input;
  Check check;
  Verdict verdict;
  StageSeconds stages = {};
  double total_seconds = 0;
};

/// Returns how many tries OUT records for matrix b, or 0 if it records none.
std::uint8_t recorded_tries(const StoredFactors& factors, index_t b) {
  return std::cmp_less(b, factors.tries.size()) ? factors.tries[static_cast<std::size_t>(b)] : 0;
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

/// Returns how the errors were measured, and the worst ones, in lines.
std::string head_of(const VerifyResult& result) {
  std::string text;
  const FactoredInput& input = result.input;
  if (input.factors.p) text += "pivoted: A[:, P] is compared with the factors\n";
  if (!input.has_q()) text += r_alone_line();
  if (const std::string worst = worst_line(result.verdict); !worst.empty())
    text += fmt::format("{}{}\n", worst,
                        result.options.criteria == Criteria::m_eps
                            ? "; bars m 2^-23"
                            : fmt::format("; u = {}", unit_text(input.precision())));
  if (result.check == Check::probe) text += estimates_line;
  return text;
}

Json to_json(const VerifyResult& result) {
  const FactoredInput& input = result.input;
  const Source& a = input.a.source();
  const bool is_recorded = !input.factors.tries.empty();
  Json of_a = input_json(a), check{{"kind", name_of(result.check)}};
  of_a["order"] = name_of(a.order);
  check.update(to_json(result.verdict));
  return {{"schema", "qrtool.verify/1"},
          {"version", QRTOOL_VERSION},
          {"input", of_a},
          {"factors",
           {{"file", input.factors.file},
            {"kind", input.has_reflectors() ? "reflectors"
                     : input.has_q()        ? "qr"
                                            : "r"},
            {"pivoted", input.factors.p != nullptr},
            {"by_qrtool", input.factors.by_qrtool}}},
          {"criteria", result.options.criteria == Criteria::bar ? "bar" : "m-eps"},
          {"unit_roundoff", input.precision().u},
          {"check", check},
          {"second_tries", is_recorded ? Json(result.verdict.second_tries) : Json()},
          {result.options.all ? "all_matrices" : "first_failures", listed_json(result.verdict)},
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
      result.verdict.add(judged(m, result.input.has_q()));
      const MatrixReport line = report_line(m, result.input.factors);
      result.verdict.second_tries += line.tries > 1;
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
                                .takes_complex = true,
                                .has_ones = o.system.intercept,
                                .skips_missing = o.system.skips_missing.value_or(false)},
                               recorded);
  } catch (const InputError& error) {
    if (!holds_factors(o.input) || holds_factors(o.factors)) throw;
    throw InputError(error.what(),
                     fmt::format("the matrices come first, then the factors: qrtool verify {} {}",
                                 escape(o.factors), escape(o.input)));
  }
}

/// Prints a note if the matrices are others than the factors record.
void print_differences(const VerifyOptions& o, const Source& a, const RecordedInput& recorded) {
  const auto note = [&](std::string_view what, std::string_view made, std::string_view used) {
    // A format without datasets has no name of one; the note on the file says enough.
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

/// Refuses an output of `apply`, and one of `append` beside the new rows alone. Errors: UsageError.
void refuse_others(const std::string& file, const std::string& input) {
  if (read_recorded_input(file).file.empty()) return;
  const std::vector<std::string> record =
      recorded_attributes(file, {"command", appended_to_name, "source_file"});
  if (record[0] == "apply")
    throw UsageError(
        fmt::format("{}: holds products, which qrtool apply has checked", escape(file)),
        "verify takes an output of factor or solve, and before it what it is of");
  if (!record[1].empty() && without_directory(split_location(input).file) == record[2])
    throw UsageError(fmt::format("{}: goes on from {}, and rows before were not read", escape(file),
                                 escape(record[1])),
                     "give all rows, in one file of another name");
}

/// If OUT holds solutions, returns the options completed for their check: with A and B, or with the
/// table and the response that OUT records. Returns nothing if OUT holds factors.
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

/// Verifies the factors of one dataset. `source` is one of the datasets that OUT records, or empty
/// if OUT holds the factors of one.
Outcome verify_one(const VerifyOptions& o, const std::string& source) {
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
                      .verdict = {subject_of_factors, named_by(a->source().leading),
                                  o.all ? std::optional<std::size_t>() : Verdict::most_failures}};
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
  if (result.verdict.all() == 0)
    print_message(fmt::format("{}: 0 matrices", escape(a->source().file)));
  Outcome outcome = answer_of(o, result.verdict, head_of(result), factors.file);
  if (o.json) outcome.json = to_json(result);
  return outcome;
}

/// Returns the datasets in an output of several that the options name, or all if they name none.
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

/// Verifies each dataset. The highest exit code counts.
ExitCode verify_several(const VerifyOptions& o, const std::vector<std::string>& sources) {
  if (!o.report.empty())
    throw UsageError("--report is for the factors of one dataset",
                     "name one with --dataset, or leave --report away");
  VerifyOptions each = o;
  each.input = split_location(o.input).file;
  each.dataset.clear();
  std::vector<Outcome> outcomes;
  for (const std::string& source : sources) {
    outcomes.push_back(attempt(source, [&] { return verify_one(each, source); }));
    print(o, outcomes.back(), /*is_part=*/true);
  }
  return finish_several(o, "qrtool.verify-several/1", outcomes);
}

}  // namespace

ExitCode run_verify(const VerifyOptions& o) {
  require_own_report(o.solutions.empty() ? o.factors : o.solutions);
  refuse_others(o.solutions.empty() ? o.factors : o.solutions, o.input);
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
    return print(o, verify_one(one, chosen.front()));
  }
  if (o.datasets.size() > 1)
    throw UsageError(fmt::format("{}: holds the factors of one dataset", escape(o.factors)),
                     "give one --dataset, or none");
  return print(o, verify_one(o, ""));
}

}  // namespace qrtool
