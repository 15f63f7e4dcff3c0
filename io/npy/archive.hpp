// SPDX-License-Identifier: Apache-2.0
// archive.hpp: the arrays in a .npz, which is a zip archive of .npy files.
#pragma once

#include <zip.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "io/npy/array.hpp"

namespace qrtool::npy {

/// An open zip archive of arrays. Several threads may use it.
class Archive : public std::enable_shared_from_this<Archive> {
 public:
  /// Opens an archive. Errors: InputError if it is damaged, or if two of its members have one name.
  static std::shared_ptr<Archive> open(const std::string& path, const std::string& scratch);

  const OpenFile& file() const { return *file_; }
  /// The names of the members, without ".npy".
  const std::vector<std::string>& names() const { return names_; }
  /// Returns the number of the member with this name, which may end in ".npy", or -1.
  index_t find(const std::string& name) const;

  /// Returns the array of a member. Uncompressed numbers are read from the file, after the member's
  /// checksum was compared; compressed numbers are unpacked to scratch memory. Both happen before
  /// the first number is read. Errors: InputError, also if the member is encrypted, compressed by
  /// another method than deflate, or larger than its data allow.
  ArrayParts array(index_t member);

  /// Returns the text of a member that is one ASCII string, or an empty text for any other member.
  /// Errors: InputError if it is damaged.
  std::string text(index_t member);

  Archive(std::shared_ptr<const OpenFile> file, std::string scratch);

 private:
  struct Discard {
    void operator()(zip_t* archive) const { zip_discard(archive); }
  };
  struct Close {
    void operator()(zip_file_t* member) const { zip_fclose(member); }
  };
  using OpenMember = std::unique_ptr<zip_file_t, Close>;

  void open_directory();
  void collect_names();
  void refuse_foreign() const;
  zip_stat_t describe(index_t member) const;
  std::string shown_name(index_t member) const;
  void require_readable(const zip_stat_t& about, const std::string& shown) const;
  OpenMember open_member(index_t member, const std::string& shown) const;
  std::size_t read(const OpenMember& open, void* to, std::size_t bytes,
                   const std::string& shown) const;
  void require_end(const OpenMember& open, const std::string& shown) const;
  NumbersPlace check_in_place(index_t member, const Header& header, const std::string& shown);
  NumbersPlace unpack(index_t member, const Header& header, const std::string& shown);

  std::shared_ptr<const OpenFile> file_;
  std::string scratch_;
  std::mutex mutex_;             // of what follows
  std::FILE* stream_ = nullptr;  // what archive_ reads; archive_ owns it
  std::unique_ptr<zip_t, Discard> archive_;
  std::vector<std::string> names_;
};

}  // namespace qrtool::npy
