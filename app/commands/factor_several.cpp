// SPDX-License-Identifier: Apache-2.0
// factor_several.cpp: opens all datasets, factors those that could be opened, and commits the file
// that holds the factors of all.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "app/commands/factor.hpp"
#include "app/factor/factor_run.hpp"
#include "app/process/console.hpp"
#include "app/process/process_clock.hpp"
#include "app/process/signals.hpp"
#include "app/run/verdict/outcome.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/file/rereadable.hpp"
#include "io/open/output.hpp"

namespace qrtool {
namespace {

/// One of the datasets.
struct Task {
  FactorOptions options;  // with this dataset alone
  std::unique_ptr<Reader> input;

  const std::string& source() const { return input->source().dataset; }
};

/// Opens all datasets. `outcomes` gets one entry for each, with the error of a dataset that fails.
std::vector<Task> open_all(const FactorOptions& o, const Limits& limits,
                           std::vector<Outcome>& outcomes) {
  std::vector<Task> tasks;
  for (const std::string& dataset : o.datasets) {
    Task task{.options = o, .input = nullptr};
    task.options.dataset = dataset;
    outcomes.push_back(attempt(dataset, [&] {
      task.input = open_input_of(task.options, limits);
      return Outcome();
    }));
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

/// `sources`: the datasets whose factors are in the file.
void commit(OutputFile& file, const std::vector<std::string>& sources) {
  if (sources.empty()) return;
  set_interrupt_message(interrupted_while_finishing);
  FileSet files;
  file.finish(sources, files);
  files.commit();
  set_interrupt_message(interrupted_when_complete);
}

}  // namespace

ExitCode factor_several(const FactorOptions& o) {
  Laps laps(process_seconds());
  if (is_standard_input(o.input))
    throw UsageError("standard input is read once, for one --dataset", "name a file");
  Limits limits = host_limits(o.memory_bytes, o.threads);
  limits.has_scratch = !o.scratch.empty();
  start_device(o.backend);
  std::vector<Outcome> outcomes;
  std::vector<Task> tasks = open_all(o, limits, outcomes);
  if (const std::unique_ptr<OutputFile> file = create_file(o, tasks)) {
    std::vector<std::string> written;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      Task& task = tasks[i];
      if (!task.input) continue;
      outcomes[i] = attempt(task.options.dataset, [&] {
        return outcome_of(task.options,
                          factor_input(task.options, *task.input, limits, laps, file.get()));
      });
      if (outcomes[i].is_complete()) written.push_back(task.source());
      laps = Laps();
    }
    commit(*file, written);
  }
  for (const Outcome& outcome : outcomes) print(o, outcome, /*is_part=*/true);
  return finish_several(o, "qrtool.factor-several/1", outcomes);
}

}  // namespace qrtool
