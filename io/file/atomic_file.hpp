// SPDX-License-Identifier: Apache-2.0
// atomic_file.hpp: a file that appears under its name complete and synced, or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace qrtool {

/// A temporary file `.<name>.qrtool-<pid>-<random>.tmp` beside `path`, locked while it lives. Its
/// destructor removes it unless commit() was called; so does `remove_temporary_files` in a signal
/// handler. Temporaries that a killed run left for the same output are removed first.
/// Errors: OutputError where `path` exists without `force`, is a directory, FIFO or device, or
/// cannot be created.
class AtomicFile {
 public:
  AtomicFile(const std::string& path, bool force);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  const std::string& temporary_path() const { return temporary_path_; }

  /// Reserves disk space, so that a disk that is too small is found out before any work.
  void reserve(std::uint64_t bytes);

  /// Sync the file, rename it, sync its directory. Without `force`, a file that appeared under the
  /// name meanwhile is kept and OutputError thrown.
  void commit();

 private:
  std::string path_, target_, temporary_path_;  // target_: path_ with links resolved
  bool force_;
  bool committed_ = false;
  bool reserved_ = false;
  int descriptor_ = -1;
  int slot_ = -1;  // in the list that the signal handler walks
};

/// Of this process, not yet committed.
std::vector<std::string> live_temporary_files();
/// Has remove_temporary_files take the temporary file of another process for one of this one's, as
/// ranks do with those of rank 0, which may be killed.
void adopt_temporary_file(const std::string& temporary_path);

enum class Removed { none, some, gone };
/// Unlinks every live temporary file: `none` where there are none, `gone` where another process has
/// unlinked all of them. Async-signal-safe.
Removed remove_temporary_files() noexcept;

}  // namespace qrtool
