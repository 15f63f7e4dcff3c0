// SPDX-License-Identifier: Apache-2.0
// apply.cpp: `qrtool apply` multiplies right sides by stored factors, checks every product, commits
// the output and says what came of it.
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/apply/apply_run.hpp"
#include "app/commands/commands.hpp"
#include "app/process/console.hpp"
#include "app/process/process_clock.hpp"
#include "app/process/progress.hpp"
#include "app/process/signals.hpp"
#include "app/run/backends/run_cost.hpp"
#include "app/run/files/outputs.hpp"
#include "app/run/files/source_notes.hpp"
#include "app/run/verdict/outcome.hpp"
#include "app/run/verdict/verdict_text.hpp"
#include "core/error.hpp"
#include "core/join.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/file/text_output.hpp"
#include "io/open/formats.hpp"
#include "io/open/output.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// Refuses an OUT that is one of the files of FACTORS, or B. Errors: UsageError.
void refuse_inputs_as_output(const ApplyOptions& o) {
  refuse_same_file(o.b, o.output);
  refuse_same_file(o.factors, o.output);
  if (is_standard_output(o.output)) return;
  for (const std::string& file : format_of_output(o.factors).files_of_output(o.factors))
    if (std::filesystem::exists(file)) refuse_same_file(file, o.output);
}

std::vector<NumberDataset> columns_of(const ApplyInputs& inputs) {
  const ApplyProblem& p = inputs.problem;
  const Dims& dims = inputs.sides.solution_dims;
  constexpr const char* formulas[] = {
      "||Q'(b - Q x)|| / ||b||, or ||b - Q x|| / ||b|| for a square Q; if larger | ||b||^2 - "
      "||x||^2 - ||b - Q x||^2 | / ||b||^2",
      "||b - Q'x|| / ||b||, or | ||x||^2 - ||b||^2 | / ||b||^2 if larger",
      "||b - R P'x|| / (||R|| ||x||)", "||P'b - R'x|| / (||R|| ||x||)"};
  return {{.name = "backward_error",
           .dims = dims,
           .description = "of x as it is stored, by the inverse product in float64",
           .formula = formulas[static_cast<std::size_t>(p.product)],
           .bar_formula = uses_q(p.product) ? "u min(max(m, 16), 30 min(m, n)), A m x n"
                                            : "u max(n, 16), R n x n",
           .bar = standard_bars(p.m, p.n, p.precision, {}).residual},
          {.name = "status",
           .kind = NumberKind::status,
           .dims = dims,
           .description = "0 ok, 1 above the bar, 2 the factors or b not finite, 3 R has a zero on "
                          "its diagonal, or x exceeds its type",
           .formula = "ok where backward_error is within the bar",
           .unit = "enumeration"},
          {.name = "tries",
           .kind = NumberKind::byte,
           .dims = dims,
           .description = "2 where reflectors were applied again, in a wider type",
           .formula = "number of tries"}};
}

OutputSpec output_spec(const ApplyOptions& o, const ApplyInputs& inputs, int threads) {
  const auto name = [](const std::string& file) { return file.substr(file.rfind('/') + 1); };
  const Source& b = inputs.b->source();
  OutputSpec spec{
      .path = o.output,
      .force = o.force,
      .leading = {},
      .datasets = {array_dataset("X", inputs.type, inputs.sides.x_dims, inputs.sides.as_rows)},
      .complex_form = b.complex_form,
      .attributes = {{"format", "qrtool"},
                     {"format_version", "1.2"},
                     {"qrtool_version", QRTOOL_VERSION},
                     {"command", "apply"},
                     {"source_file", name(inputs.factors.file)},
                     {"right_side_file", name(b.file)},
                     {"right_side_dataset", b.dataset},
                     {"with", std::string(name_of(o.product))},
                     {"rows", std::string(name_of(inputs.sides.rows))},
                     {"precision", inputs.problem.is_single ? "single" : "double"},
                     {"backend", "cpu"},
                     {"eps", inputs.problem.precision.u}},
      .threads = threads};
  if (!is_standard_output(o.output)) spec.numbers = columns_of(inputs);
  return spec;
}

/// Adds the reports of right sides first, ... to the output and to the verdict.
void keep_reports(std::span<const SideReport> reports, index_t first, const OutputSpec& spec,
                  Writer& output, Verdict& verdict) {
  std::vector<double> values(reports.size());
  for (const NumberDataset& column : spec.numbers) {
    std::transform(reports.begin(), reports.end(), values.begin(), [&](const SideReport& each) {
      return column.name == "backward_error" ? each.error
             : column.name == "status"       ? static_cast<double>(each.status)
                                             : each.tries;
    });
    output.write_numbers(column.name, first, values);
  }
  for (const SideReport& each : reports) {
    verdict.second_tries += each.tries > 1;
    verdict.add({.at = first, .status = each.status, .errors = {{{each.error, each.bar, first}}}});
    ++first;
  }
}

Outcome outcome_of(const ApplyOptions& o, const ApplyInputs& inputs, const Verdict& verdict,
                   std::span<const std::string> files) {
  const Source& factor = inputs.factor().source();
  const Dims& x = inputs.sides.x_dims;
  const std::string type(name_of(real_of(inputs.type)));
  Outcome outcome{
      .code = verdict.failed() > 0 ? ExitCode::answer_is_no : ExitCode::good,
      .complaints = complaints_of(
          verdict, inputs.b->source().file,
          {{Status::non_finite, "is NaN: the factors or B hold NaN or Inf",
            "are NaN: the factors or B hold NaN or Inf"},
           {Status::r_overflows,
            "is NaN or infinite: R has a zero on its diagonal, or x exceeds " + type,
            "are NaN or infinite: R has a zero on its diagonal, or x exceeds " + type, "",
            uses_q(o.product) ? "" : "qrtool solve A B OUT takes dependent columns of A"},
           {Status::above_bar, "misses the bar", "miss the bar", "; see its status",
            "qrtool verify shows whether the factors are good"}})};
  outcome.text =
      fmt::format("applied {} of {} to {} right side{} ({})\n", name_of(o.product),
                  format_shape(factor.leading, factor.m, factor.n), format_count(verdict.all()),
                  verdict.all() == 1 ? "" : "s", name_of(inputs.type));
  if (const std::string worst = worst_line(verdict); !worst.empty()) outcome.text += worst + "\n";
  outcome.text += fmt::format("{}{}; wrote {} (X {})\n", second_try_line(verdict),
                              verdict_line(verdict), written_files(files, "X"), join(x, "x"));
  return outcome;
}

Json to_json(const ApplyOptions& o, const ApplyInputs& inputs, const Verdict& verdict,
             std::span<const std::string> files) {
  Json check = to_json(verdict);
  check["second_tries"] = verdict.second_tries;
  return {{"schema", "qrtool.apply/1"},
          {"version", QRTOOL_VERSION},
          {"factors",
           {{"file", inputs.factors.file},
            {"kind", inputs.problem.has_reflectors ? "reflectors"
                     : uses_q(o.product)           ? "q"
                                                   : "r"},
            {"shape", dims_of(inputs.factor().source())},
            {"pivoted", inputs.readers()[3] != nullptr}}},
          {"b", input_json(inputs.b->source())},
          {"with", name_of(o.product)},
          {"rows", name_of(inputs.sides.rows)},
          {"output", {{"files", files}, {"x_shape", inputs.sides.x_dims}}},
          {"type", name_of(inputs.type)},
          {"check", check}};
}

/// Prints what a run would need.
void print_cost(const ApplyOptions& o, const ApplyInputs& inputs, const ApplyPlan& plan,
                const Limits& limits, double start) {
  RunCost cost{.input = o.factors + " and " + o.b, .plan = {}};
  cost.memory_bytes = plan.host_bytes + limits.file_bytes;
  cost.memory_limit_bytes = limits.host_bytes + limits.file_bytes;
  cost.chunks = plan.block_rows > 0 ? 1 : (plan.groups - 1) / plan.chunk_groups + 1;
  cost.start_seconds = start;
  cost.compute_seconds = std::numeric_limits<double>::quiet_NaN();
  for (Reader* reader : inputs.readers()) {
    if (reader == nullptr) continue;
    const Source& s = reader->source();
    cost.input_bytes += static_cast<std::uint64_t>(s.count() * s.m * s.n) * size_of(s.type);
    cost.read_seconds += seconds_to_read(*reader, s.type, plan.block_rows > 0 ? 2 : 1);
  }
  cost.plan = fmt::format(
      "problem   {} to {} right sides\nchunks    {}\nmemory    {} of {} on the host\n",
      name_of(o.product), format_count(count_of(inputs.sides.solution_dims)),
      plan.block_rows > 0
          ? fmt::format("{} rows of Q at a time, twice", format_count(plan.block_rows))
          : fmt::format("{} right sides at a time, {} in flight",
                        format_count(plan.chunk_groups * plan.group_size), plan.buffers),
      format_bytes(cost.memory_bytes), format_bytes(cost.memory_limit_bytes));
  enter_output(output_spec(o, inputs, limits.threads), cost);
  print_costs(o, "apply", o.output, {cost});
}

}  // namespace

ExitCode run_apply(const ApplyOptions& o) {
  const Stopwatch watch;
  refuse_inputs_as_output(o);
  check_output_names(o.output, /*report=*/"", o.force);
  Limits limits = host_limits(o.memory_bytes, o.threads);
  const ApplyInputs inputs = open_apply_inputs(o, limits);
  if (!o.quiet) print_source_notes(inputs.b->source(), /*with_order=*/false);
  OutputSpec spec = output_spec(o, inputs, limits.threads);
  std::size_t file_bytes = output_workspace_bytes(spec);
  for (const Reader* reader : inputs.readers())
    if (reader != nullptr) file_bytes += reader->workspace_bytes(ElementType::float64);
  limits = limits_beside(inputs.factors.file, file_bytes, limits);
  const ApplyPlan plan = plan_apply(inputs, limits);
  if (o.dry_run) {
    print_cost(o, inputs, plan, limits, watch.seconds());
    return ExitCode::good;
  }
  Outputs outputs = Outputs::create(spec, /*report=*/"");
  const Dims& dims = inputs.sides.solution_dims;
  Verdict verdict(subject_of_solve, named_by(dims));
  StageSeconds seconds;
  {
    Progress progress("apply", count_of(dims), o.progress_mode(), "right sides");
    seconds = run_apply(inputs, plan, limits.threads, *outputs.factors,
                        [&](index_t first, std::span<const SideReport> reports) {
                          keep_reports(reports, first, spec, *outputs.factors, verdict);
                          progress.add(std::ssize(reports));
                        });
  }
  for (const Reader* reader : inputs.readers())
    if (reader != nullptr) reader->require_unchanged();
  const std::vector<std::string> files = outputs.factors->files();
  outputs.commit();
  if (!o.quiet) note_rounded(inputs.b->source());
  Outcome outcome = outcome_of(o, inputs, verdict, files);
  if (o.json) {
    outcome.json = to_json(o, inputs, verdict, files);
    outcome.json["seconds"] = {{"read", seconds.read},
                               {"apply", seconds.work},
                               {"write", seconds.write},
                               {"total", watch.seconds()}};
    outcome.json["exit"] = static_cast<int>(outcome.code);
  }
  return print(o, outcome);
}

}  // namespace qrtool
