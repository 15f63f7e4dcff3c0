// SPDX-License-Identifier: Apache-2.0
// console.cpp: writes to the standard streams; a failed write throws only at the end.
#include "app/process/console.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"

namespace qrtool {

namespace {

bool is_silent = false, is_stdout_free = false;
int stdout_error = 0, log_error = 0;  // errno of the first write that failed
std::unique_ptr<std::FILE, int (*)(std::FILE*)> log_file{nullptr, std::fclose};
std::string log_path;

constexpr std::string_view red = "\x1b[31m", plain = "\x1b[0m";

bool shows_colours(int stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  const bool is_forbidden = no_colour != nullptr && *no_colour != '\0';
  return !is_forbidden && is_terminal(stream);
}

std::atomic<bool> has_line = false;  // show_line() has written one

void remove_line() {
  if (has_line.exchange(false)) std::fputs("\r\x1b[K", stderr);
}

std::string coloured(std::string_view text, int stream) {
  return shows_colours(stream) ? fmt::format("{}{}{}", red, text, plain) : std::string(text);
}

std::string time_text() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr)));
}

/// A line of a log begins with the time.
bool begins_a_log(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-dd dd:dd:dd ";
  if (text.size() < form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (form[i] == 'd' ? !is_digit : text[i] != form[i]) return false;
  }
  return true;
}

void write_log(std::string_view text) {
  if (!log_file) return;
  std::string lines(text);
  for (const std::string_view code : {red, plain})
    for (std::size_t at = lines.find(code); at != std::string::npos; at = lines.find(code, at))
      lines.erase(at, code.size());
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    const std::string line =
        fmt::format("{} {}\n", time_text(), std::string_view(lines).substr(at, end - at));
    std::fwrite(line.data(), 1, line.size(), log_file.get());
    at = end + 1;
  }
  if (std::fflush(log_file.get()) != 0 && log_error == 0) log_error = errno;
}

}  // namespace

bool is_terminal(int stream) {
  const char* term = std::getenv("TERM");
  for (const char* rank : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (std::getenv(rank) != nullptr) return false;
  return isatty(stream) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

void show_line(std::string_view line) {
  if (is_silent) return;
  remove_line();
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  line = line.substr(0, is_known ? size.ws_col - 1U : line.size());
  std::fwrite(line.data(), 1, line.size(), stderr);
  has_line = !line.empty();
}

void silence_console() { is_silent = true; }
void keep_stdout_free() { is_stdout_free = true; }

void write_stdout(std::string_view text) {
  if (is_silent) return;
  remove_line();
  std::FILE* const stream = is_stdout_free ? stderr : stdout;
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stream);
  if (stream == stdout && written < text.size() && stdout_error == 0) stdout_error = errno;
  write_log(text);
}

void write_json(const nlohmann::ordered_json& document) {
  write_stdout(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
               "\n");
}

void finish_stdout() {
  if (std::fflush(stdout) != 0 && stdout_error == 0) stdout_error = errno;
  if (stdout_error != 0)
    throw OutputError(
        fmt::format("cannot write to standard output: {}", std::strerror(stdout_error)));
}

void write_stderr(std::string_view text) {
  if (is_silent) return;
  remove_line();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void print_message(std::string_view message) {
  if (is_silent) return;
  write_stderr(fmt::format("qrtool: {}\n", message));
  write_log(fmt::format("qrtool: {}\n", message));
}

void print_failure(std::string_view message) {
  if (is_silent) return;
  write_stderr(coloured(fmt::format("qrtool: {}", message), STDERR_FILENO) + "\n");
  write_log(fmt::format("qrtool: {}\n", message));
}

void print_hint(std::string_view action) {
  if (action.empty() || is_silent) return;
  write_stderr(fmt::format("hint: {}\n", action));
  write_log(fmt::format("hint: {}\n", action));
}

std::string in_red(std::string_view text) { return coloured(text, STDOUT_FILENO); }

void open_log(const std::string& path, const std::string& command) {
  struct stat info {};
  const bool is_there = stat(path.c_str(), &info) == 0 && info.st_size > 0;
  if (is_there && (!S_ISREG(info.st_mode) || !begins_a_log(first_bytes(path, 32))))
    throw UsageError(fmt::format("--log '{}': exists and is no log", escape(path)),
                     "a log is only added to; name another file");
  log_file.reset(std::fopen(path.c_str(), "ae"));
  if (!log_file)
    throw OutputError(fmt::format("cannot write '{}': {}", escape(path), std::strerror(errno)));
  log_path = path;
  write_log(command);
  finish_log();
}

void finish_log() {
  if (log_error == 0) return;
  const int error = std::exchange(log_error, 0);
  log_file.reset();
  throw OutputError(
      fmt::format("cannot write the log '{}': {}", escape(log_path), std::strerror(error)),
      "name a log on a disk that has room");
}

void close_log(int exit_code) {
  write_log(fmt::format("exit status {}", exit_code));
  log_file.reset();
}

}  // namespace qrtool
