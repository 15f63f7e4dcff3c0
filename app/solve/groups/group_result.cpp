// SPDX-License-Identifier: Apache-2.0
// group_result.cpp: the result of `qrtool solve --by` in words and as JSON.
#include "app/solve/groups/group_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/process/console.hpp"
#include "core/join.hpp"
#include "core/text.hpp"
#include "io/file/text_output.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// "2026-01-05", or "2026-01-05, north" where there are several keys; with several responses
/// "2026-01-05: y2".
std::string name_of_solution(const GroupResult& result, index_t solution) {
  const index_t responses = result.input.system.count_responses();
  std::vector<std::string> keys;
  for (const std::string_view key : result.input.keys.keys_of(solution / responses))
    keys.push_back(key.empty() ? "''" : escape(key));
  const std::string group = join(keys, ", ");
  if (responses == 1) return group;
  const std::string& response =
      result.input.responses[static_cast<std::size_t>(solution % responses)];
  return group + ": " + escape(response);
}

std::string of_groups(index_t count, const char* one, const char* many) {
  return fmt::format("{} solution{} {}", format_count(count), count == 1 ? "" : "s",
                     count == 1 ? one : many);
}

/// What the reader of the output should know of groups that are not like the others.
std::string special_groups(const SolveOptions& o, const GroupResult& result) {
  const SolveVerdict& v = result.verdict;
  std::string text;
  if (const index_t empty = result.input.keys.with_empty_key(); empty > 0)
    text += fmt::format("{} group{} an empty key\n", format_count(empty),
                        empty == 1 ? " has" : "s have");
  if (result.singular > 0)
    text += fmt::format("{} singular (least rank {}): x is {}\n",
                        of_groups(result.singular, "is", "are"), result.least_rank,
                        o.basic ? "a basic solution" : "of least norm");
  if (const index_t few = v.count(Status::too_few_rows); few > 0)
    text += fmt::format("{} too few rows: x is NaN (first: {}){}\n", of_groups(few, "has", "have"),
                        name_of_solution(result, v.first(Status::too_few_rows)),
                        o.system.least_norm ? "" : "; --least-norm gives the x of least norm");
  if (v.second_tries() > 0)
    text += fmt::format("{} from a second try by reflectors\n",
                        of_groups(v.second_tries(), "comes", "come"));
  return text;
}

std::string written_file(const GroupResult& result) {
  const std::string& path = result.input.table.path;
  return is_standard_output(path) ? "the table to standard output" : escape(path);
}

std::string summary(const SolveOptions& o, const GroupResult& result) {
  const SolveVerdict& v = result.verdict;
  const KeyedInput& input = result.input;
  const index_t groups = input.keys.groups(), terms = input.system.terms();
  const index_t responses = input.system.count_responses();
  std::string text =
      fmt::format("solved {} group{} of {} rows{}, {} column{} (float64, cpu, {} thread{})\n",
                  format_count(groups), groups == 1 ? "" : "s", format_count(input.source.m),
                  responses == 1 ? "" : fmt::format(" for {} responses", responses), terms,
                  terms == 1 ? "" : "s", result.threads, result.threads == 1 ? "" : "s");
  text += special_groups(o, result);
  if (o.verbose)
    text += fmt::format("read {}, solve and check {}, sync {}; total {}\n",
                        format_seconds(result.read_seconds), format_seconds(result.solve_seconds),
                        format_seconds(result.sync_seconds), format_seconds(result.total_seconds));
  if (const SolveVerdict::Worst& worst = v.backward_error(); worst.solution >= 0)
    text += fmt::format("worst backward error {:.2g} ({:.2g} of its bar, group {})\n", worst.error,
                        worst.ratio, name_of_solution(result, worst.solution));
  const std::string verdict = v.failed() > 0 ? in_red(verdict_line(v)) : verdict_line(v);
  return text + fmt::format("{}; wrote {} ({} row{})\n", verdict, written_file(result),
                            format_count(v.solutions()), v.solutions() == 1 ? "" : "s");
}

Json to_json(const SolveOptions& o, const GroupResult& result) {
  const KeyedInput& input = result.input;
  const std::string& path = input.table.path;
  Json check = to_json(result.verdict);
  check["singular"] = result.singular;
  check.erase("matrices");
  check.erase("deficient");
  return {{"schema", "qrtool.solve-by/1"},
          {"version", QRTOOL_VERSION},
          {"input", {{"file", input.source.file}, {"rows", input.source.m}}},
          {"output", {{"files", Json::array({path})}, {"columns", columns_of(input.table)}}},
          {"keys", input.table.keys},
          {"terms", input.table.terms},
          {"responses", input.responses},
          {"groups", input.keys.groups()},
          {"empty_keys", input.keys.with_empty_key()},
          {"solution", o.basic ? "basic" : "least-norm"},
          {"seconds",
           {{"read", result.read_seconds},
            {"solve", result.solve_seconds},
            {"sync", result.sync_seconds},
            {"total", result.total_seconds}}},
          {"check", check},
          {"exit", result.verdict.failed() > 0 ? 1 : 0}};
}

void print_bad_groups(const GroupResult& result) {
  const SolveVerdict& v = result.verdict;
  const auto say = [&](Status status, const char* what) {
    if (v.count(status) == 0) return false;
    print_failure(fmt::format("{}: {} of {} solutions {} (first: {})",
                              escape(result.input.source.file), format_count(v.count(status)),
                              format_count(v.solutions()), what,
                              name_of_solution(result, v.first(status))));
    return true;
  };
  if (say(Status::non_finite, "are NaN: A or b holds NaN or Inf") &&
      !result.input.system.skips_missing)
    print_hint("--missing skip leaves out the rows with NaN");
  say(Status::r_overflows, "exceed the range of float64");
  say(Status::above_bar, "miss the bar; see their status");
}

}  // namespace

std::string_view status_word(const GroupLine& line, index_t terms) {
  const MatrixFindings& found = line.findings;
  const bool is_singular =
      line.report.status == Status::ok && found.rank >= 0 && found.rank < terms;
  if (is_singular) return "singular";
  return solution_status_names[static_cast<std::size_t>(line.report.status)];
}

void GroupResult::add(index_t number, const GroupLine& line) {
  verdict.add(number, {&line.report, 1});
  if (status_word(line, input.system.terms()) != "singular") return;
  least_rank =
      singular == 0 ? line.findings.rank : std::min<index_t>(least_rank, line.findings.rank);
  ++singular;
}

void print_group_result(const SolveOptions& o, const GroupResult& result) {
  print_bad_groups(result);
  if (o.json) {
    write_json(to_json(o, result));
  } else if (!o.quiet) {
    write_stdout(summary(o, result));
  }
}

}  // namespace qrtool
