// SPDX-License-Identifier: Apache-2.0
// file_set.cpp: syncs all files, then changes all names, then syncs the directories.
#include "io/file/file_set.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// Returns one text for a directory, whatever path names it.
std::string canonical_directory_of(const std::string& path) {
  const std::string directory = directory_of(path);
  std::error_code error;
  const auto canonical = std::filesystem::canonical(directory, error);
  return error ? directory : canonical.string();
}

/// Returns 0 or errno.
int sync_directory(const std::string& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return 0;  // the directory may be writable but not readable
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return error == EINVAL || error == EROFS ? 0 : error;
}

}  // namespace

void FileSet::publish_all() {
  for (AtomicFile* file : files_) file->publish();
}

void FileSet::move_obsolete_aside() {
  for (const std::string& path : obsolete_) {
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) continue;
    const Aside moved{path, temporary_name(path)};
    if (rename(path.c_str(), moved.temporary_path.c_str()) != 0) {
      throw OutputError(fmt::format("cannot remove '{}': {}", escape(path), std::strerror(errno)));
    }
    aside_.push_back(moved);
  }
}

void FileSet::withdraw_all() noexcept {
  for (const auto& [path, temporary_path] : aside_) {
    (void)rename(temporary_path.c_str(), path.c_str());
  }
  for (AtomicFile* file : files_) file->withdraw();
}

void FileSet::commit() {
  for (AtomicFile* file : files_) file->prepare();
  for (const std::string& path : obsolete_) remove_stale(path);
  std::set<std::string> directories;
  {
    const NamesChange change;
    try {
      publish_all();
      move_obsolete_aside();
    } catch (...) {
      withdraw_all();
      throw;
    }
    for (const Aside& moved : aside_) unlink(moved.temporary_path.c_str());
    for (AtomicFile* file : files_) {
      file->settle();
      directories.insert(canonical_directory_of(file->target_));
    }
  }
  for (const std::string& directory : directories) {
    const int error = sync_directory(directory);
    if (error == 0) continue;
    throw OutputError(fmt::format("'{}' is complete, but its directory cannot be synced: {}",
                                  escape(files_.front()->path()), std::strerror(error)),
                      "the file can be used; a power failure now may still take it away");
  }
}

}  // namespace qrtool
