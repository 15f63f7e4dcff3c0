// SPDX-License-Identifier: Apache-2.0
// rereadable.cpp: opens files, and copies standard input to a temporary file.
#include "io/file/rereadable.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/scratch_file.hpp"

namespace qrtool {
namespace {

int open_for_reading(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    throw InputError(fmt::format("cannot read '{}': {}", escape(path), std::strerror(errno)));
  }
  return descriptor;
}

/// Copies standard input, which can be read only once, to a file that can be read again.
int spool_standard_input(const std::string& scratch) {
  const std::string shown(standard_input);
  const int copy = create_unnamed(shown, scratch);
  std::vector<char> buffer(std::size_t{1} << 20);
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) return copy;
    if (got < 0) {
      const int error = errno;
      close(copy);
      throw InputError(fmt::format("cannot read {}: {}", standard_input, std::strerror(error)));
    }
    append_all(shown, copy, buffer.data(), static_cast<std::size_t>(got), scratch);
  }
}

}  // namespace

int create_unnamed(const std::string& shown, const std::string& scratch) {
  Descriptor file = create_nameless(scratch.empty() ? default_scratch() : scratch);
  if (file < 0) throw_cannot_be_kept(shown, errno, scratch);
  return file.release();
}

void throw_cannot_be_kept(const std::string& shown, int error, const std::string& scratch) {
  const std::string text =
      fmt::format("{}: cannot be kept in '{}': {}", shown,
                  escape(scratch.empty() ? default_scratch() : scratch), std::strerror(error));
  if (!scratch.empty()) throw OutputError(text, "name a directory with more room");
  throw OutputError(text, "set TMPDIR to a directory with room for it");
}

void append_all(const std::string& shown, int descriptor, const char* bytes, std::size_t size,
                const std::string& scratch) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t written = write(descriptor, bytes + done, size - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_cannot_be_kept(shown, errno, scratch);
    done += static_cast<std::size_t>(written);
  }
}

int open_rereadable(const std::string& path, const std::string& scratch) {
  if (!is_standard_input(path)) return open_for_reading(path);
  static const Descriptor copy(spool_standard_input(scratch));
  // The file is opened again instead of duplicating the descriptor, so that each has its own
  // position.
  return open_for_reading(fmt::format("/proc/self/fd/{}", static_cast<int>(copy)));
}

}  // namespace qrtool
