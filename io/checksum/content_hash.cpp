// SPDX-License-Identifier: Apache-2.0
// content_hash.cpp: reads the blocks of a file that its hash is made of.
#include "io/checksum/content_hash.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/checksum/number_hash.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/input_file.hpp"
#include "io/file/read_write_at.hpp"

namespace qrtool {
namespace {

constexpr std::uint64_t block_bytes = 64 << 10, most_blocks = 1024;

void add_bytes(NumberHash& hash, const std::vector<char>& bytes) {
  std::uint64_t word = 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof word) {
    word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash.add_word(word);
  }
}

}  // namespace

std::uint64_t content_hash(const std::string& path) {
  const std::uint64_t size = readable_size(path);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  NumberHash hash;
  hash.add_word(size);
  const std::uint64_t blocks = std::min((size + block_bytes - 1) / block_bytes, most_blocks);
  // The first block begins at byte 0 and the last one ends with the file.
  const std::uint64_t last_begin = size - std::min(size, block_bytes);
  std::vector<char> bytes;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const std::uint64_t begin = blocks == 1 ? 0 : last_begin / (blocks - 1) * block;
    bytes.resize(std::min(block_bytes, size - begin));
    const std::size_t got = read_at(file, begin, {iovec{bytes.data(), bytes.size()}, iovec{}});
    if (got < bytes.size() && errno != 0)
      throw InputError(fmt::format("{}: {}", escape(path), std::strerror(errno)));
    if (got < bytes.size()) throw_changed(escape(path));
    add_bytes(hash, bytes);
  }
  return hash.value();
}

}  // namespace qrtool
