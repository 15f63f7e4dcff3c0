// SPDX-License-Identifier: Apache-2.0
// outcome.cpp: prints outcomes, and keeps failures until all datasets have had their turn.
#include "app/run/verdict/outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/process/console.hpp"
#include "app/run/verdict/verdict_text.hpp"
#include "core/join.hpp"
#include "core/text.hpp"
#include "io/file/text_output.hpp"

namespace qrtool {

using Json = nlohmann::ordered_json;

void print_complaints(const Outcome& outcome) {
  for (const auto& [message, hint] : outcome.complaints) {
    print_failure(message);
    print_hint(hint);
  }
}

ExitCode print(const PrintOptions& o, const Outcome& outcome, bool is_part) {
  print_complaints(outcome);
  if (o.json && !is_part) write_json(outcome.json);
  if (!o.json && !o.quiet) write_stdout(outcome.text);
  return outcome.code;
}

Outcome attempt(const std::string& dataset, const std::function<Outcome()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.code() == ExitCode::output || error.code() == ExitCode::internal) throw;
    print_failure(error.what());
    print_hint(error.hint());
    Outcome failed{.code = error.code(),
                   .json = to_json(Failure{error.code(), error.what(), error.hint()})};
    failed.json["dataset"] = dataset;
    return failed;
  }
}

ExitCode finish_several(const PrintOptions& o, std::string_view schema,
                        std::span<const Outcome> outcomes) {
  ExitCode worst = ExitCode::good;
  Json documents = Json::array();
  for (const Outcome& outcome : outcomes) {
    worst = std::max(worst, outcome.code);
    documents.push_back(outcome.json);
  }
  if (o.json)
    write_json({{"schema", schema},
                {"version", QRTOOL_VERSION},
                {"datasets", documents},
                {"exit", static_cast<int>(worst)}});
  return worst;
}

Json to_json(const Failure& failure) {
  return {{"schema", "qrtool.error/1"},
          {"version", QRTOOL_VERSION},
          {"message", failure.what},
          {"hint", failure.hint.empty() ? Json() : Json(failure.hint)},
          {"exit", static_cast<int>(failure.code)}};
}

std::vector<Complaint> complaints_of(const Verdict& verdict, const std::string& file,
                                     std::initializer_list<Fault> faults) {
  std::vector<Complaint> complaints;
  for (const Fault& fault : faults) {
    const index_t count = verdict.count(fault.status);
    if (count == 0) continue;
    complaints.push_back(
        {fmt::format("{}: {} of {} {} (first: {}){}", escape(file), format_count(count),
                     counted(verdict.all(), verdict.subject()),
                     count == 1 ? fault.of_one : fault.of_more,
                     verdict.name_of(verdict.first(fault.status)), fault.consequence),
         fault.hint});
  }
  return complaints;
}

void complain_of_leverages(const std::string& file, index_t wrong, std::vector<Complaint>& all) {
  if (wrong > 0)
    all.push_back({fmt::format("{}: the leverages of {} miss their bar", escape(file),
                               counted(wrong, subject_of_factors))});
}

Json input_json(const Source& source) {
  return {{"file", source.file},
          {"dataset", source.dataset},
          {"shape", dims_of(source)},
          {"type", source.stored_type}};
}

std::string written_files(std::span<const std::string> files, std::string_view what) {
  if (files.size() == 1 && is_standard_output(files.front()))
    return fmt::format("{} to standard output", what);
  std::vector<std::string> names;
  for (const std::string& file : files) names.push_back(escape(file));
  return join(names, ", ");
}

WallTime wall_time(const RunTimes& times, std::vector<SecondsColumn> work, std::string read_rate,
                   std::string write_rate) {
  double measured = 0;
  for (const SecondsColumn& part : work) measured += part.seconds;
  const StageSeconds& stages = times.stages;
  WallTime time{.columns = {{"start", times.start}, {"read", stages.read, std::move(read_rate)}},
                .overlap = stages.overlap + std::max(0.0, measured - stages.work),
                .total = times.total};
  time.columns.insert(time.columns.end(), work.begin(), work.end());
  time.columns.insert(time.columns.end(), {{"other", std::max(0.0, stages.work - measured)},
                                           {"write", stages.write, std::move(write_rate)},
                                           {"leverage", times.leverage},
                                           {"sync", times.sync},
                                           {"free", stages.free + times.free}});
  return time;
}

}  // namespace qrtool
