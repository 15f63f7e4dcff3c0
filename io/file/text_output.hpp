// SPDX-License-Identifier: Apache-2.0
// text_output.hpp: writes text to a file, or to standard output, that gets all of it or nothing.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "io/file/atomic_file.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/file_set.hpp"

namespace qrtool {

/// The names of standard output: as text, and as an array of NumPy.
inline constexpr const char* standard_output_text = "-";
inline constexpr const char* standard_output_npy = "-.npy";
inline bool is_standard_output(const std::string& path) {
  return path == standard_output_text || path == standard_output_npy;
}
/// Copies the first `bytes` bytes of a file to standard output. Errors: OutputError.
void copy_to_standard_output(int descriptor, std::uint64_t bytes);
/// Opens a file without a name for a result that is copied to standard output when it is complete.
/// Errors: OutputError.
Descriptor keep_for_standard_output();

/// The caller appends text to buffer(), and flush_if_full() writes it. Standard output, "-", gets
/// it in finish(); until then it is in a file without a name. Errors: OutputError.
class TextOutput {
 public:
  TextOutput(const std::string& path, bool force);

  fmt::memory_buffer& buffer() { return buffer_; }
  void flush_if_full() {
    if (buffer_.size() >= full_bytes) flush();
  }
  /// Writes the rest and adds the file to `files`.
  void finish(FileSet& files);
  void commit();
  /// Return how many bytes of text there are, and go back to an earlier value of that number.
  std::uint64_t position() const { return flushed_ + buffer_.size(); }
  void go_back(std::uint64_t position);
  /// Writes text in the place of as many bytes that there are from `position` on.
  void replace(std::uint64_t position, std::string text);
  const std::string& path() const { return path_; }

  static constexpr std::size_t full_bytes = std::size_t{1} << 20;

 private:
  void flush();
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::optional<AtomicFile> file_;  // empty for standard output
  Descriptor nameless_;             // the text for standard output
  int descriptor_ = -1;             // of one of the two
  fmt::memory_buffer buffer_;
  std::uint64_t flushed_ = 0;  // bytes in the file
};

}  // namespace qrtool
