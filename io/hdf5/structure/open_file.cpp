// SPDX-License-Identifier: Apache-2.0
// open_file.cpp: opens files, and finds the reasons why one cannot be opened.
#include "io/hdf5/structure/open_file.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/csv/guide.hpp"
#include "io/file/foreign.hpp"
#include "io/hdf5/structure/driver.hpp"
#include "io/hdf5/structure/watch.hpp"

namespace qrtool::hdf5 {
namespace {

[[noreturn]] void throw_not_hdf5(const InputFile& file, Content content) {
  refuse_foreign_format(first_bytes(file.name, 128), file.name);
  refuse_foreign_name(file.name);
  if (content == Content::binary) {
    throw InputError(fmt::format("{}: not an HDF5 file", file.shown),
                     "write the matrices as HDF5, .npy, .npz, Matrix Market or, with the ending "
                     ".csv, .tsv or .txt, as CSV");
  }
  const std::string head = first_bytes(file.name, 64);
  if (head.starts_with('%') && is_matrix_market("%" + head))
    throw InputError(
        fmt::format("{}:1:1: the first line of a Matrix Market file begins with two signs, %%",
                    file.shown),
        "write %%MatrixMarket at its start");
  throw InputError(
      fmt::format("{}: not an HDF5 file (it looks like text)", file.shown),
      reads_as_table(file.name)
          ? fmt::format("for CSV let the name end in .csv, or use standard input: - < {}",
                        file.shown)
          : "");
}

/// Returns the number that follows `key` in an error text of HDF5.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  std::uint64_t number = 0;
  const char* begin = text.data() + at + key.size();
  if (std::from_chars(begin, text.data() + text.size(), number).ec != std::errc()) return {};
  return number;
}

[[noreturn]] void throw_cannot_open(const InputFile& file, const std::string& error) {
  refuse_newer_format(file, "it", error);
  if (const auto expected = number_after(error, "stored_eof = ")) {
    throw InputError(
        fmt::format("{}: truncated: {} of {} bytes", file.shown, file.size, *expected));
  }
  if (error.find("already open for write") != std::string::npos) {
    throw InputError(
        fmt::format("{}: it is being written by another program, or was not closed", file.shown),
        fmt::format("if no program has it open: h5clear -s {}", file.shown));
  }
  if (error.find("unable to lock file") != std::string::npos) {
    throw InputError(fmt::format("{}: it is being written by another program", file.shown));
  }
  throw InputError(
      fmt::format("{}: damaged HDF5 file ({})", file.shown, escape(innermost_error(error))));
}

/// Bounds the indexes of chunks that HDF5 keeps in memory, which would need 32 MiB for many small
/// chunks. The bound counts the bytes of a node in the file, and its copy in memory is up to eight
/// times as large. Chunks are looked up in the order of the file, so that few nodes are enough.
void limit_kept_structure(hid_t access) {
  H5AC_cache_config_t config{};
  config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  if (H5Pget_mdc_config(access, &config) < 0) return;
  config.set_initial_size = true;
  config.initial_size = config.min_size = config.max_size = std::size_t{1} << 18;
  config.incr_mode = H5C_incr__off;
  config.flash_incr_mode = H5C_flash_incr__off;
  config.decr_mode = H5C_decr__off;
  H5Pset_mdc_config(access, &config);
}

}  // namespace

void refuse_newer_format(const InputFile& file, std::string_view what, const std::string& error) {
  const std::string reason = innermost_error(error);
  if (!reason.starts_with("bad version number") && !reason.starts_with("bad superblock version"))
    return;
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  throw InputError(
      fmt::format(
          "{}: {} is in a format that HDF5 {}.{}.{} does not know ({}): a newer release wrote "
          "it, or it is damaged",
          file.shown, what, major, minor, release, escape(reason)),
      "write it again in an older format: with h5py h5py.File(name, \"w\", libver=\"v110\"), or "
      "without libver");
}

InputFile open_file(const std::string& name) {
  InputFile file{
      .name = name, .shown = escape(name), .size = readable_size(name), .handle = {}, .stamp = {}};
  const Session session(file.shown);
  remember_file(file.shown);
  watch_library(file.size);
  const Content content = sniff(name);
  if (content != Content::hdf5) throw_not_hdf5(file, content);
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access, true, true);
  set_locating_driver(access);
  limit_kept_structure(access);
  file.handle = Handle(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (!file.handle) throw_cannot_open(file, take_error());
  file.stamp.emplace(descriptor_of(file.handle));
  const std::string head = first_bytes(name, 32);
  for (const char* mark : {"HDF5-based Julia Data Format", "Julia data file"})
    file.is_by_julia = file.is_by_julia || head.starts_with(mark);
  // A look-up by name reads more of a group than a walk over it does. After a walk it reads nothing
  // more.
  if (H5Lexists(file.handle, "qrtool", H5P_DEFAULT) < 0) throw_cannot_open(file, take_error());
  return file;
}

}  // namespace qrtool::hdf5
