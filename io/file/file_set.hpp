// SPDX-License-Identifier: Apache-2.0
// file_set.hpp: files that appear under their names together, or not at all.
#pragma once

#include <string>
#include <vector>

#include "io/file/atomic_file.hpp"

namespace qrtool {

/// The files of one result. The content of all of them is on the disk before the first gets its
/// name. Where one of them cannot get its name, all names are as before; a process that is killed
/// in that moment can leave some new files beside old ones.
class FileSet {
 public:
  /// `file` outlives the set.
  void add(AtomicFile& file) { files_.push_back(&file); }
  /// A file that the new ones make obsolete: commit() removes it, where it exists.
  void add_obsolete(const std::string& path) { obsolete_.push_back(path); }
  /// Gives all files their names. Errors: OutputError. It is also thrown where everything is in
  /// place, but a directory cannot be synced; the message says so.
  void commit();

 private:
  void publish_all();
  void move_obsolete_aside();
  void withdraw_all() noexcept;

  /// An obsolete file that has a temporary name.
  struct Aside {
    std::string path, temporary_path;
  };
  std::vector<AtomicFile*> files_;
  std::vector<std::string> obsolete_;
  std::vector<Aside> aside_;
};

}  // namespace qrtool
