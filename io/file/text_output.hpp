// SPDX-License-Identifier: Apache-2.0
// text_output.hpp: writes text to a file that appears complete or not at all.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "io/file/atomic_file.hpp"
#include "io/file/file_set.hpp"

namespace qrtool {

/// The caller appends text to buffer(), and flush_if_full() writes it. Errors: OutputError.
class TextOutput {
 public:
  TextOutput(const std::string& path, bool force) : file_(path, force) {}

  fmt::memory_buffer& buffer() { return buffer_; }
  void flush_if_full() {
    if (buffer_.size() >= full_bytes) flush();
  }
  /// Writes what is left and adds the file to `files`.
  void finish(FileSet& files);
  void commit();
  /// The bytes of text so far, and going back to an earlier value of it.
  std::uint64_t position() const { return flushed_ + buffer_.size(); }
  void go_back(std::uint64_t position);
  const std::string& path() const { return file_.path(); }

 private:
  static constexpr std::size_t full_bytes = std::size_t{1} << 20;
  void flush();
  [[noreturn]] void fail(int error) const;

  AtomicFile file_;
  fmt::memory_buffer buffer_;
  std::uint64_t flushed_ = 0;  // bytes in the file
};

}  // namespace qrtool
