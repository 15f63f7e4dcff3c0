// SPDX-License-Identifier: Apache-2.0
// text_output.cpp: writes the buffer to the temporary file.
#include "io/file/text_output.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {

void TextOutput::flush() {
  for (std::size_t done = 0; done < buffer_.size();) {
    const ssize_t written = write(file_.descriptor(), buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    done += static_cast<std::size_t>(written);
  }
  flushed_ += buffer_.size();
  buffer_.clear();
}

void TextOutput::fail(int error) const {
  const char* reason = error == EFBIG ? "the file size limit is reached" : std::strerror(error);
  throw OutputError(fmt::format("cannot write '{}': {}", escape(file_.path()), reason));
}

void TextOutput::go_back(std::uint64_t position) {
  if (position >= flushed_) {
    buffer_.resize(static_cast<std::size_t>(position - flushed_));
    return;
  }
  buffer_.clear();
  const auto offset = static_cast<off_t>(position);
  if (ftruncate(file_.descriptor(), offset) != 0 ||
      lseek(file_.descriptor(), offset, SEEK_SET) != offset)
    fail(errno);
  flushed_ = position;
}

void TextOutput::finish(FileSet& files) {
  flush();
  files.add(file_);
}

void TextOutput::commit() {
  FileSet files;
  finish(files);
  files.commit();
}

}  // namespace qrtool
