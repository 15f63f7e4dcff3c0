// SPDX-License-Identifier: Apache-2.0
// group_result.cpp: the result of `qrtool solve --by` in words and as JSON.
#include "app/solve/groups/group_result.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/solve/solve_result.hpp"
#include "core/join.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// Returns "2026-01-05", or "2026-01-05, north" if there are several keys; with several responses
/// "2026-01-05: y2". A window has the number of its last row instead of keys.
std::string name_of_solution(const KeyedInput& input, index_t solution) {
  const index_t responses = input.system.count_responses();
  const std::string response =
      escape(input.responses[static_cast<std::size_t>(solution % responses)]);
  if (input.system.window.are_given())
    return fmt::format("{}{}", solution / responses, responses == 1 ? "" : ": " + response);
  std::vector<std::string> keys;
  for (const std::string_view key : input.keys.keys_of(solution / responses))
    keys.push_back(key.empty() ? "''" : escape(key));
  const std::string group = join(keys, ", ");
  return responses == 1 ? group : group + ": " + response;
}

/// Returns "windows of 60 rows in 3 groups of 1,000 rows", or "3 groups of 1,000 rows".
std::string solved(const KeyedInput& input) {
  const index_t groups = input.keys.groups(), m = input.source.m;
  const std::string of_groups = fmt::format("{} group{} of {} rows", format_count(groups),
                                            groups == 1 ? "" : "s", format_count(m));
  if (!input.system.window.are_given()) return of_groups;
  const WindowOptions& window = input.system.window;
  return fmt::format("{} in {}",
                     window.expands ? "expanding windows"
                                    : fmt::format("windows of {} rows", format_count(window.rows)),
                     input.table.keys.empty() ? format_count(m) + " rows" : of_groups);
}

std::string summary(const SolveOptions& o, const GroupResult& result) {
  const Verdict& v = result.verdict;
  const KeyedInput& input = result.input;
  const index_t terms = input.system.terms(), responses = input.system.count_responses();
  std::string text =
      fmt::format("solved {}{}, {} column{} (float64, cpu, {} thread{})\n", solved(input),
                  responses == 1 ? "" : fmt::format(" for {} responses", responses), terms,
                  terms == 1 ? "" : "s", result.threads, result.threads == 1 ? "" : "s");
  if (const index_t empty = input.keys.with_empty_key(); empty > 0)
    text += fmt::format("{} group{} an empty key\n", format_count(empty),
                        empty == 1 ? " has" : "s have");
  text += choice_text(o, v, "solutions");
  if (o.verbose) text += text_of(result.seconds) + "\n";
  if (const std::string worst = worst_line(v); !worst.empty()) text += worst + "\n";
  if (result.off_leverages > 0)
    text += fmt::format("the leverages of {} group{} are above their bar\n",
                        format_count(result.off_leverages), result.off_leverages == 1 ? "" : "s");
  return text + fmt::format("{}; wrote {} ({} row{})\n", verdict_line(v),
                            written_files(result.files, "the table"), format_count(v.all()),
                            v.all() == 1 ? "" : "s");
}

/// Returns the document, of schema qrtool.solve-by/1, or of qrtool.solve-window/1.
Json to_json(const SolveOptions& o, const GroupResult& result) {
  const KeyedInput& input = result.input;
  Json check = to_json(result.verdict);
  check.update({{"second_tries", result.verdict.second_tries},
                {"singular", result.verdict.ranks.deficient}});
  Json document = {{"schema", "qrtool.solve-by/1"},
                   {"version", QRTOOL_VERSION},
                   {"input", {{"file", input.source.file}, {"rows", input.source.m}}},
                   {"output", {{"files", result.files}, {"columns", columns_of(input.table)}}},
                   {"keys", input.table.keys},
                   {"terms", input.table.terms},
                   {"responses", input.responses},
                   {"groups", input.keys.groups()},
                   {"empty_keys", input.keys.with_empty_key()},
                   {"solution", o.basic ? "basic" : "least-norm"},
                   {"seconds", to_json(result.seconds)},
                   {"check", check},
                   {"exit", result.has_failed() ? 1 : 0}};
  if (!input.system.window.are_given()) return document;
  document["schema"] = "qrtool.solve-window/1";
  const WindowOptions& window = input.system.window;
  document["window"] = {{"rows", nullptr}, {"min_rows", window.least}};
  if (!window.expands) document["window"]["rows"] = window.rows;
  if (!is_group_table(o.output)) document["output"]["columns"] = nullptr;
  return document;
}

}  // namespace

std::string_view status_word(const GroupLine& line, index_t terms) {
  const MatrixFindings& found = line.findings;
  const bool is_singular =
      line.report.status == Status::ok && found.rank >= 0 && found.rank < terms;
  if (is_singular) return "singular";
  return solution_status_names[static_cast<std::size_t>(line.report.status)];
}

GroupResult::GroupResult(const KeyedInput& of, int of_threads)
    : input(of),
      verdict(of.system.window.are_given() ? subject_of_windows : subject_of_groups,
              [&of](index_t solution) { return name_of_solution(of, solution); }),
      threads(of_threads) {}

void GroupResult::add(index_t number, const GroupLine& line) {
  const Status status = line.report.status;
  verdict.add(judged(number, line.report));
  verdict.second_tries += line.report.tries > 1;
  verdict.ranks.include(number, status == Status::ok ? line.findings.rank : -1, not_measured,
                        input.system.terms());
}

Outcome outcome_of(const SolveOptions& o, const GroupResult& result) {
  Outcome outcome{.code = result.has_failed() ? ExitCode::answer_is_no : ExitCode::good,
                  .complaints = complaints_of(o, result.verdict, result.input.source.file,
                                              ElementType::float64)};
  if (o.json)
    outcome.json = to_json(o, result);
  else
    outcome.text = summary(o, result);
  return outcome;
}

}  // namespace qrtool
