// SPDX-License-Identifier: Apache-2.0
// process_clock.cpp: reads the clocks before any other constructor of the program runs.
#include "app/process/process_clock.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace qrtool {
namespace {

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Returns when the process was made, in ticks since the system started: field 22 of
/// /proc/self/stat; 0 if it is not known.
double ticks_of_process() {
  std::array<char, 1024> text{};
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = read(file, text.data(), text.size() - 1);
  close(file);
  // The name of the program, in parentheses, may hold blanks.
  const char* after_name = size > 0 ? std::strrchr(text.data(), ')') : nullptr;
  unsigned long long ticks = 0;
  constexpr const char* field =
      ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
  if (after_name == nullptr || std::sscanf(after_name, field, &ticks) != 1) return 0;
  return static_cast<double>(ticks);
}

/// Returns the least time that has passed since the process was made.
double seconds_before_main() {
  // The loader needs a hundredth of a second, and more if a disk must wake up. A process that is
  // older than this was another program before, which became this one by exec().
  constexpr double most = 0.25;
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const double made = ticks_of_process();
  // The process may have been made at the end of its tick.
  const double passed =
      made > 0 ? seconds_of(CLOCK_BOOTTIME) - (made + 1) / ticks_per_second : most;
  const double busy = std::min(seconds_of(CLOCK_PROCESS_CPUTIME_ID), most);
  return passed < most ? std::max(passed, busy) : busy;
}

double begin = 0;

[[gnu::constructor(101)]] void note_the_begin() {
  begin = seconds_of(CLOCK_MONOTONIC) - seconds_before_main();
}

}  // namespace

double process_seconds() { return seconds_of(CLOCK_MONOTONIC) - begin; }

}  // namespace qrtool
