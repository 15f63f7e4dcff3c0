// SPDX-License-Identifier: Apache-2.0
// zip_directory.cpp: the layout is that of APPNOTE.TXT 6.3.10 (PKWARE), sections 4.3 and 4.4.
#include "io/npy/zip_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "io/file/read_write_at.hpp"

namespace qrtool::npy {
namespace {

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Reads bytes of the file: fewer at its end. Errors: InputError.
std::string read_some(const OpenFile& file, std::uint64_t position, std::size_t bytes) {
  if (position >= file.size) return {};
  std::string read(std::min<std::uint64_t>(bytes, file.size - position), '\0');
  read.resize(read_input(file.descriptor, position, read, file.shown));
  return read;
}

/// The place of the directory in the file.
struct Directory {
  std::uint64_t position = 0, bytes = 0;
};

/// Returns the directory, or nothing if it is not directly before the end record, as Python's
/// zipfile demands.
std::optional<Directory> find_directory(const OpenFile& file) {
  constexpr std::size_t end_bytes = 22, locator_bytes = 20, end64_bytes = 56, most_comment = 65535;
  const std::size_t most = end_bytes + locator_bytes + end64_bytes + most_comment;
  const std::string tail =
      read_some(file, file.size - std::min<std::uint64_t>(file.size, most), most);
  const std::size_t end = tail.rfind("PK\x05\x06");
  if (end == std::string::npos || end + end_bytes > tail.size()) return {};
  const std::string_view view(tail);
  std::uint64_t size = little_endian(view.substr(end + 12, 4));
  std::uint64_t offset = little_endian(view.substr(end + 16, 4));
  std::uint64_t directory_end = file.size - tail.size() + end;
  const std::size_t before64 = locator_bytes + end64_bytes;
  if (end >= before64 && view.substr(end - locator_bytes, 4) == "PK\x06\x07") {
    const std::size_t end64 = end - before64;
    if (view.substr(end64, 4) != "PK\x06\x06") return {};
    size = little_endian(view.substr(end64 + 40, 8));
    offset = little_endian(view.substr(end64 + 48, 8));
    directory_end -= before64;
  }
  if (size > directory_end || offset != directory_end - size) return {};
  return Directory{offset, size};
}

/// An entry of the directory.
struct Entry {
  std::uint64_t flags = 0, start = 0, bytes = 0;  // start: of the member; bytes: of the entry
  std::string name;
};

/// Returns the entry at `at` of the directory's text, or nothing if it is cut off.
std::optional<Entry> entry_at(std::string_view text, std::size_t at) {
  constexpr std::size_t fixed_bytes = 46;
  if (text.size() - at < fixed_bytes || text.substr(at, 4) != "PK\x01\x02") return {};
  const std::string_view fixed = text.substr(at, fixed_bytes);
  const std::size_t name = little_endian(fixed.substr(28, 2)),
                    extra = little_endian(fixed.substr(30, 2)),
                    comment = little_endian(fixed.substr(32, 2));
  Entry entry{.flags = little_endian(fixed.substr(8, 2)),
              .start = little_endian(fixed.substr(42, 4)),
              .bytes = fixed_bytes + name + extra + comment,
              .name = {}};
  if (text.size() - at < entry.bytes) return {};
  entry.name = text.substr(at + fixed_bytes, name);
  return entry;
}

/// Returns the reason why a member contradicts its entry of the directory, or an empty text.
std::string problem_of(const OpenFile& file, const Entry& entry) {
  constexpr std::uint64_t patched = 1 << 5, strongly_encrypted = 1 << 6, hidden_names = 1 << 13;
  if (entry.name.find('\0') != std::string::npos) return "a member's name has a NUL";
  if (entry.flags & patched) return "a member is a patch for another file";
  if (entry.flags & (strongly_encrypted | hidden_names)) return "a member is encrypted";
  constexpr std::uint64_t in_extra_field = 0xffffffff;
  if (entry.start == in_extra_field) return {};
  constexpr std::size_t fixed_bytes = 30;
  const std::string head = read_some(file, entry.start, fixed_bytes + entry.name.size());
  const std::string_view view(head);
  const bool is_same = view.size() == fixed_bytes + entry.name.size() &&
                       view.starts_with("PK\x03\x04") &&
                       little_endian(view.substr(26, 2)) == entry.name.size() &&
                       view.substr(fixed_bytes) == entry.name;
  return is_same ? "" : "a member has another name than the directory says";
}

}  // namespace

std::string problem_of_directory(const OpenFile& file) {
  const std::optional<Directory> directory = find_directory(file);
  if (!directory) return "the directory is not where the end of the file says";
  const std::string text = read_some(file, directory->position, directory->bytes);
  std::uint64_t first = UINT64_MAX;
  for (std::size_t at = 0; at < text.size();) {
    const std::optional<Entry> entry = entry_at(text, at);
    if (!entry) return "the directory is cut off";
    if (std::string problem = problem_of(file, *entry); !problem.empty()) return problem;
    first = std::min(first, entry->start);
    at += entry->bytes;
  }
  // A file that begins like an archive, and is another one.
  return first == 0 || first == UINT64_MAX ? "" : "there are bytes before the first member";
}

}  // namespace qrtool::npy
