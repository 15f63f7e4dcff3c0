// SPDX-License-Identifier: Apache-2.0
// progress.cpp: decides when the progress line is shown, and formats it.
#include "app/process/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "app/process/console.hpp"
#include "core/text.hpp"

namespace qrtool {

using namespace std::chrono_literals;

std::string progress_line(std::string_view label, index_t done, index_t total, double seconds,
                          std::string_view unit) {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const index_t percent =
      total > 0
          ? static_cast<index_t>(100.0 * static_cast<double>(done) / static_cast<double>(total))
          : 100;
  std::string eta = "-:--";
  if (rate > 0) {
    const auto left = static_cast<index_t>(static_cast<double>(total - done) / rate + 0.5);
    eta = left < 3600 ? fmt::format("{}:{:02}", left / 60, left % 60)
                      : fmt::format("{}:{:02}:{:02}", left / 3600, left / 60 % 60, left % 60);
  }
  const std::string speed =
      rate < 1000 ? fmt::format("{:.3g}", rate) : format_count(static_cast<index_t>(rate));
  return fmt::format("{}  {}/{}  {}%  {} {}/s  eta {}", label, format_count(done),
                     format_count(total), percent, speed, unit, eta);
}

Progress::Progress(std::string_view label, index_t total, ProgressMode mode, std::string_view unit)
    : label_(label),
      unit_(unit),
      total_(total),
      terminal_(is_terminal(STDERR_FILENO)),
      start_(Clock::now()),
      next_(start_ + (mode == ProgressMode::always ? 0ms : 1000ms)) {
  enabled_ = mode == ProgressMode::always || (mode == ProgressMode::automatic && terminal_);
}

Progress::~Progress() {
  if (terminal_) show_line("");
}

void Progress::add(index_t count) {
  done_ += count;
  const Clock::time_point now = Clock::now();
  const bool last_plain_line = !terminal_ && done_ >= total_;
  if (!enabled_ || (now < next_ && !last_plain_line)) return;
  next_ = now + (terminal_ ? 100ms : 1000ms);
  const std::string line = progress_line(
      label_, done_, total_, std::chrono::duration<double>(now - start_).count(), unit_);
  terminal_ ? show_line(line) : write_stderr(line + "\n");
}

}  // namespace qrtool
