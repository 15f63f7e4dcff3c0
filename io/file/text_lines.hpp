// SPDX-License-Identifier: Apache-2.0
// text_lines.hpp: reads the lines of a text file, one at a time, from any offset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"
#include "io/file/text_bytes.hpp"

namespace qrtool {

/// Owns the descriptor of a file that can be read at any offset. Where gzip compressed it, offsets
/// are those in the text.
class TextLines {
 public:
  /// `shown`: the file's name in messages.
  TextLines(int descriptor, std::string shown)
      : bytes_(open_text_bytes(descriptor, shown)), shown_(std::move(shown)) {}

  /// Goes to the next line. Returns false at the end of the file. Errors: InputError for a line
  /// longer than 1 GiB or with a word longer than 256 KiB, or where reading fails.
  bool next();
  /// The line without its end (LF or CR LF) and without a byte order mark; valid until next().
  std::string_view text() const { return text_; }
  index_t number() const { return number_; }  // from 1
  std::uint64_t offset() const { return offset_; }

  /// Makes next() go to the line that begins at `offset` and has the number `number`.
  void seek(std::uint64_t offset, index_t number);

  const std::string& shown() const { return shown_; }

 private:
  bool fill();
  void require_words(std::string_view piece) const;

  std::unique_ptr<TextBytes> bytes_;
  std::string shown_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // the part of buffer_ that no line has used yet
  std::uint64_t buffer_offset_ = 0;  // the place of buffer_[0] in the file
  std::string_view text_;
  index_t number_ = 0;
  std::uint64_t offset_ = 0;
};

/// The words of a line, which blanks and tabs separate.
std::vector<std::string_view> words_of(std::string_view line);

}  // namespace qrtool
