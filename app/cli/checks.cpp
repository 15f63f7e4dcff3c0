// SPDX-License-Identifier: Apache-2.0
// checks.cpp: options that contradict each other, or that a command cannot have.
#include "app/cli/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "app/cli/describe_bench.hpp"
#include "app/run/files/into.hpp"
#include "core/error.hpp"
#include "core/join.hpp"
#include "core/matrix/matrices.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/text_output.hpp"
#include "io/open/formats.hpp"

namespace qrtool {
namespace {

void refuse_standard_output(const std::string& output) {
  if (output == "-" || output.starts_with("/dev/std") || output.starts_with("/dev/fd/") ||
      output.starts_with("/proc/self/fd/"))
    throw UsageError("OUT cannot be standard output", "name a file");
}

/// Refuses standard input as two files.
void refuse_two_standard_inputs(const std::vector<std::string>& inputs) {
  if (std::count(inputs.begin(), inputs.end(), "-") > 1)
    throw UsageError("A, B and the weights cannot be standard input together",
                     "name files for all but one of them");
}

/// Sets the name of standard output that its format needs.
template <class Options>
void choose_stream(Options& o) {
  if (o.format == StreamFormat::automatic) return;
  if (!is_standard_output(o.output))
    throw UsageError("--format is for OUT -, standard output",
                     "the ending of OUT says its format: .npy, .csv, ...");
  if (o.format == StreamFormat::npy) o.output = standard_output_npy;
}

void refuse_one_report_of_several(const std::vector<std::string>& datasets,
                                  const std::string& report) {
  if (datasets.size() > 1 && !report.empty())
    throw UsageError("--report is for one --dataset",
                     "leave it away: OUT holds a report of each dataset");
}

/// Refuses standard input among several inputs: an output cannot be named after it, and it can be
/// read only once.
void refuse_standard_input_among(const std::vector<std::string>& inputs) {
  if (std::find(inputs.begin(), inputs.end(), "-") != inputs.end())
    throw UsageError("--into names outputs as their inputs, and standard input has no name",
                     "name files");
}

/// Checks the choice among the inputs of --into.
void check_taken(const InputsOfRun& taken, const std::string& into, bool force) {
  if (into.empty() && (taken.skip_existing || taken.shares > 1))
    throw UsageError(fmt::format("{} is for several inputs, with --into",
                                 taken.skip_existing ? "--skip-existing" : "--shard"),
                     "give --into DIR in place of OUT");
  if (taken.skip_existing && force)
    throw UsageError("--skip-existing and --force contradict each other", "leave one of them away");
}

/// With --into every word is an IN.
void place_words_into(FactorOptions& o) {
  o.output.clear();
  refuse_standard_input_among(o.inputs);
  if (!o.datasets.empty())
    throw UsageError("--dataset is for one IN, and --into takes several",
                     "name each as FILE:/path/in/file");
  if (!o.report.empty())
    throw UsageError("--report is one file, and --into makes several outputs",
                     "leave it away: every output holds a report of its own");
}

void check(FactorOptions& o) {
  check_taken(o.taken, o.into, o.force);
  if (!o.into.empty()) place_words_into(o);
  choose_stream(o);
  refuse_one_report_of_several(o.datasets, o.report);
  if (!is_standard_output(o.output)) refuse_standard_output(o.output);
  if (is_standard_output(o.output) && o.mode != Mode::r)
    throw UsageError("OUT - is R alone, on standard output", "give --mode r, or name a file");
  if (o.pivot && o.mode == Mode::raw)
    throw UsageError("--pivot contradicts --mode raw: there is no V of Q with pivoted columns",
                     "use --mode reduced, complete or r");
  if (o.pivot && o.mode == Mode::r && o.sign == Sign::lapack)
    throw UsageError("--pivot --mode r has no Q, from which --sign lapack would be found",
                     "leave --sign away, or use --mode reduced");
  if (o.leverage && is_standard_output(o.output))
    throw UsageError("--leverage writes leverages beside R, and standard output takes R alone",
                     "name a file");
  if (o.pivot && is_standard_output(o.output))
    throw UsageError("--pivot writes R and P, and standard output takes R alone", "name a file");
  if (o.mode == Mode::raw && o.sign == Sign::positive)
    throw UsageError("--sign positive contradicts --mode raw, which has LAPACK's signs",
                     "leave --sign away");
  if (o.precision.is_mixed && o.arithmetic == Arithmetic::strict)
    throw UsageError("--precision mixed contradicts --arithmetic strict",
                     "mixed multiplies in half precision; leave one of them away");
  if (!o.scratch.empty()) require_scratch(o.scratch);
}
/// With --into: sorts the words into A and several B, or with --response into several tables.
void place_words_into(SolveOptions& o) {
  std::vector<std::string> read = o.inputs;
  read.push_back(o.system.weights);
  refuse_standard_input_among(read);
  o.b.clear();
  o.output.clear();
  if (!o.system.response.empty()) return;
  if (o.inputs.size() < 2)
    throw UsageError("solve: B is missing", "qrtool solve A B1 B2 --into DIR");
  o.inputs.erase(o.inputs.begin());
}

/// Decides which words are A, B and OUT. A table replaces A and B.
void place_words(SolveOptions& o) {
  const bool is_table = !o.system.response.empty();
  if (is_table && !o.output.empty())
    throw UsageError("--response LIST and a file B contradict each other",
                     "qrtool solve TABLE OUT --response LIST");
  if (o.b.empty() || (!is_table && o.output.empty()))
    throw UsageError(fmt::format("solve: {} is missing", o.b.empty() && !is_table ? "B" : "OUT"),
                     "qrtool solve A B OUT, or qrtool solve TABLE OUT --response LIST");
  if (is_table) o.output = std::exchange(o.b, "");
}

/// Errors: UsageError if a refused option is given beside the option `name`.
void refuse_with(std::string_view name,
                 std::span<const std::pair<bool, std::string_view>> refused) {
  for (const auto& [is_given, what] : refused)
    if (is_given)
      throw UsageError(fmt::format("{} contradicts {}", name, what), "leave one of them away");
}

/// Refuses options that do not exist for one regression per row. Errors: UsageError.
void check_window(const SolveOptions& o) {
  const WindowOptions& window = o.window;
  if (!window.are_given()) {
    if (window.least > 0) throw UsageError("--min-rows is for --window", "--window N");
    return;
  }
  if (window.least > window.rows && !window.expands)
    throw UsageError(fmt::format("--min-rows {} is more than the {} rows of --window", window.least,
                                 window.rows),
                     fmt::format("give {} or fewer", window.rows));
  const std::pair<bool, std::string_view> refused[] = {
      {o.leverage, "--leverage: a row would have one in each window"},
      {o.system.ridge.value_or(0) > 0, "--ridge: windows are plain least squares"},
      {o.system.least_norm, "--least-norm: fewer rows than --min-rows have no x"}};
  refuse_with("--window", refused);
}

/// Refuses options that do not exist for one regression per group or per row. Errors: UsageError.
void check_by(const SolveOptions& o) {
  const bool is_table = !o.by.empty(), has_groups = is_table || !o.groups.empty();
  if (is_table && !o.groups.empty())
    throw UsageError("--by is for a table, and --groups for A and B", "leave one of them away");
  if (is_table && o.system.response.empty())
    throw UsageError("--by is for a table, with --response",
                     "qrtool solve TABLE OUT.csv --response LIST --by COLUMN; A and B in other "
                     "files have --groups FILE:/path");
  if (!o.groups.empty() && !o.system.response.empty())
    throw UsageError("--groups is for A and B in files; a table has --by",
                     "--by COLUMN is one regression for each group of a table");
  const bool is_on_cpu = o.backend.name == "auto" || o.backend.name == "cpu";
  const std::pair<bool, std::string_view> refused[] = {
      {!o.into.empty(), "--into: it has one output"},
      {o.covariance, "--covariance: a group or window is one row of the output"},
      {has_groups && !o.system.polynomial.empty(), "--polynomial: A has the columns of the file"},
      {!o.groups.empty() && !o.system.a.empty(), "--a: A is one dataset"},
      {!o.groups.empty() && o.system.intercept, "--intercept: A has the columns of the file"},
      {o.confidence > 0, "--confidence: the output has x and se, from which the limits follow"},
      {o.precision == ElementType::float32, "--precision single: they are solved in double"},
      {is_table && o.system.rows != RowsOfB::automatic, "--rows: the column of --response is b"},
      {is_table && o.order != Order::automatic, "--order: a table is read line by line"},
      {is_table && o.raw_values, "--raw-values: it is for HDF5"},
      {!is_on_cpu, "--backend: they are solved on the CPU"},
      {!o.backend.device.empty(), "--device: they are solved on the CPU"},
      {!o.backend.variant.empty(), "--variant: their sizes decide"},
      {o.format == StreamFormat::npy, "--format npy: standard output is a table as text"}};
  const std::string_view name = is_table ? "--by" : has_groups ? "--groups" : "--window";
  refuse_with(name, refused);
}

/// Refuses options that do not exist for a state. Errors: UsageError.
void check_state(const SolveOptions& o) {
  if (!o.state) return;
  const std::pair<bool, std::string_view> refused[] = {
      {!o.by.empty() || !o.groups.empty(), "--by and --groups: their output is a table"},
      {o.window.are_given(), "--window: windows leave rows behind"},
      {o.leverage, "--leverage: further rows change it"},
      {o.system.ridge.value_or(0) > 0, "--ridge: its rows would be appended each time"}};
  refuse_with("--state", refused);
}

/// Checks what solving by groups writes, and where it may keep rows. Errors: UsageError,
/// OutputError.
void check_places_of_groups(const SolveOptions& o) {
  const bool has_groups = !o.by.empty() || !o.groups.empty();
  if (!has_groups && !o.window.are_given() && !o.scratch.empty())
    throw UsageError("--scratch is for --by, --groups and --window", "leave it away");
  if (!o.scratch.empty()) require_scratch(o.scratch);
  if (has_groups && o.output != standard_output_text && !has_text_ending(o.output))
    throw UsageError(fmt::format("{} writes a table as text, which '{}' is not",
                                 o.by.empty() ? "--groups" : "--by", escape(o.output)),
                     "let the name end in .csv, .tsv or .txt, or give - for standard output");
}

void check(SolveOptions& o) {
  const SystemOptions& s = o.system;
  check_window(o);
  if (!o.by.empty() || !o.groups.empty() || o.window.are_given()) check_by(o);
  check_taken(o.taken, o.into, o.force);
  o.into.empty() ? place_words(o) : place_words_into(o);
  check_places_of_groups(o);
  check_state(o);
  if (o.basic && s.least_norm)
    throw UsageError("--basic and --least-norm contradict each other", "leave one of them away");
  if (o.covariance && o.no_se)
    throw UsageError("--covariance and --no-se contradict each other", "leave one of them away");
  if (o.covariance && s.ridge.value_or(0) > 0)
    throw UsageError("--covariance contradicts --ridge, whose x is biased",
                     "leave one of them away");
  choose_stream(o);
  if (!is_standard_output(o.output)) refuse_standard_output(o.output);
  if (o.covariance && is_standard_output(o.output))
    throw UsageError("--covariance and OUT - contradict each other: standard output takes x alone",
                     "name a file");
  if ((o.residuals || o.fitted || o.leverage) && is_standard_output(o.output))
    throw UsageError(
        fmt::format("{} and OUT - contradict each other: standard output takes x alone",
                    o.residuals ? "--residuals"
                    : o.fitted  ? "--fitted"
                                : "--leverage"),
        "name a file");
  if (o.confidence > 0 && s.response.empty())
    throw UsageError("--confidence is for the coefficients of a table, with --response",
                     "leave it away");
  if (o.confidence > 0 && (o.no_se || s.ridge.value_or(0) > 0))
    throw UsageError("--confidence needs standard errors, which --no-se and --ridge leave out",
                     "leave one of them away");
  refuse_two_standard_inputs({o.a, o.b, s.weights, o.groups});
}
void check(AppendOptions& o) {
  if (o.b.empty())
    throw UsageError("append: OUT is missing", "qrtool append STATE NEW OUT, or STATE A B OUT");
  if (o.output.empty()) o.output = std::exchange(o.b, "");
  refuse_standard_output(o.output);
  refuse_two_standard_inputs({o.before, o.a, o.b, o.system.weights});
}
void check(ApplyOptions& o) {
  choose_stream(o);
  if (!is_standard_output(o.output)) refuse_standard_output(o.output);
}
void check(VerifyOptions& o) {
  const bool is_table = !o.system.response.empty();
  if (is_table && !o.solutions.empty())
    throw UsageError("--response LIST and a file B contradict each other",
                     "qrtool verify TABLE X --response LIST");
  if (is_table) o.solutions = std::exchange(o.factors, "");
  if (!o.solutions.empty() && !o.datasets.empty())
    throw UsageError("--dataset is for the factors of one file",
                     "name A and B as FILE:/path/in/file");
  refuse_one_report_of_several(o.datasets, o.report);
  if (is_standard_output(o.factors))
    throw UsageError("OUT holds the factors and cannot be standard input", "name a file");
}
void check(const DevicesOptions& o) {
  if (o.timings && o.forget)
    throw UsageError("--timings shows what --forget removes", "give one of them");
  if (o.builds && (o.timings || o.forget))
    throw UsageError("--build contradicts --timings and --forget", "give one of them");
  if (!o.builds && !o.build_file.empty())
    throw UsageError(fmt::format("devices: '{}' is for --build", escape(o.build_file)),
                     "add --build, or leave the file away");
  if (o.has_shape && !o.build_file.empty())
    throw UsageError("--shape and a file contradict each other", "give one of them");
  if (is_standard_input(o.build_file))
    throw UsageError("--build reads the shapes of a file", "name a file");
}
void check(const InfoOptions&) {}
void check(const GenerateOptions& o) {
  refuse_standard_output(o.output);
  if (o.m < 0)
    throw UsageError("generate: --shape is missing",
                     "for example --shape 1000x64x32: 1000 matrices of 64 rows and 32 columns");
  if (o.cond && !uses_cond(o.kind)) {
    std::vector<std::string_view> names;
    for (const MatrixKind& kind : matrix_kinds())
      if (kind.uses_cond) names.push_back(kind.name);
    throw UsageError(fmt::format("--cond changes nothing in --kind {}", o.kind),
                     fmt::format("it is for the kinds {}", join(names, ", ")));
  }
  if (o.special && o.is_complex)
    throw UsageError("--special is for real matrices", "leave --special or --complex away");
  if (o.special && o.kind != "haar") throw UsageError("--special is for --kind haar alone");
  if (o.special && o.m != o.n)
    throw UsageError(fmt::format("--special is for square matrices, not {}x{}", o.m, o.n));
  if (o.kind == "haar" && o.m < o.n)
    throw UsageError(fmt::format(
        "--kind haar: {}x{} has more columns than rows; they cannot be orthonormal", o.m, o.n));
}

/// Return the files that a command writes under names that the user gave.
std::vector<std::string> outputs_into(const std::string& folder,
                                      const std::vector<std::string>& inputs) {
  std::vector<std::string> outputs;
  for (const std::string& input : inputs) outputs.push_back(output_into(folder, input));
  return outputs;
}
std::vector<std::string> outputs_of(const FactorOptions& o) {
  if (!o.into.empty()) return outputs_into(o.into, o.inputs);
  return {o.output, o.report};
}
std::vector<std::string> outputs_of(const SolveOptions& o) {
  if (!o.into.empty()) return outputs_into(o.into, o.inputs);
  return {o.output};
}
std::vector<std::string> outputs_of(const ApplyOptions& o) { return {o.output}; }
std::vector<std::string> outputs_of(const VerifyOptions& o) { return {o.report}; }
std::vector<std::string> outputs_of(const InfoOptions& o) { return {o.plot}; }
std::vector<std::string> outputs_of(const GenerateOptions& o) { return {o.output}; }
std::vector<std::string> outputs_of(const BenchOptions& o) {
  return {o.export_json, o.export_csv, o.export_markdown, o.export_html, o.plot, o.rates};
}
std::vector<std::string> outputs_of(const DevicesOptions&) { return {}; }

/// The log is there before an output is, which would replace it.
void refuse_log_among(const std::vector<std::string>& outputs, const std::string& log) {
  const auto normal = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal();
  };
  if (log.empty()) return;
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    const std::vector<std::string> files = format_of_output(output).files_of_output(output);
    const auto is_log = [&](const std::string& file) { return normal(file) == normal(log); };
    if (is_log(output) || std::any_of(files.begin(), files.end(), is_log))
      throw UsageError(fmt::format("--log '{}' would be an output of the run, too", escape(log)),
                       "give the log a name of its own");
  }
}

}  // namespace

template <class Options>
void check_options(Options& options) {
  check(options);
  refuse_log_among(outputs_of(options), options.log);
}

template void check_options(FactorOptions&);
template void check_options(SolveOptions&);
template void check_options(AppendOptions&);
template void check_options(ApplyOptions&);
template void check_options(VerifyOptions&);
template void check_options(GenerateOptions&);
template void check_options(InfoOptions&);
template void check_options(DevicesOptions&);
template void check_options(BenchOptions&);

}  // namespace qrtool
