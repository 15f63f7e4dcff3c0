// SPDX-License-Identifier: Apache-2.0
// file_set.hpp: files that appear under their names together, or not at all.
#pragma once

#include <string>
#include <vector>

#include "io/file/atomic_file.hpp"

namespace qrtool {

/// The files of one result. All contents are on the disk before the first file gets its name. If
/// one file cannot get its name, all names are as before. A process that is killed at that moment
/// can leave some new files beside old ones.
class FileSet {
 public:
  /// Adds a file, which must outlive the set.
  void add(AtomicFile& file) { files_.push_back(&file); }
  /// Adds a file that the new ones make obsolete. commit() removes it if it exists.
  void add_obsolete(const std::string& path) { obsolete_.push_back(path); }
  /// Gives all files their names. Errors: OutputError; also if all files are in place but a
  /// directory cannot be synced, which the message says.
  void commit();

 private:
  void publish_all();
  void move_obsolete_aside();
  void withdraw_all() noexcept;

  /// An obsolete file and the temporary name that it has during a commit.
  struct Aside {
    std::string path, temporary_path;
  };
  std::vector<AtomicFile*> files_;
  std::vector<std::string> obsolete_;
  std::vector<Aside> aside_;
};

}  // namespace qrtool
