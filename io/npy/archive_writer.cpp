// SPDX-License-Identifier: Apache-2.0
// archive_writer.cpp: libzip writes the archive, to a file that this program has opened.
#include "io/npy/archive_writer.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/read_write_at.hpp"

namespace qrtool::npy {
namespace {

/// The file that libzip writes to. libzip would open it by its name and replace it by another.
struct Target {
  int descriptor = -1;
  std::uint64_t position = 0, size = 0;
  zip_error_t error{};
};

zip_int64_t write_some(Target& target, const void* data, zip_uint64_t bytes) {
  const TwoParts parts{{{const_cast<void*>(data), bytes}, {nullptr, 0}}};
  const int error = write_at(target.descriptor, target.position, parts);
  if (error != 0) {
    zip_error_set(&target.error, ZIP_ER_WRITE, error);
    return -1;
  }
  target.position += bytes;
  target.size = std::max(target.size, target.position);
  return static_cast<zip_int64_t>(bytes);
}

/// Answers libzip's commands for the target.
zip_int64_t serve(void* state, void* data, zip_uint64_t bytes, zip_source_cmd_t command) {
  Target& target = *static_cast<Target*>(state);
  switch (command) {
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(
          ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
          ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS,
          ZIP_SOURCE_BEGIN_WRITE, ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE,
          ZIP_SOURCE_WRITE, ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_STAT: {
      auto* const answer = static_cast<zip_stat_t*>(data);
      zip_stat_init(answer);
      answer->size = target.size;
      answer->valid = ZIP_STAT_SIZE;
      return sizeof(zip_stat_t);
    }
    case ZIP_SOURCE_WRITE:
      return write_some(target, data, bytes);
    case ZIP_SOURCE_SEEK_WRITE: {
      const zip_int64_t position =
          zip_source_seek_compute_offset(target.position, target.size, data, bytes, &target.error);
      if (position < 0) return -1;
      target.position = static_cast<std::uint64_t>(position);
      return 0;
    }
    case ZIP_SOURCE_TELL_WRITE:
      return static_cast<zip_int64_t>(target.position);
    case ZIP_SOURCE_ERROR:
      return zip_error_to_data(&target.error, data, bytes);
    default:  // the file is new: there is nothing to read, and what is written stays
      return 0;
  }
}

/// Throws the error away with the archive, unless it was closed.
struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};

class ArchiveWriter {
 public:
  explicit ArchiveWriter(const OutputFile& to)
      : shown_(to.shown), target_{.descriptor = to.descriptor} {
    zip_error_t error{};
    zip_source_t* const source = zip_source_function_create(serve, &target_, &error);
    if (source == nullptr) fail(error);
    archive_.reset(zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, &error));
    if (archive_) return;
    zip_source_free(source);
    fail(error);
  }

  void add(const Member& member) {
    std::FILE* const file = fdopen(dup(member.file), "r");
    if (file == nullptr) fail(errno);
    zip_error_t error{};
    zip_source_t* const source = zip_source_filep_create(file, 0, -1, &error);
    if (source == nullptr) {
      std::fclose(file);
      fail(error);
    }
    const zip_int64_t index =
        zip_file_add(archive_.get(), member.name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      fail(*zip_get_error(archive_.get()));
    }
    constexpr zip_uint16_t midnight = 0, first_of_1980 = 0x21;
    const auto at = static_cast<zip_uint64_t>(index);
    if (zip_set_file_compression(archive_.get(), at, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive_.get(), at, midnight, first_of_1980, 0) != 0) {
      fail(*zip_get_error(archive_.get()));
    }
  }

  void close() {
    if (zip_close(archive_.get()) != 0) fail(*zip_get_error(archive_.get()));
    static_cast<void>(archive_.release());
  }

 private:
  [[noreturn]] void fail(int system_error) const {
    zip_error_t error{};
    zip_error_set(&error, ZIP_ER_WRITE, system_error);
    fail(error);
  }
  [[noreturn]] void fail(zip_error_t error) const {
    const bool is_limit =
        zip_error_system_type(&error) == ZIP_ET_SYS && zip_error_code_system(&error) == EFBIG;
    throw OutputError(
        fmt::format("cannot write '{}': {}", shown_,
                    is_limit ? "the file size limit is reached" : zip_error_strerror(&error)));
  }

  const std::string& shown_;
  Target target_;
  std::unique_ptr<zip_t, Discard> archive_;
};

}  // namespace

void write_archive(const OutputFile& to, std::span<const Member> members) {
  ArchiveWriter archive(to);
  for (const Member& member : members) archive.add(member);
  archive.close();
}

}  // namespace qrtool::npy
