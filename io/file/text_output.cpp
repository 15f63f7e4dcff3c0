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
    if (written < 0) {
      const char* reason = errno == EFBIG ? "the file size limit is reached" : std::strerror(errno);
      throw OutputError(fmt::format("cannot write '{}': {}", escape(file_.path()), reason));
    }
    done += static_cast<std::size_t>(written);
  }
  buffer_.clear();
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
