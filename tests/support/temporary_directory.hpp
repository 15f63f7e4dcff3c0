// SPDX-License-Identifier: Apache-2.0
// temporary_directory.hpp: an empty directory for a test, and small files in it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qrtool::test {

/// An empty directory that is removed with its contents.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  /// The names in the directory, sorted, with the hidden ones.
  std::vector<std::string> names() const;

 private:
  std::filesystem::path path_;
};

/// Returns all bytes of a file, or nothing where it cannot be read.
std::string read_text(const std::string& path);
/// Replaces the file or creates it.
void write_text(const std::string& path, const std::string& text);

}  // namespace qrtool::test
