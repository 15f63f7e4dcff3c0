// SPDX-License-Identifier: Apache-2.0
// text_bytes.cpp: reads plain text, and decompresses gzip piece by piece.
#include "io/file/text_bytes.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "core/error.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/read_write_at.hpp"

namespace qrtool {
namespace {

constexpr std::array<char, 2> gzip_signature{'\x1f', '\x8b'};

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

class GzipBytes final : public TextBytes {
 public:
  GzipBytes(int descriptor, const std::string& shown);
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
  z_stream stream_{};
  std::vector<char> compressed_;
  std::uint64_t taken_ = 0;     // bytes of the file that were put into compressed_
  std::uint64_t position_ = 0;  // bytes of text that were decompressed
  bool is_at_end_ = false;
};

GzipBytes::GzipBytes(int descriptor, const std::string& shown)
    : file_(descriptor, shown), shown_(shown), compressed_(piece_bytes) {
  constexpr int gzip_alone = 16;
  if (inflateInit2(&stream_, MAX_WBITS + gzip_alone) != Z_OK) throw std::bad_alloc();
}

void GzipBytes::throw_damaged(const std::string& how) const {
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
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
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
  taken_ = position_ = 0;
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

}  // namespace

bool is_gzip(int descriptor, const std::string& shown) {
  std::array<char, 2> found{};
  return read_input(descriptor, 0, found, shown) == found.size() && found == gzip_signature;
}

std::string head_of_text(int descriptor, const std::string& shown) {
  std::string head(4096, '\0');
  head.resize(open_text_bytes(dup(descriptor), shown)->read_at(0, head.data(), head.size()));
  return head;
}

std::unique_ptr<TextBytes> open_text_bytes(int descriptor, const std::string& shown) {
  Descriptor owned(descriptor);
  const bool is_compressed = is_gzip(owned, shown);
  if (is_compressed) return std::make_unique<GzipBytes>(owned.release(), shown);
  return std::make_unique<PlainBytes>(owned.release(), shown);
}

}  // namespace qrtool
