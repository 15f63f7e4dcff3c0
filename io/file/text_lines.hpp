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

/// Owns the descriptor of a file that can be read at any offset. In a gzip file, offsets count
/// bytes of the decompressed text.
class TextLines {
 public:
  /// `shown`: the file's name in messages. `memory_bytes`: the most memory that a line may use.
  TextLines(int descriptor, std::string shown, std::size_t memory_bytes = SIZE_MAX)
      : bytes_(open_text_bytes(descriptor, shown)),
        shown_(std::move(shown)),
        memory_bytes_(memory_bytes) {}

  /// Goes to the next line. Returns false at the end of the file. Errors: InputError for a line
  /// longer than 1 GiB, for a word longer than 256 KiB, or if reading fails; LimitError for a line
  /// that does not fit the memory.
  bool next();
  /// The line without its end (LF or CR LF) and without a byte order mark; valid until next().
  std::string_view text() const { return text_; }
  index_t number() const { return number_; }  // from 1
  std::uint64_t offset() const { return offset_; }

  /// Makes next() go to the line that begins at `offset` and has the number `number`.
  void seek(std::uint64_t offset, index_t number);

  const std::string& shown() const { return shown_; }
  /// Refuses the line if its columns, with their names and statistics, do not fit the memory.
  /// Errors: LimitError.
  void require_room_for_columns() const;
  /// The memory of a column while its name and its numbers are read.
  static constexpr std::size_t bytes_of_column = 240;
  /// The memory that holds lines.
  std::size_t buffer_bytes() const { return buffer_.capacity(); }

 private:
  bool fill();
  void require_words(std::string_view piece) const;
  void require_room(index_t line, std::size_t bytes, std::size_t columns) const;
  void refuse_long_line();

  std::unique_ptr<TextBytes> bytes_;
  std::string shown_;
  std::size_t memory_bytes_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // the part of buffer_ that no line has used yet
  std::uint64_t buffer_offset_ = 0;  // the place of buffer_[0] in the file
  std::string_view text_;
  index_t number_ = 0;
  std::uint64_t offset_ = 0;
};

/// Returns the words of a line, which blanks and tabs separate.
std::vector<std::string_view> words_of(std::string_view line);
/// Returns the number of words in a line without storing them, because a line may have millions.
index_t count_words(std::string_view line);

}  // namespace qrtool
