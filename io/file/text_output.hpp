// SPDX-License-Identifier: Apache-2.0
// text_output.hpp: text into a file that is complete or not there.
#pragma once

#include <fmt/format.h>

#include <string>

#include "io/file/atomic_file.hpp"

namespace qrtool {

/// Text is gathered in buffer() and written by flush_if_full(). Errors: OutputError.
class TextOutput {
 public:
  TextOutput(const std::string& path, bool force) : file_(path, force) {}

  fmt::memory_buffer& buffer() { return buffer_; }
  void flush_if_full() {
    if (buffer_.size() >= full_bytes) flush();
  }
  void commit();
  const std::string& path() const { return file_.path(); }

 private:
  static constexpr std::size_t full_bytes = std::size_t{1} << 20;
  void flush();

  AtomicFile file_;
  fmt::memory_buffer buffer_;
};

}  // namespace qrtool
