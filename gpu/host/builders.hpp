// SPDX-License-Identifier: Apache-2.0
// builders.hpp: processes that build programs beside this one.
//
//   this process     builds the first program | the second | .. | loads what the others have built
//   a builder        its start | takes a program | another one | .. | ends
//
// Drivers build the programs of one process one after another. A builder is a process of its own
// that gets the text of a program and builds it, so that the driver's own cache on disk has the
// result, where this process finds it. Nothing depends on a builder: what it does not finish is
// built here.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace qrtool {

/// A program to build.
struct BuildJob {
  std::string options, text;
};

/// How builders are started, and when.
struct BuilderLimits {
  /// A program and its arguments, to which the device's index and the number of this process are
  /// added. Empty: there are no builders.
  std::vector<std::string> command;
  int most_processes = 0;
  /// Builders start when a build has taken this long. What the driver's cache has takes less.
  std::chrono::milliseconds patience{0};
  /// A builder that takes longer for a program is ended.
  std::chrono::milliseconds most_time{20000};
};

/// The command that later sessions of this process use. None until the program that has the command
/// names it.
void set_builder_command(std::vector<std::string> command);
std::vector<std::string> builder_command();

class Builders {
 public:
  struct Next {
    std::size_t job;
    bool is_built;  // by a builder
  };

  /// `device`: the index of list_devices().
  Builders(std::vector<BuildJob> jobs, const BuilderLimits& limits, int device);
  /// Ends all builders; their exit codes are taken later.
  ~Builders();
  Builders(const Builders&) = delete;
  Builders& operator=(const Builders&) = delete;

  /// The next job for the caller: one that nobody has begun, else one that a builder has finished
  /// or has failed to build, for which the caller waits. None: the caller has had every job.
  std::optional<Next> next();

  /// Ends all builders; next() gives the caller their jobs.
  void give_up();

 private:
  struct Process;

  void run(const std::stop_token& stop);
  void start_processes();
  void serve(Process& process);
  void end(Process& process);
  bool are_needed() const;

  const std::vector<BuildJob> jobs_;
  const BuilderLimits limits_;
  const int device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::size_t> open_, built_;  // jobs that nobody has begun; jobs that builders finished
  std::size_t in_processes_ = 0;          // jobs that builders have begun
  std::chrono::steady_clock::time_point begun_;  // of the caller's build
  bool is_given_up_ = false;
  std::vector<Process> processes_;  // of the thread alone
  std::jthread thread_;
};

/// What a builder does: builds the programs that come by standard input, for a device, until the
/// input ends or the process `parent` does. Returns its exit code.
int run_builder(int device, pid_t parent);

}  // namespace qrtool
