// SPDX-License-Identifier: Apache-2.0
// text_output.cpp: writes the buffer to the temporary file, and that to standard output.
#include "io/file/text_output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/read_write_at.hpp"
#include "io/file/scratch_file.hpp"

namespace qrtool {

namespace {

/// Returns the error of the system, or 0.
int write_all(int descriptor, const char* text, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t written = write(descriptor, text + done, bytes - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    done += static_cast<std::size_t>(written);
  }
  return 0;
}

const char* reason_of(int error) {
  return error == EFBIG ? "the file size limit is reached" : std::strerror(error);
}

[[noreturn]] void fail_standard_output(int error) {
  throw OutputError(fmt::format("cannot write to standard output: {}", reason_of(error)));
}

}  // namespace

void copy_to_standard_output(int descriptor, std::uint64_t bytes) {
  std::vector<char> piece(TextOutput::full_bytes);
  for (std::uint64_t at = 0; at < bytes;) {
    const std::size_t most = std::min<std::uint64_t>(piece.size(), bytes - at);
    const ssize_t got = pread(descriptor, piece.data(), most, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail_standard_output(got < 0 ? errno : EIO);
    const auto count = static_cast<std::size_t>(got);
    if (const int error = write_all(STDOUT_FILENO, piece.data(), count))
      fail_standard_output(error);
    at += count;
  }
}

Descriptor keep_for_standard_output() {
  const std::string directory = default_scratch();
  Descriptor nameless = create_nameless(directory);
  if (nameless >= 0) return nameless;
  throw OutputError(fmt::format("standard output: cannot be kept in '{}': {}", escape(directory),
                                std::strerror(errno)),
                    "set TMPDIR to a directory with room for it");
}

TextOutput::TextOutput(const std::string& path, bool force) : path_(path) {
  if (!is_standard_output(path)) {
    file_.emplace(path, force);
    descriptor_ = file_->descriptor();
    return;
  }
  nameless_ = keep_for_standard_output();
  descriptor_ = nameless_;
}

void TextOutput::flush() {
  if (const int error = write_all(descriptor_, buffer_.data(), buffer_.size())) fail(error);
  flushed_ += buffer_.size();
  buffer_.clear();
}

void TextOutput::fail(int error) const {
  if (!file_) fail_standard_output(error);
  throw OutputError(fmt::format("cannot write '{}': {}", escape(path_), reason_of(error)));
}

void TextOutput::go_back(std::uint64_t position) {
  if (position >= flushed_) {
    buffer_.resize(static_cast<std::size_t>(position - flushed_));
    return;
  }
  buffer_.clear();
  const auto offset = static_cast<off_t>(position);
  if (ftruncate(descriptor_, offset) != 0 || lseek(descriptor_, offset, SEEK_SET) != offset)
    fail(errno);
  flushed_ = position;
}

void TextOutput::replace(std::uint64_t position, std::string text) {
  flush();
  if (const int error = write_at(descriptor_, position, {iovec{text.data(), text.size()}}))
    fail(error);
}

void TextOutput::finish(FileSet& files) {
  flush();
  if (file_) {
    files.add(*file_);
  } else {
    copy_to_standard_output(descriptor_, flushed_);
  }
}

void TextOutput::commit() {
  FileSet files;
  finish(files);
  files.commit();
}

}  // namespace qrtool
