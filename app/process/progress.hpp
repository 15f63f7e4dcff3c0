// SPDX-License-Identifier: Apache-2.0
// progress.hpp: one line on standard error that shows how much of the work is done.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/batch.hpp"

namespace qrtool {

enum class ProgressMode { automatic, always, never };

/// Shows `factor  3,072/15,000  20%  41.2 matrices/s  eta 0:08`. On a terminal the line appears
/// after one second, is rewritten, and is cleared before messages and at the end. With `always` it
/// is also printed line by line into a pipe. One thread at a time may use it.
class Progress {
 public:
  /// `unit`: what is counted, such as "matrices".
  Progress(std::string_view label, index_t total, ProgressMode mode,
           std::string_view unit = "matrices");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Counts `count` more as done.
  void add(index_t count);

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_, unit_;
  index_t total_, done_ = 0;
  bool enabled_, terminal_;
  Clock::time_point start_, next_;
};

/// Formats the line.
std::string progress_line(std::string_view label, index_t done, index_t total, double seconds,
                          std::string_view unit = "matrices");

}  // namespace qrtool
