// SPDX-License-Identifier: Apache-2.0
// factor_several.cpp: opens all datasets, factors those that could be opened, and commits the file
// that holds the factors of all.
#include "app/commands/factor_several.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "app/commands/factor.hpp"
#include "app/factor/factor_run.hpp"
#include "app/process/console.hpp"
#include "app/process/process_clock.hpp"
#include "app/process/signals.hpp"
#include "app/run/files/several.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/file/rereadable.hpp"
#include "io/open/output.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// One of the datasets.
struct Task {
  FactorOptions options;  // with this dataset alone
  std::unique_ptr<Reader> input;
  std::optional<FactorResult> result;
  std::optional<Failure> failure;

  const std::string& source() const { return input->source().dataset; }
  ExitCode exit_code() const {
    if (failure) return failure->code;
    return result->is_good() ? ExitCode::good : ExitCode::answer_is_no;
  }
};

std::vector<Task> open_all(const FactorOptions& o, const Limits& limits) {
  std::vector<Task> tasks;
  for (const std::string& dataset : o.datasets) {
    Task task{.options = o, .input = nullptr, .result = {}, .failure = {}};
    task.options.dataset = dataset;
    task.failure = attempt([&] { task.input = open_input_of(task.options, limits); });
    const auto is_same = [&](const Task& other) {
      return task.input && other.input && other.source() == task.source();
    };
    if (std::any_of(tasks.begin(), tasks.end(), is_same))
      throw UsageError(fmt::format("--dataset {} is given twice", escape(task.source())));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::unique_ptr<OutputFile> create_file(const FactorOptions& o, const std::vector<Task>& tasks) {
  std::vector<OutputSpec> planned;
  const Source* source = nullptr;
  for (const Task& task : tasks) {
    if (!task.input) continue;
    source = &task.input->source();
    planned.push_back(planned_output(*source, problem_of(*source, task.options)));
  }
  if (source == nullptr) return nullptr;
  set_interrupt_message("qrtool: interrupted; nothing written\n");
  OutputSpec root;
  root.path = o.output;
  root.force = o.force;
  root.attributes = common_attributes(*source);
  return create_output_file(root, planned);
}

void commit(OutputFile& file, const std::vector<Task>& tasks) {
  std::vector<std::string> sources;
  for (const Task& task : tasks)
    if (task.result) sources.push_back(task.source());
  if (sources.empty()) return;
  set_interrupt_message(interrupted_while_finishing);
  FileSet files;
  file.finish(sources, files);
  files.commit();
  set_interrupt_message(interrupted_when_complete);
}

Json to_json(const Task& task) {
  if (task.result) return to_json(*task.result);
  Json json = to_json(*task.failure);
  json["dataset"] = task.options.dataset;
  return json;
}

void print_results(const FactorOptions& o, const std::vector<Task>& tasks, ExitCode worst) {
  Json results = Json::array();
  for (const Task& task : tasks) {
    if (o.json) results.push_back(to_json(task));
    if (task.result && o.json) print_bad_matrices(*task.result);
    if (task.result && !o.json) print_result(o, *task.result);
  }
  if (!o.json) return;
  write_json({{"schema", "qrtool.factor-several/1"},
              {"version", QRTOOL_VERSION},
              {"datasets", results},
              {"exit", static_cast<int>(worst)}});
}

}  // namespace

ExitCode factor_several(const FactorOptions& o) {
  Laps laps(process_seconds());
  if (is_standard_input(o.input))
    throw UsageError("standard input is read once, for one --dataset", "name a file");
  Limits limits = host_limits(o.memory_bytes, o.threads);
  limits.has_scratch = !o.scratch.empty();
  start_device(o.backend);
  std::vector<Task> tasks = open_all(o, limits);
  if (const std::unique_ptr<OutputFile> file = create_file(o, tasks)) {
    for (Task& task : tasks) {
      if (task.failure) continue;
      task.failure = attempt([&] {
        task.result.emplace(factor_input(task.options, *task.input, limits, laps, file.get()));
      });
      laps = Laps();
    }
    commit(*file, tasks);
  }
  ExitCode worst = ExitCode::good;
  for (const Task& task : tasks) worst = std::max(worst, task.exit_code());
  print_results(o, tasks, worst);
  return worst;
}

}  // namespace qrtool
