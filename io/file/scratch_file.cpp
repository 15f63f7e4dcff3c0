// SPDX-License-Identifier: Apache-2.0
// scratch_file.cpp: creates a temporary file, unlinks it at once, and maps it.
#include "io/file/scratch_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/free_bytes.hpp"
#include "io/file/read_write_at.hpp"

namespace qrtool {
namespace {

[[noreturn]] void fail(const std::string& directory, std::size_t bytes, int error) {
  throw OutputError(fmt::format("scratch directory '{}': cannot have {} there: {}",
                                escape(directory), format_bytes(bytes), std::strerror(error)),
                    "name a directory with more room");
}

}  // namespace

std::string default_scratch() {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : directory.string();
}

Descriptor create_nameless(const std::string& directory) {
  // A signal between two calls would leave a file that has a name.
  Descriptor nameless(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (nameless >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return nameless;
  std::string name = directory + "/.qrtool-scratch-XXXXXX";
  Descriptor file(mkostemp(name.data(), O_CLOEXEC));
  if (file >= 0) unlink(name.c_str());
  return file;
}

int reserve_space(int file, std::uint64_t bytes) {
  // The free space is checked first, so that a disk that is too small is not filled even for a
  // moment.
  if (free_bytes(file) < bytes) return ENOSPC;
  if (bytes > static_cast<std::uint64_t>(INT64_MAX)) return EFBIG;
  return bytes == 0 ? 0 : posix_fallocate(file, 0, static_cast<off_t>(bytes));
}

void require_scratch(const std::string& directory) {
  const Descriptor file(create_nameless(directory));
  if (file >= 0) return;
  throw OutputError(fmt::format("--scratch '{}': no file can be created there: {}",
                                escape(directory), std::strerror(errno)),
                    "name a directory that exists and that you may write to");
}

ScratchFile::ScratchFile(const std::string& directory, std::uint64_t bytes)
    : file_(create_nameless(directory)), directory_(directory) {
  if (file_ < 0) fail(directory, bytes, errno);
  if (const int error = reserve_space(file_, bytes); error != 0) fail(directory, bytes, error);
}

void ScratchFile::write(std::uint64_t position, const void* from, std::size_t bytes) const {
  const TwoParts parts{{{const_cast<void*>(from), bytes}, {nullptr, 0}}};
  if (const int error = write_at(file_, position, parts); error != 0)
    fail(directory_, bytes, error);
}

void ScratchFile::read(std::uint64_t position, void* to, std::size_t bytes) const {
  const TwoParts parts{{{to, bytes}, {nullptr, 0}}};
  if (read_at(file_, position, parts) == bytes) return;
  throw OutputError(fmt::format("scratch directory '{}': cannot read what was written there: {}",
                                escape(directory_), std::strerror(errno != 0 ? errno : EIO)),
                    "name another directory");
}

HostMemory map_scratch(const std::string& directory, std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  const Descriptor file(create_nameless(directory));
  if (file < 0) fail(directory, bytes, errno);
  // Space is reserved now: writing to a mapped page without space would end the process.
  if (const int error = reserve_space(file, bytes); error != 0) fail(directory, bytes, error);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) fail(directory, bytes, errno);
  return {static_cast<std::byte*>(memory), [bytes](std::byte* p) { munmap(p, bytes); }};
}

}  // namespace qrtool
