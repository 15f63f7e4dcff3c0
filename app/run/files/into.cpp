// SPDX-License-Identifier: Apache-2.0
// into.cpp: names the outputs, makes their folder, and goes on after an input that fails.
#include "app/run/files/into.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "app/process/console.hpp"
#include "app/process/progress.hpp"
#include "app/process/signals.hpp"
#include "app/run/files/earlier_output.hpp"
#include "core/machine/comm.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/open/formats.hpp"

namespace qrtool {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool is_ending_of_output(const std::string& ending) {
  return std::ranges::any_of(formats(), [&](const Format* format) {
    return std::ranges::find(format->endings, ending) != format->endings.end();
  });
}

/// The number of a file on its disk; nothing if it does not exist or is no file.
using FileNumber = std::pair<dev_t, ino_t>;
std::optional<FileNumber> number_of(const std::string& name) {
  struct stat info {};
  if (stat(name.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return FileNumber{info.st_dev, info.st_ino};
}

/// Returns the files that an output may have, and its name, by which it is found again.
std::vector<std::string> names_of(const std::string& output) {
  std::vector<std::string> names = format_of_output(output).files_of_output(output);
  if (std::ranges::find(names, output) == names.end()) names.push_back(output);
  return names;
}

/// Errors: UsageError if two inputs would write one file.
void refuse_common_files(const std::vector<InputInto>& all) {
  std::map<std::string, const InputInto*> writers;
  for (const InputInto& each : all) {
    for (const std::string& name : names_of(each.output)) {
      const auto [found, is_new] = writers.emplace(name, &each);
      if (is_new) continue;
      throw UsageError(
          fmt::format("'{}' would be the output of '{}' and of '{}'", escape(each.output),
                      escape(found->second->input), escape(each.input)),
          "give them in two runs, each with another --into");
    }
  }
}

/// Errors: UsageError if a run would replace one of its inputs.
void refuse_inputs_as_outputs(const std::vector<InputInto>& all,
                              const std::vector<std::string>& others) {
  std::map<FileNumber, std::string> inputs;
  const auto add = [&](const std::string& input) {
    if (input.empty()) return;
    if (const auto number = number_of(split_location(input).file)) inputs.emplace(*number, input);
  };
  for (const InputInto& each : all) add(each.input);
  for (const std::string& input : others) add(input);
  for (const InputInto& each : all) {
    for (const std::string& name : names_of(each.output)) {
      const auto number = number_of(name);
      const auto found = number ? inputs.find(*number) : inputs.end();
      if (found == inputs.end()) continue;
      throw UsageError(fmt::format("'{}' would be the output of '{}', and is the input '{}'",
                                   escape(name), escape(each.input), escape(found->second)),
                       "name another folder with --into");
    }
  }
}

/// Creates the folder if it does not exist. Errors: OutputError.
void require_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && access(folder.c_str(), W_OK | X_OK) != 0)
    error = std::error_code(errno, std::generic_category());
  if (!error && !fs::is_directory(folder)) error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    throw OutputError(fmt::format("--into '{}': files cannot be written there ({})", escape(folder),
                                  error.message()),
                      "name a folder that you can write to, or a new one");
}

/// Runs one input. A failure is printed unless it repeats the message before it, `last`.
Outcome outcome_of(const JobInto& job, const InputInto& each, std::string& last) {
  try {
    Outcome outcome = job.run(each.input, each.output, each.replaces);
    print_complaints(outcome);
    return outcome;
  } catch (...) {
    const Failure failure = Failure::current();
    if (failure.code == ExitCode::internal) throw;
    if (failure.what != last) {
      print_failure(failure.what);
      print_hint(failure.hint);
    }
    last = failure.what;
    return {.code = failure.code,
            .line = in_red(fmt::format("failed with exit status {}; nothing written",
                                       static_cast<int>(failure.code))) +
                    "\n",
            .json = to_json(failure)};
  }
}

void print_outcomes(const JobInto& job, const PlanInto& plan, const std::vector<Outcome>& outcomes,
                    ExitCode worst) {
  const std::vector<InputInto>& inputs = plan.inputs;
  if (job.options.json) {
    Json documents = Json::array();
    for (std::size_t i = 0; i < outcomes.size(); ++i)
      documents.push_back({{"name", inputs[i].input}, {"result", outcomes[i].json}});
    write_json({{"schema", job.schema},
                {"version", QRTOOL_VERSION},
                {"folder", job.folder},
                {"inputs", documents},
                {"skipped", plan.skipped},
                {"exit", static_cast<int>(worst)}});
    return;
  }
  if (job.options.quiet) return;
  std::size_t width = 0;
  constexpr std::size_t most_width = 40;
  for (const InputInto& each : inputs)
    width = std::max(width, std::min(escape(each.input).size(), most_width));
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    write_stdout(fmt::format("{:<{}}  {}", escape(inputs[i].input), width,
                             job.options.verbose && outcomes[i].is_complete()
                                 ? "\n" + outcomes[i].text
                                 : outcomes[i].line));
  const auto written = std::ranges::count_if(outcomes, &Outcome::is_complete);
  const std::string skipped =
      plan.skipped == 0 ? ""
                        : fmt::format("; {} skipped, which are there", format_count(plan.skipped));
  write_stdout(fmt::format("{} of {} outputs written to {}{}\n", format_count(written),
                           format_count(std::ssize(outcomes)), escape(job.folder), skipped));
}

}  // namespace

std::string output_into(const std::string& folder, const std::string& input) {
  std::string name = fs::path(split_location(input).file).filename().string();
  const auto cut = [&](const std::string& ending) { name.resize(name.size() - ending.size()); };
  if (ending_of(name) == ".gz") cut(".gz");
  const std::string ending = ending_of(name);
  const bool is_of_name = ending.size() > 1 && std::isdigit(static_cast<unsigned char>(ending[1]));
  if (!is_ending_of_output(ending)) {
    if (!is_of_name && ending != name) cut(ending);
    name += ".h5";
  }
  return (fs::path(folder) / name).string();
}

bool is_there(const std::string& folder) { return folder.empty() || fs::exists(folder); }

PlanInto plan_into(const JobInto& job) {
  std::vector<InputInto> all;
  for (const std::string& input : job.inputs)
    all.push_back({input, output_into(job.folder, input)});
  refuse_common_files(all);
  refuse_inputs_as_outputs(all, job.others);
  PlanInto plan;
  for (index_t i = job.taken.share - 1; i < std::ssize(all); i += job.taken.shares) {
    InputInto& each = all[static_cast<std::size_t>(i)];
    const EarlierOutput earlier =
        job.taken.skip_existing ? find_earlier(each.output) : EarlierOutput{};
    each.replaces = earlier.failed > 0;
    if (earlier.passed > 0 && earlier.failed == 0)
      ++plan.skipped;
    else
      plan.inputs.push_back(std::move(each));
  }
  return plan;
}

ExitCode run_into(const JobInto& job) {
  const PlanInto plan = plan_into(job);
  require_folder(job.folder);
  count_outputs(static_cast<int>(plan.inputs.size()));
  std::vector<Outcome> outcomes;
  ExitCode worst = ExitCode::good;
  {
    Progress progress(job.command, std::ssize(plan.inputs), job.options.progress_mode(), "files");
    std::string last_failure;
    for (const InputInto& each : plan.inputs) {
      outcomes.push_back(outcome_of(job, each, last_failure));
      worst = std::max(worst, outcomes.back().code);
      progress.add(1);
    }
  }
  print_outcomes(job, plan, outcomes, worst);
  return worst;
}

}  // namespace qrtool
