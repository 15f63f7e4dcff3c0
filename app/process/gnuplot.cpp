// SPDX-License-Identifier: Apache-2.0
// gnuplot.cpp: a child process reads the script from a file without a name and writes the picture
// to a pipe.
#include "app/process/gnuplot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/input_file.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/text_output.hpp"
#include "io/open/output.hpp"

namespace qrtool {
namespace {

constexpr const char* hint_to_install =
    "on Debian: apt install gnuplot-nox; or draw the numbers of --json with another program";

[[noreturn]] void throw_cannot(const std::string& why) {
  throw OutputError(fmt::format("gnuplot cannot draw: {}", why));
}

/// Returns the path of a program in PATH, or an empty text.
std::string find_program(const char* name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    const std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file)) return file;
  }
  return {};
}

std::string terminal_of(const std::string& path, PictureSize size) {
  if (ending_of(path) == ".png")
    return fmt::format("set terminal png noenhanced size {},{} background '#ffffff'\n", size.width,
                       size.height);
  return fmt::format(
      "set terminal svg noenhanced size {},{} dynamic background '#ffffff' font 'sans-serif,14'\n",
      size.width, size.height);
}

/// Returns a file without a name that holds the text and is read from its beginning.
Descriptor file_with(const std::string& text) {
  Descriptor file = create_nameless(default_scratch());
  if (file < 0) throw_cannot(std::strerror(errno));
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(file, text.data() + at, text.size() - at);
    if (written < 0) throw_cannot(std::strerror(errno));
    at += static_cast<std::size_t>(written);
  }
  lseek(file, 0, SEEK_SET);
  return file;
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 1 << 16> piece;
  while (true) {
    const ssize_t bytes = read(file, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(bytes));
  }
}

pid_t start_gnuplot(int input, int output, int errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  const std::string program = find_program("gnuplot");
  std::string name = "gnuplot", standard_input = "-";
  char* const arguments[] = {name.data(), standard_input.data(), nullptr};
  pid_t child = -1;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw_cannot(std::strerror(error));
  return child;
}

/// Runs a script, and returns gnuplot's standard output.
std::string run_gnuplot(const std::string& script) {
  if (!has_gnuplot()) throw OutputError("gnuplot is not installed", hint_to_install);
  const Descriptor input = file_with(script), errors = file_with("");
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_cannot(std::strerror(errno));
  const Descriptor from(ends[0]);
  pid_t child = -1;
  {
    const Descriptor to(ends[1]);
    child = start_gnuplot(input, to, errors);
  }
  std::string picture = read_all(from);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !picture.empty()) return picture;
  lseek(errors, 0, SEEK_SET);
  std::string said = read_all(errors);
  said.erase(0, said.find_first_not_of(" \n"));
  throw_cannot(said.empty() ? "it ended without a picture" : escape(said.substr(0, 300)));
}

}  // namespace

bool has_gnuplot() { return !find_program("gnuplot").empty(); }

void check_picture(const std::string& path, bool force) {
  const std::string ending = ending_of(path);
  if (ending != ".svg" && ending != ".png")
    throw UsageError(fmt::format("--plot: '{}' ends neither in .svg nor in .png", escape(path)),
                     "for example --plot picture.svg");
  if (!has_gnuplot()) throw OutputError("--plot: gnuplot is not installed", hint_to_install);
  if (!force) refuse_existing(path);
}

void draw_picture(const std::string& path, bool force, PictureSize size,
                  const std::string& script) {
  const std::string picture = run_gnuplot(terminal_of(path, size) + script);
  TextOutput output(path, force);
  output.buffer().append(picture);
  output.commit();
}

std::string draw_svg(PictureSize size, const std::string& script) {
  return run_gnuplot(terminal_of(".svg", size) + script);
}

std::string gnuplot_text(std::string_view text) {
  std::string out = "'";
  for (const char c : escape(text)) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

}  // namespace qrtool
