// SPDX-License-Identifier: Apache-2.0
// into.hpp: runs with --into: several inputs, each with an output of its own in one folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/options/options.hpp"
#include "app/options/print_options.hpp"
#include "app/run/verdict/outcome.hpp"
#include "core/error.hpp"

namespace qrtool {

/// Returns the output of an input: its file's name in the folder. .gz is left out, and an ending
/// that no output has becomes .h5. An ending that begins with a digit belongs to the name: run.12
/// gives run.12.h5.
std::string output_into(const std::string& folder, const std::string& input);

/// Whether outputs may exist already: there is no --into, or its folder is there.
bool is_there(const std::string& folder);

/// A run with --into.
struct JobInto {
  const PrintOptions& options;
  std::string_view command, schema;  // "factor", "qrtool.factor-into/1"
  std::string folder;
  std::vector<std::string> inputs;
  std::vector<std::string> others;  // files that are read, too; an empty text is none
  const InputsOfRun& taken;
  /// Takes an input and its output, which it commits. `replaces`: the output of an earlier run,
  /// which does not pass.
  std::function<Outcome(const std::string& input, const std::string& output, bool replaces)> run;
};

/// The inputs that a run takes.
struct InputInto {
  std::string input, output;
  bool replaces = false;
};
struct PlanInto {
  std::vector<InputInto> inputs;
  index_t skipped = 0;  // whose output is there
};
/// Errors: UsageError if two inputs would have one output, or if an output is an input.
PlanInto plan_into(const JobInto& job);

/// Runs one input after another, prints a line for each, and returns the highest exit code. An
/// input that fails does not end the run. Errors: UsageError, before any work, if two inputs would
/// have one output, or if an output is an input; OutputError if the folder cannot be written to;
/// InternalError.
ExitCode run_into(const JobInto& job);

}  // namespace qrtool
