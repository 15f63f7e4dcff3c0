// SPDX-License-Identifier: Apache-2.0
// input_file.cpp: looks at a file's status, first bytes and name.
#include "io/file/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/read_write_at.hpp"
#include "io/file/text_bytes.hpp"
#include "io/file/text_lines.hpp"

namespace qrtool {
namespace {

[[noreturn]] void throw_cannot_read(const std::string& path, const std::string& reason,
                                    const std::string& hint = {}) {
  throw InputError(fmt::format("cannot read '{}': {}", escape(path), reason), hint);
}

Descriptor open_if_readable(const std::string& path) {
  return Descriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// Returns the hint for FILE:NAME and FILE[0:10] if FILE exists: a dataset begins with a slash, a
/// selection needs a colon before it, and factors are given without a name.
std::string hint_for_missing(const std::string& path) {
  const std::size_t join = path.find(":/");
  if (join != std::string::npos && is_directory(path.substr(0, join))) {
    const std::string joined = path.substr(0, join) + path.substr(join + 1);
    return file_exists(split_location(joined).file) ? "write " + escape(joined) : "";
  }
  const std::size_t bracket = path.find('[');
  if (bracket != std::string::npos && file_exists(path.substr(0, bracket))) {
    return fmt::format("a colon comes before a selection: '{}:{}'", escape(path.substr(0, bracket)),
                       escape(path.substr(bracket)));
  }
  const std::size_t colon = path.rfind(':', bracket);
  if (colon == std::string::npos || !file_exists(path.substr(0, colon))) return "";
  if (path.substr(colon + 1).starts_with('/'))
    return "name the file alone: " + escape(path.substr(0, colon));
  return fmt::format("a dataset's path begins with a slash: {}:/{}", escape(path.substr(0, colon)),
                     escape(path.substr(colon + 1)));
}

/// Returns the bytes from `position` on: fewer than `size` at the end of the file. Errors:
/// InputError.
std::string bytes_at(int descriptor, std::uint64_t position, std::size_t size,
                     const std::string& shown) {
  std::string bytes(size, '\0');
  bytes.resize(read_input(descriptor, position, bytes, shown));
  return bytes;
}

bool is_hdf5(int descriptor, const std::string& shown) {
  constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
  struct stat info {};
  if (fstat(descriptor, &info) != 0)
    throw InputError(fmt::format("cannot read '{}': {}", shown, std::strerror(errno)));
  for (off_t offset = 0; offset + 8 <= info.st_size; offset = offset == 0 ? 512 : 2 * offset) {
    const auto position = static_cast<std::uint64_t>(offset);
    if (bytes_at(descriptor, position, signature.size(), shown) == signature) return true;
  }
  return false;
}

/// Whether a word is `lower`, which is in lower case, in any case.
bool is_word_of_banner(std::string_view word, std::string_view lower) {
  return std::ranges::equal(word, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

bool is_text_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 ? byte != 0x7f : byte == '\t' || byte == '\n' || byte == '\r' || byte == '\f';
}

}  // namespace

bool file_exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

std::string ending_of(const std::string& path) {
  const std::size_t dot = path.rfind('.'), slash = path.rfind('/');
  if (dot == std::string::npos || (slash != std::string::npos && slash > dot)) return "";
  std::string ending = path.substr(dot);
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return ending;
}

bool has_text_ending(const std::string& path) {
  const std::string ending = ending_of(path);
  return ending == ".csv" || ending == ".tsv" || ending == ".txt";
}

std::uint64_t readable_size(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    const std::string reason = std::strerror(errno);
    throw_cannot_read(path, reason, hint_for_missing(path));
  }
  if (S_ISDIR(info.st_mode)) throw_cannot_read(path, "it is a directory");
  if (S_ISFIFO(info.st_mode)) throw_cannot_read(path, "it is a pipe, not a file");
  if (S_ISSOCK(info.st_mode)) throw_cannot_read(path, "it is a socket, not a file");
  if (!S_ISREG(info.st_mode)) throw_cannot_read(path, "it is a device, not a file");
  if (open_if_readable(path) < 0) throw_cannot_read(path, std::strerror(errno));
  if (info.st_size == 0) throw InputError(fmt::format("{}: the file is empty", escape(path)));
  return static_cast<std::uint64_t>(info.st_size);
}

Content sniff(const std::string& path) {
  const Descriptor descriptor = open_if_readable(path);
  if (descriptor < 0) throw_cannot_read(path, std::strerror(errno));
  return sniff(descriptor, escape(path));
}

Content sniff(int descriptor, const std::string& shown) {
  if (is_hdf5(descriptor, shown)) return Content::hdf5;
  if (is_compressed_text(descriptor, shown)) {
    const std::string head = head_of_text(descriptor, shown);
    if (is_octave_text(head)) return Content::octave_text;
    return is_matrix_market(head) ? Content::matrix_market : Content::gzip;
  }
  const std::string head = bytes_at(descriptor, 0, 4096, shown);
  const std::string_view text(head);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return Content::utf16;
  if (text.starts_with("\x93NUMPY")) return Content::npy;
  if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return Content::zip;
  if (is_matrix_market(text)) return Content::matrix_market;
  if (is_octave_text(text)) return Content::octave_text;
  return std::all_of(text.begin(), text.end(), is_text_byte) ? Content::text : Content::binary;
}

std::string first_bytes(const std::string& path, std::size_t size) {
  const Descriptor descriptor = open_if_readable(path);
  if (descriptor < 0) throw_cannot_read(path, std::strerror(errno));
  return bytes_at(descriptor, 0, size, escape(path));
}

bool is_matrix_market(std::string_view first_line) {
  constexpr std::string_view banner = "%%matrixmarket";
  return is_word_of_banner(first_line.substr(0, banner.size()), banner);
}

bool is_damaged_matrix_market(std::string_view first_line) {
  static constexpr std::array<std::array<std::string_view, 5>, 5> banner{
      {{"%%matrixmarket"},
       {"matrix"},
       {"array", "coordinate"},
       {"real", "double", "complex", "integer", "pattern"},
       {"general", "symmetric", "skew-symmetric", "hermitian"}}};
  const std::vector<std::string_view> words = words_of(first_line);
  if (words.size() > banner.size() || is_matrix_market(first_line)) return false;
  std::size_t next = 0;
  int found = 0;
  for (const std::string_view word : words)
    for (std::size_t place = next; place < banner.size(); ++place) {
      if (std::ranges::none_of(banner[place],
                               [&](auto each) { return is_word_of_banner(word, each); }))
        continue;
      next = place + 1;
      ++found;
      break;
    }
  return found >= 3;
}

bool is_octave_text(std::string_view head) {
  constexpr std::string_view name = "# name: ", type = "# type: ";
  constexpr std::array<std::string_view, 8> types{"matrix", "scalar", "cell", "struct",
                                                  "string", "range",  "bool", "handle"};
  if (head.starts_with("# Created by Octave")) return true;
  bool is_named = false;
  for (bool is_first = true; is_first || head.starts_with('#'); is_first = false) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    std::string_view line = head.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto ends_line = [&](std::string_view word) { return line.ends_with(word); };
    if (is_named && line.starts_with(type) && std::ranges::any_of(types, ends_line)) return true;
    is_named = line.starts_with(name);
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return false;
}

FileStamp::FileStamp(int descriptor) { fstat(descriptor, &then_); }

void FileStamp::require_unchanged(int descriptor, const std::string& shown) const {
  const FileStamp now(descriptor);
  const auto are_equal = [](const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
  };
  // A program can set back the time of the last write, but not the time of the last change of the
  // status.
  const bool is_same = now.then_.st_size == then_.st_size &&
                       are_equal(now.then_.st_mtim, then_.st_mtim) &&
                       are_equal(now.then_.st_ctim, then_.st_ctim);
  if (!is_same) throw_changed(shown);
}

void throw_changed(const std::string& shown) {
  throw InputError(fmt::format("{}: the file changed while it was being read", shown),
                   "wait until the program that writes it is done, or read a copy");
}

Location split_location(const std::string& path) {
  if (file_exists(path)) return {path, ""};
  for (std::size_t at = path.find(':'); at != std::string::npos; at = path.find(':', at + 1)) {
    const std::string file = path.substr(0, at);
    if (ending_of(file) == ".npz" && !is_directory(file)) return {file, path.substr(at + 1)};
  }
  std::size_t first = std::string::npos;
  for (std::size_t at = path.find(':'); at != std::string::npos; at = path.find(':', at + 1)) {
    const char next = at + 1 < path.size() ? path[at + 1] : '\0';
    if (next != '/' && next != '[') continue;
    const std::string file = path.substr(0, at);
    if (is_directory(file)) continue;
    if (file_exists(file)) return {file, path.substr(at + 1)};
    first = std::min(first, at);
  }
  if (first == std::string::npos) return {path, ""};
  return {path.substr(0, first), path.substr(first + 1)};
}

}  // namespace qrtool
