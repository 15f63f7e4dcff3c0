// SPDX-License-Identifier: Apache-2.0
// scratch_file.hpp: files without a name, and memory that the system may move to one when memory is
// scarce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/batch.hpp"
#include "io/file/descriptor.hpp"

namespace qrtool {

/// Checks that a file can be created in `directory`. Errors: OutputError.
void require_scratch(const std::string& directory);

/// Returns the directory for scratch files if the user names none: $TMPDIR, or /tmp.
std::string default_scratch();

/// Creates a file that never has a name and disappears when it is closed. On a file system without
/// such files it has a name for a moment. If it fails, the descriptor is negative and errno is set.
Descriptor create_nameless(const std::string& directory);

/// Reserves disk space for a file, and gives it this size. Returns 0 or errno; ENOSPC comes before
/// anything is reserved.
int reserve_space(int file, std::uint64_t bytes);

/// A file without a name in `directory`, with reserved space, for numbers that are needed again.
/// Its bytes are not part of the process's memory. Several threads may read and write. Errors:
/// OutputError.
class ScratchFile {
 public:
  ScratchFile() = default;
  ScratchFile(const std::string& directory, std::uint64_t bytes);

  explicit operator bool() const { return file_ >= 0; }
  void write(std::uint64_t position, const void* from, std::size_t bytes) const;
  void read(std::uint64_t position, void* to, std::size_t bytes) const;

 private:
  Descriptor file_;
  std::string directory_;
};

/// Maps `bytes` of memory from a file without a name in `directory`. The file's space is reserved,
/// and is freed with the memory or when the process ends. Errors: OutputError.
HostMemory map_scratch(const std::string& directory, std::size_t bytes);

}  // namespace qrtool
