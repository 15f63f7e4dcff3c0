// SPDX-License-Identifier: Apache-2.0
// read_write_at.cpp: repeats preadv and pwritev until all bytes are transferred.
#include "io/file/read_write_at.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace qrtool {
namespace {

/// Removes `bytes` from the front.
void advance(TwoParts& parts, std::size_t bytes) {
  for (iovec& part : parts) {
    const std::size_t taken = std::min(bytes, part.iov_len);
    part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
    part.iov_len -= taken;
    bytes -= taken;
  }
}

/// Repeats `transfer` until all bytes are done, it fails, or it returns 0. Returns the number of
/// bytes done; errno is 0 unless it failed.
template <class Transfer>
std::size_t repeat(Transfer transfer, int descriptor, std::uint64_t position, TwoParts& parts) {
  std::size_t done = 0;
  errno = 0;
  while (parts[0].iov_len + parts[1].iov_len > 0) {
    const ssize_t moved = transfer(descriptor, parts.data(), static_cast<int>(parts.size()),
                                   static_cast<off_t>(position + done));
    if (moved < 0 && errno != EINTR) break;
    errno = 0;
    if (moved < 0) continue;
    if (moved == 0) break;
    done += static_cast<std::size_t>(moved);
    advance(parts, static_cast<std::size_t>(moved));
  }
  return done;
}

}  // namespace

std::size_t read_at(int descriptor, std::uint64_t position, TwoParts parts) {
  return repeat(preadv, descriptor, position, parts);
}

std::size_t read_input(int descriptor, std::uint64_t position, std::span<char> to,
                       const std::string& shown) {
  const std::size_t got = read_at(descriptor, position, {{{to.data(), to.size()}, {nullptr, 0}}});
  if (errno == 0) return got;
  throw InputError(fmt::format("cannot read '{}': {}", shown, std::strerror(errno)));
}

int write_at(int descriptor, std::uint64_t position, TwoParts parts) {
  const std::size_t bytes = parts[0].iov_len + parts[1].iov_len;
  if (repeat(pwritev, descriptor, position, parts) == bytes) return 0;
  return errno != 0 ? errno : EIO;
}

void begin_sync(int descriptor, const FileRange& range) {
  constexpr std::uint64_t page = 4096;
  const std::uint64_t position = range.position, end = (position + range.bytes) / page * page;
  if (end <= position) return;
  // The call is only a hint. fsync reports the data that do not reach the disk.
  sync_file_range(descriptor, static_cast<off_t>(position), static_cast<off_t>(end - position),
                  SYNC_FILE_RANGE_WRITE);
}

int useful_writing_threads(int threads) {
  constexpr int most = 3;
  return std::clamp(threads, 1, most);
}

int useful_reading_threads(int threads) {
  constexpr int most = 8;
  return std::clamp(threads, 1, most);
}

}  // namespace qrtool
