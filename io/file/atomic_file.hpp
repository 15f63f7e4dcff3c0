// SPDX-License-Identifier: Apache-2.0
// atomic_file.hpp: writes a file that appears under its name complete and synced, or not at all.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

namespace qrtool {

/// A temporary file `.<name>.qrtool-<pid>-<random>.tmp` in the directory of `path`, locked as long
/// as it exists. The destructor removes it unless commit() was called; a signal handler removes it
/// with `remove_temporary_files`. The constructor first removes temporary files that killed runs
/// left for the same output. Errors: OutputError if `path` exists without `force`, is a directory,
/// FIFO or device, or cannot be created.
class AtomicFile {
 public:
  AtomicFile(const std::string& path, bool force);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }
  const std::string& temporary_path() const { return temporary_path_; }

  /// Reserves disk space. Fails at once if the disk has less. Reserving takes a second for 8 GiB in
  /// memory and goes on beside the caller. Errors: OutputError.
  void reserve(std::uint64_t bytes);
  /// Waits until the space is reserved. Call it before the first result is written. Errors:
  /// OutputError.
  void require_space();

  /// Syncs the file, renames it and syncs its directory, as FileSet (file_set.hpp) does for several
  /// files. Without `force`, a file that has appeared under the name in the meantime is kept, and
  /// OutputError is thrown. With `force`, the new file gets the mode of the file that it replaces
  /// and, if the system allows it, its owner.
  void commit();

 private:
  friend class FileSet;
  /// The mode and the owner of the file that is replaced.
  struct Rights {
    mode_t mode;
    uid_t owner;
    gid_t group;
  };
  [[noreturn]] void throw_full(std::uint64_t wanted, std::uint64_t available) const;
  int create();
  int reserve_pieces(std::uint64_t bytes) const;
  static std::optional<Rights> rights_of(const std::string& target);
  void set_rights() const;
  /// The steps of a commit. prepare() writes the content to the disk. publish() gives the file its
  /// name; the replaced file gets the temporary name, so that withdraw() can undo the step.
  /// settle() removes the replaced file.
  void prepare();
  void publish();
  void withdraw() noexcept;
  void settle() noexcept;

  std::string path_, target_, temporary_path_;  // target_ is path_ with links resolved
  bool force_;
  std::optional<Rights> replaced_rights_;
  enum class Name { temporary, final, exchanged } name_ = Name::temporary;
  bool committed_ = false;
  std::uint64_t wanted_bytes_ = 0;      // by reserve()
  std::future<int> reserving_;          // 0 or the number of an error
  std::atomic<bool> gives_up_ = false;  // the reservation is not needed any more
  bool reserved_ = false;
  int descriptor_ = -1;
  int slot_ = -1;  // in the list that the signal handler walks
};

/// Returns the temporary files of this process that are not yet committed.
std::vector<std::string> live_temporary_files();
/// Makes remove_temporary_files also remove this temporary file of another process. Ranks call it
/// for the files of rank 0, which may be killed.
void adopt_temporary_file(const std::string& temporary_path);

/// While an object of this class exists, its thread takes no signal, and remove_temporary_files()
/// waits in every other thread. It protects the moments in which names appear or change places.
/// After remove_temporary_files() the constructor waits for the end of the process.
class NamesChange {
 public:
  NamesChange();
  ~NamesChange();
  NamesChange(const NamesChange&) = delete;
  NamesChange& operator=(const NamesChange&) = delete;

 private:
  sigset_t before_;
};

/// Returns the directory of a file: "dir/", or ".".
std::string directory_of(const std::string& path);

/// Checks whether an AtomicFile could be created, without creating it. Errors: OutputError.
void require_writable(const std::string& path, bool force);

/// Returns a name for a temporary file beside `target`, of the form that AtomicFile uses.
std::string temporary_name(const std::string& target);
/// Removes the temporary files of `target` that killed runs left. Such a file is not locked.
void remove_stale(const std::string& target);

enum class Removed { none, some, gone };
/// Unlinks every live temporary file. Returns `none` if there are none, and `gone` if another
/// process has already unlinked them all. The process must end after it: a thread that wants to
/// create or commit a file waits until then. Async-signal-safe.
Removed remove_temporary_files() noexcept;

}  // namespace qrtool
