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

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

[[noreturn]] void fail(const std::string& directory, std::size_t bytes, int error) {
  throw OutputError(fmt::format("--scratch '{}': cannot have {} there: {}", escape(directory),
                                format_bytes(bytes), std::strerror(error)),
                    "name a directory with more room");
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return number_; }

 private:
  int number_;
};

}  // namespace

int create_nameless(const std::string& directory) {
  std::string name = directory + "/.qrtool-scratch-XXXXXX";
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file >= 0) unlink(name.c_str());
  return file;
}

void require_scratch(const std::string& directory) {
  const Descriptor file(create_nameless(directory));
  if (file >= 0) return;
  throw OutputError(fmt::format("--scratch '{}': no file can be created there: {}",
                                escape(directory), std::strerror(errno)),
                    "name a directory that exists and that you may write to");
}

HostMemory map_scratch(const std::string& directory, std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  const Descriptor file(create_nameless(directory));
  if (file < 0) fail(directory, bytes, errno);
  // Space is reserved now: writing to a mapped page without space would end the process.
  if (const int error = posix_fallocate(file, 0, static_cast<off_t>(bytes)); error != 0)
    fail(directory, bytes, error);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) fail(directory, bytes, errno);
  return {static_cast<std::byte*>(memory), [bytes](std::byte* p) { munmap(p, bytes); }};
}

}  // namespace qrtool
