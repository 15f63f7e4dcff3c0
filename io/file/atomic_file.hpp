// SPDX-License-Identifier: Apache-2.0
// atomic_file.hpp: writes a file that appears under its name complete and synced, or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qrtool {

/// A temporary file `.<name>.qrtool-<pid>-<random>.tmp` in the directory of `path`, locked as long
/// as it exists. The destructor removes it unless commit() was called; a signal handler removes it
/// with `remove_temporary_files`. The constructor first removes temporary files that killed runs
/// left for the same output. Errors: OutputError where `path` exists without `force`, is a
/// directory, FIFO or device, or cannot be created.
class AtomicFile {
 public:
  AtomicFile(const std::string& path, bool force);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  const std::string& temporary_path() const { return temporary_path_; }

  /// Reserves disk space, so that the program fails before any work if the disk is too small.
  void reserve(std::uint64_t bytes);

  /// Syncs the file, renames it and syncs its directory. Without `force`, a file that has appeared
  /// under the name in the meantime is kept, and OutputError is thrown.
  void commit();

 private:
  std::string path_, target_, temporary_path_;  // target_ is path_ with links resolved
  bool force_;
  bool committed_ = false;
  bool reserved_ = false;
  int descriptor_ = -1;
  int slot_ = -1;  // in the list that the signal handler walks
};

/// The temporary files of this process that are not yet committed.
std::vector<std::string> live_temporary_files();
/// Makes remove_temporary_files also remove this temporary file of another process. Ranks call it
/// for the files of rank 0, which may be killed.
void adopt_temporary_file(const std::string& temporary_path);

enum class Removed { none, some, gone };
/// Unlinks every live temporary file. Returns `none` where there are none, and `gone` where another
/// process has already unlinked all of them. Async-signal-safe.
Removed remove_temporary_files() noexcept;

}  // namespace qrtool
