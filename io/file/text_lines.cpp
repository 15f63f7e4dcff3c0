// SPDX-License-Identifier: Apache-2.0
// text_lines.cpp: reads pieces of a text file into a buffer and finds the ends of lines.
#include "io/file/text_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {
constexpr std::size_t piece_bytes = std::size_t{256} << 10;
constexpr std::size_t longest_line = std::size_t{1} << 30;
// The buffer of a line, the smaller one before it, and a copy.
constexpr std::size_t bytes_of_line = 4;

/// Returns the most columns that a piece of a line can have.
std::size_t columns_of(std::string_view piece) {
  std::ptrdiff_t most = 0;
  for (const char separator : {',', ';', '\t', ' '})
    most = std::max(most, std::count(piece.begin(), piece.end(), separator));
  return static_cast<std::size_t>(most) + 1;
}

}  // namespace

/// A file that is no text, or a small compressed one that becomes huge, is refused before a line of
/// it fills the memory.
void TextLines::require_words(std::string_view piece) const {
  if (piece.size() < piece_bytes) return;
  if (std::memchr(piece.data(), '\0', piece.size()) == nullptr &&
      piece.find_first_of(",; \t|") != std::string_view::npos)
    return;
  throw InputError(
      fmt::format("{}:{}:1: {} bytes without a separator or the end of the line: this is no table "
                  "of numbers",
                  shown_, number_ + 1, piece.size()));
}

void TextLines::require_room_for_columns() const {
  require_room(number_, text_.size(), columns_of(text_));
}

void TextLines::require_room(index_t line, std::size_t bytes, std::size_t columns) const {
  const std::size_t needed = bytes_of_line * bytes + bytes_of_column * columns;
  if (needed <= memory_bytes_) return;
  // A reader has a part of the memory, a quarter at least.
  throw LimitError(fmt::format("{}:{}:1: a line of {} with up to {} columns needs {} of memory; "
                               "reading may take {}",
                               shown_, line, format_bytes(bytes), columns, format_bytes(needed),
                               format_bytes(memory_bytes_)),
                   hint_of_memory(4 * needed));
}

/// Looks how long the line is that does not fit, for the message. Errors: LimitError.
void TextLines::refuse_long_line() {
  std::size_t bytes = 0, columns = 0;
  for (;;) {
    const std::string_view piece(buffer_.data(), end_);
    const std::size_t end = std::min(piece.find('\n'), piece.size());
    bytes += end;
    columns += columns_of(piece.substr(0, end));
    if (end < piece.size() || piece.empty() || bytes > longest_line) break;
    buffer_offset_ += end_;
    end_ = bytes_->read_at(buffer_offset_, buffer_.data(), buffer_.size());
  }
  require_room(number_ + 1, bytes, columns);
}

bool TextLines::fill() {
  if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  buffer_offset_ += begin_;
  end_ -= begin_;
  begin_ = 0;
  if (end_ >= longest_line) {
    throw InputError(fmt::format("{}:{}:1: the line is longer than 1 GiB", shown_, number_ + 1));
  }
  if (buffer_.size() < 2 * end_ + piece_bytes) {
    if (end_ >= piece_bytes && bytes_of_line * end_ > memory_bytes_) refuse_long_line();
    buffer_.resize(2 * end_ + piece_bytes);
  }
  const std::size_t got =
      bytes_->read_at(buffer_offset_ + end_, buffer_.data() + end_, buffer_.size() - end_);
  end_ += got;
  return got > 0;
}

bool TextLines::next() {
  const char* newline = nullptr;
  std::size_t searched = 0;
  for (;;) {
    const std::size_t size = end_ - begin_;
    if (size > searched) {
      newline = static_cast<const char*>(
          std::memchr(buffer_.data() + begin_ + searched, '\n', size - searched));
    }
    if (!newline) require_words({buffer_.data() + begin_ + searched, size - searched});
    searched = size;
    if (newline || !fill()) break;
  }
  if (begin_ == end_) return false;
  const char* start = buffer_.data() + begin_;
  const std::size_t length = newline ? static_cast<std::size_t>(newline - start) : end_ - begin_;
  text_ = {start, length};
  offset_ = buffer_offset_ + begin_;
  begin_ += length + (newline ? 1 : 0);
  ++number_;
  if (text_.ends_with('\r')) text_.remove_suffix(1);
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (offset_ == 0 && text_.starts_with(byte_order_mark)) {
    text_.remove_prefix(byte_order_mark.size());
  }
  return true;
}

void TextLines::seek(std::uint64_t offset, index_t number) {
  number_ = number - 1;
  if (offset >= buffer_offset_ && offset <= buffer_offset_ + end_) {
    begin_ = offset - buffer_offset_;
    return;
  }
  buffer_offset_ = offset;
  begin_ = end_ = 0;
}

namespace {

template <class Take>
void for_each_word(std::string_view line, const Take& take) {
  for (std::size_t at = line.find_first_not_of(" \t"); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    take(line.substr(at, end - at));
    at = line.find_first_not_of(" \t", end);
  }
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for_each_word(line, [&](std::string_view word) { words.push_back(word); });
  return words;
}

index_t count_words(std::string_view line) {
  index_t count = 0;
  for_each_word(line, [&](std::string_view) { ++count; });
  return count;
}

}  // namespace qrtool
