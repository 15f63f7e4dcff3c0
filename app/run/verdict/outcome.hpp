// SPDX-License-Identifier: Apache-2.0
// outcome.hpp: what came of a run, or of one of its inputs, as text and as JSON.
#pragma once

#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/options/print_options.hpp"
#include "app/process/wall_time.hpp"
#include "app/run/pipeline/pipeline.hpp"
#include "app/run/verdict/verdict.hpp"
#include "core/error.hpp"
#include "core/machine/comm.hpp"
#include "io/read/reader.hpp"

namespace qrtool {

/// A failure that does not end the run: on standard error, whatever the options are.
struct Complaint {
  std::string message, hint = {};
};

/// `factor`, `solve`, `verify` and `info` end with one of these, for each of their inputs.
struct Outcome {
  ExitCode code = ExitCode::good;
  std::vector<Complaint> complaints = {};
  std::string text = {};             // for people
  std::string line = {};             // the text in one line, where the inputs are several
  nlohmann::ordered_json json = {};  // only with --json

  /// Whether there is an output.
  bool is_complete() const { return code <= ExitCode::answer_is_no; }
};

/// Prints complaints, and then the text, or with --json the document, unless it is a part of a
/// larger one. Returns the exit code.
ExitCode print(const PrintOptions& options, const Outcome& outcome, bool is_part = false);
void print_complaints(const Outcome& outcome);

/// Calls body(). If it fails, prints the error and returns it as the outcome, whose document names
/// the dataset. Errors that concern all datasets (output errors and internal ones) are rethrown.
Outcome attempt(const std::string& dataset, const std::function<Outcome()>& body);
/// Prints the document of several outcomes, with --json, and returns their highest exit code.
ExitCode finish_several(const PrintOptions& options, std::string_view schema,
                        std::span<const Outcome> outcomes);
/// Returns the document, of schema qrtool.error/1.
nlohmann::ordered_json to_json(const Failure& failure);

/// The matrices or solutions of one status, in words for one and for more.
struct Fault {
  Status status;
  std::string of_one, of_more;
  std::string consequence = {}, hint = {};  // after the name of the first one; what to do
};
/// Returns a complaint for each fault that there is: "a.npy: 2 of 8 matrices miss the bar (first:
/// 3)".
std::vector<Complaint> complaints_of(const Verdict& verdict, const std::string& file,
                                     std::initializer_list<Fault> faults);
/// Adds a complaint if the leverages of some matrices miss their bar.
void complain_of_leverages(const std::string& file, index_t wrong, std::vector<Complaint>& all);

/// Returns {"file", "dataset", "shape", "type"}
nlohmann::ordered_json input_json(const Source& source);
/// Returns "a.Q.npy, a.R.npy", or "R to standard output".
std::string written_files(std::span<const std::string> files, std::string_view what);

/// The times of a run besides its work.
struct RunTimes {
  StageSeconds stages = {};
  double start = 0;     // until the first read: files opened, device started, plan
  double leverage = 0;  // reads the input again
  double sync = 0;      // the output is brought to the disk and renamed
  double free = 0;      // memory is given back when all is written
  double total = 0;
};
/// `work`: the parts of the work, which may have had a longer or a shorter time than the stage. The
/// rates stand behind the times of reading and writing.
WallTime wall_time(const RunTimes& times, std::vector<SecondsColumn> work,
                   std::string read_rate = {}, std::string write_rate = {});

}  // namespace qrtool
