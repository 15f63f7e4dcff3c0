// SPDX-License-Identifier: Apache-2.0
// text_bytes.cpp: reads plain text, and decompresses gzip, and a text in a zip archive, piece by
// piece.
#include "io/file/text_bytes.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <new>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/input_file.hpp"
#include "io/file/read_write_at.hpp"

namespace qrtool {
namespace {

class PlainBytes final : public TextBytes {
 public:
  PlainBytes(int descriptor, std::string shown)
      : descriptor_(descriptor), shown_(std::move(shown)) {}
  ~PlainBytes() override { close(descriptor_); }
  std::size_t read_at(std::uint64_t offset, char* to, std::size_t size) override {
    return read_input(descriptor_, offset, {to, size}, shown_);
  }

 private:
  int descriptor_;
  std::string shown_;
};

/// The only member of a zip archive, a text that is deflated.
struct ZippedText {
  std::uint64_t start = 0;  // of the compressed bytes
  std::uint32_t checksum = 0;
};

/// Text of gzip, or of a zip archive.
class GzipBytes final : public TextBytes {
 public:
  GzipBytes(int descriptor, const std::string& shown, std::optional<ZippedText> zipped);
  ~GzipBytes() override { inflateEnd(&stream_); }
  std::size_t read_at(std::uint64_t offset, char* to, std::size_t size) override;

 private:
  void go_back();
  std::size_t inflate_some(char* to, std::size_t size);
  bool fill();
  bool begin_next_member();
  [[noreturn]] void throw_damaged(const std::string& how) const;

  static constexpr std::size_t piece_bytes = std::size_t{256} << 10;
  PlainBytes file_;
  std::string shown_;
  std::optional<ZippedText> zipped_;
  uLong checksum_ = 0;  // of the text of zip so far
  z_stream stream_{};
  std::vector<char> compressed_;
  std::uint64_t taken_ = 0;     // bytes of the file that were put into compressed_
  std::uint64_t position_ = 0;  // bytes of text that were decompressed
  bool is_at_end_ = false;
};

GzipBytes::GzipBytes(int descriptor, const std::string& shown, std::optional<ZippedText> zipped)
    : file_(descriptor, shown),
      shown_(shown),
      zipped_(zipped),
      compressed_(piece_bytes),
      taken_(zipped ? zipped->start : 0) {
  constexpr int gzip_alone = 16;
  if (inflateInit2(&stream_, zipped ? -MAX_WBITS : MAX_WBITS + gzip_alone) != Z_OK)
    throw std::bad_alloc();
}

void GzipBytes::throw_damaged(const std::string& how) const {
  if (zipped_)
    throw InputError(fmt::format("{}: the zip archive is damaged ({})", shown_, how),
                     "unzip -t tests it; copy or download the file again");
  throw InputError(fmt::format("{}: the gzip data is damaged ({})", shown_, how),
                   "gzip -t tests it; copy or download the file again");
}

/// Puts the next bytes of the file before the decompressor. Returns false at the end of the file.
bool GzipBytes::fill() {
  const std::size_t got = file_.read_at(taken_, compressed_.data(), compressed_.size());
  taken_ += got;
  stream_.next_in = reinterpret_cast<Bytef*>(compressed_.data());
  stream_.avail_in = static_cast<uInt>(got);
  return got > 0;
}

/// A gzip file may have several members, one after another, and zeros that pad its end.
bool GzipBytes::begin_next_member() {
  for (;;) {
    if (stream_.avail_in == 0 && !fill()) return false;
    if (*stream_.next_in != 0) break;
    ++stream_.next_in;
    --stream_.avail_in;
  }
  inflateReset(&stream_);
  return true;
}

std::size_t GzipBytes::inflate_some(char* to, std::size_t size) {
  stream_.next_out = reinterpret_cast<Bytef*>(to);
  stream_.avail_out = static_cast<uInt>(std::min(size, std::size_t{1} << 30));
  const uInt wanted = stream_.avail_out;
  while (!is_at_end_ && stream_.avail_out > 0) {
    if (stream_.avail_in == 0 && !fill()) throw_damaged("its end is missing");
    const Bytef* const from = stream_.next_out;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (zipped_) checksum_ = crc32(checksum_, from, static_cast<uInt>(stream_.next_out - from));
    if (result == Z_STREAM_END && zipped_) {
      is_at_end_ = true;
      if (checksum_ != zipped_->checksum) throw_damaged("its checksum is another one");
    } else if (result == Z_STREAM_END) {
      is_at_end_ = !begin_next_member();
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw_damaged(stream_.msg != nullptr ? stream_.msg : "it cannot be decompressed");
    }
  }
  position_ += wanted - stream_.avail_out;
  return wanted - stream_.avail_out;
}

void GzipBytes::go_back() {
  inflateReset(&stream_);
  stream_.avail_in = 0;
  taken_ = zipped_ ? zipped_->start : 0;
  position_ = checksum_ = 0;
  is_at_end_ = false;
}

std::size_t GzipBytes::read_at(std::uint64_t offset, char* to, std::size_t size) {
  if (offset < position_) go_back();
  std::vector<char> passed;
  while (position_ < offset) {
    passed.resize(piece_bytes);
    const auto left =
        static_cast<std::size_t>(std::min<std::uint64_t>(offset - position_, piece_bytes));
    if (inflate_some(passed.data(), left) == 0) return 0;
  }
  return inflate_some(to, size);
}

/// Returns the first four bytes of a file.
std::string first_four(int descriptor, const std::string& shown) {
  std::string found(4, '\0');
  found.resize(read_input(descriptor, 0, found, shown));
  return found;
}

bool is_gzip(std::string_view first) { return first.starts_with("\x1f\x8b"); }

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Returns the text of an archive whose only member is a deflated text; nothing for any other file.
/// The layout is that of APPNOTE.TXT 6.3.10 (PKWARE), sections 4.3 and 4.4.
std::optional<ZippedText> find_zipped(int descriptor, std::string_view first,
                                      const std::string& shown) {
  constexpr std::size_t end_bytes = 22, entry_bytes = 46, local_bytes = 30;
  const auto read = [&](std::uint64_t at, std::size_t bytes) {
    std::string found(bytes, '\0');
    found.resize(read_input(descriptor, at, found, shown));
    return found;
  };
  struct stat info {};
  if (first != "PK\x03\x04" || fstat(descriptor, &info) != 0 ||
      info.st_size < static_cast<off_t>(end_bytes))
    return {};
  const std::string end = read(static_cast<std::uint64_t>(info.st_size) - end_bytes, end_bytes);
  const std::string_view last(end);
  if (!last.starts_with("PK\x05\x06") || little_endian(last.substr(10, 2)) != 1) return {};
  const std::uint64_t place = little_endian(last.substr(16, 4));
  const std::string entry = read(place, entry_bytes);
  const std::string_view about(entry);
  if (about.size() < entry_bytes || !about.starts_with("PK\x01\x02")) return {};
  const std::string name = read(place + entry_bytes, little_endian(about.substr(28, 2)));
  const bool is_encrypted = little_endian(about.substr(8, 2)) % 2 != 0;
  const bool is_deflated = little_endian(about.substr(10, 2)) == 8;
  const std::uint64_t bytes = little_endian(about.substr(24, 4));
  if (is_encrypted || !is_deflated || bytes == UINT32_MAX || !has_text_ending(name)) return {};
  const std::uint64_t local = little_endian(about.substr(42, 4));
  const std::string head = read(local, local_bytes);
  if (head.size() < local_bytes || !head.starts_with("PK\x03\x04")) return {};
  return ZippedText{.start = local + local_bytes +
                             little_endian(std::string_view(head).substr(26, 2)) +
                             little_endian(std::string_view(head).substr(28, 2)),
                    .checksum = static_cast<std::uint32_t>(little_endian(about.substr(16, 4)))};
}

}  // namespace

std::string head_of_text(int descriptor, const std::string& shown) {
  std::string head(4096, '\0');
  head.resize(open_text_bytes(dup(descriptor), shown)->read_at(0, head.data(), head.size()));
  return head;
}

bool is_compressed_text(int descriptor, const std::string& shown) {
  const std::string first = first_four(descriptor, shown);
  return is_gzip(first) || find_zipped(descriptor, first, shown);
}

std::unique_ptr<TextBytes> open_text_bytes(int descriptor, const std::string& shown) {
  Descriptor owned(descriptor);
  const std::string first = first_four(owned, shown);
  const std::optional<ZippedText> zipped = find_zipped(owned, first, shown);
  if (zipped || is_gzip(first)) return std::make_unique<GzipBytes>(owned.release(), shown, zipped);
  return std::make_unique<PlainBytes>(owned.release(), shown);
}

}  // namespace qrtool
