// SPDX-License-Identifier: Apache-2.0
// created_file.cpp: creates file, groups, datasets and attributes, and says why one of them fails.
#include "io/hdf5/write/created_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/hdf5/structure/driver.hpp"
#include "io/hdf5/write/chunk_writer.hpp"

namespace qrtool::hdf5 {
namespace {

/// Returns a name that leads to the open file itself. In a folder that others may write to, the
/// file's own name could be given to another file. Returns the own name if the system has no such
/// names.
std::string name_by_descriptor(const AtomicFile& file) {
  std::string name = fmt::format("/proc/self/fd/{}", file.descriptor());
  return access(name.c_str(), R_OK | W_OK) == 0 ? name : file.temporary_path();
}

}  // namespace

void CreatedFile::fail() {
  const Session session;
  stop_closing();
  const std::string error = take_error();
  constexpr std::string_view key = "error message = '";
  std::string reason = escape(innermost_error(error));
  if (const std::size_t at = error.find(key); at != std::string::npos) {
    reason = error.substr(at + key.size(), error.find('\'', at + key.size()) - at - key.size());
  }
  fail(std::move(reason));
}

void CreatedFile::fail(std::string reason) {
  stop_closing();
  if (reason == "File too large") reason = "the file size limit is reached";
  if (reason.empty()) reason = "an earlier write failed";
  if (reason == std::strerror(ENOMEM)) {
    throw LimitError(fmt::format("cannot write '{}': out of memory", escape(atomic_.path())),
                     "try a smaller --memory or fewer --threads");
  }
  throw OutputError(fmt::format("cannot write '{}': {}", escape(atomic_.path()), reason));
}

void CreatedFile::create() {
  constexpr unsigned all_in_header = 64;  // HDF5 stores more attributes than this in a heap
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(creation, false));
  check(H5Pset_attr_phase_change(creation, all_in_header, 0));
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  check(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110));
  check(H5Pset_file_locking(access, false, true));  // atomic_ already holds the lock
  check(H5Pset_fclose_degree(access, H5F_CLOSE_SEMI));
  check(set_locating_driver(access));
  handle_ =
      Handle(check(H5Fcreate(name_by_descriptor(atomic_).c_str(), H5F_ACC_TRUNC, creation, access)),
             H5Fclose);
}

/// Creates the groups that lead to `path`. HDF5 would store the time in groups that it creates
/// itself.
void CreatedFile::create_groups(const std::string& path) {
  const Handle creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(creation, false));
  for (std::size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1)) {
    const std::string group = path.substr(0, end);
    if (group.back() == '/' || check(H5Lexists(handle_, group.c_str(), H5P_DEFAULT)) > 0) continue;
    const Handle created(
        check(H5Gcreate2(handle_, group.c_str(), H5P_DEFAULT, creation, H5P_DEFAULT)), H5Gclose);
  }
}

Handle CreatedFile::create_group(const std::string& path) {
  const Handle creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(creation, false));
  create_groups(path);
  return Handle(check(H5Gcreate2(handle_, path.c_str(), H5P_DEFAULT, creation, H5P_DEFAULT)),
                H5Gclose);
}

void CreatedFile::create_attribute(hid_t object, const std::string& name,
                                   const AttributeValue& value) {
  Handle type;
  const void* data = nullptr;
  std::vector<const char*> texts;
  const auto* list = std::get_if<std::vector<std::string>>(&value);
  if (const auto* string = std::get_if<std::string>(&value)) texts.push_back(string->c_str());
  for (std::size_t i = 0; list && i < list->size(); ++i) texts.push_back((*list)[i].c_str());
  if (!texts.empty()) {
    type = Handle(check(H5Tcopy(H5T_C_S1)), H5Tclose);
    check(H5Tset_size(type, H5T_VARIABLE));
    check(H5Tset_cset(type, H5T_CSET_UTF8));
    data = texts.data();
  } else if (const auto* number = std::get_if<double>(&value)) {
    type = Handle(check(H5Tcopy(H5T_IEEE_F64LE)), H5Tclose);
    data = number;
  } else {
    type = Handle(check(H5Tcopy(H5T_STD_I64LE)), H5Tclose);
    data = &std::get<std::int64_t>(value);
  }
  static_assert(std::endian::native == std::endian::little);
  const hsize_t extent[] = {texts.size()};
  const Handle space(check(list ? H5Screate_simple(1, extent, nullptr) : H5Screate(H5S_SCALAR)),
                     H5Sclose);
  const Handle attribute(
      check(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT)), H5Aclose);
  check(H5Awrite(attribute, type, data));
}

void CreatedFile::create_dataset(hid_t parent, Output& created, const std::string& path, hid_t type,
                                 int threads) {
  const Layout& layout = created.layout;
  const auto rank = static_cast<int>(layout.dims.size());
  const Handle creation(check(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
  check(H5Pset_obj_track_times(creation, false));
  check(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER));
  if (!layout.chunk.empty()) {
    check(H5Pset_chunk(creation, rank, layout.chunk.data()));
    check(H5Pset_fletcher32(creation));
  }
  if (parent == handle_) create_groups(path);
  const Handle space(check(H5Screate_simple(rank, layout.dims.data(), nullptr)), H5Sclose);
  created.handle = Handle(
      check(H5Dcreate2(parent, path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT)),
      H5Dclose);
  if (layout.chunk.empty()) return;
  created.chunks.emplace(created.handle, atomic_.descriptor(), layout, created.element_bytes,
                         threads);
  if (!created.chunks->allocate()) fail();
}

void CreatedFile::append(Output& to, const void* values, index_t count) {
  atomic_.require_space();
  try {
    to.chunks->append(values, count);
  } catch (const FailedWrite& error) {
    fail(std::strerror(error.code().value()));
  }
}

void CreatedFile::go_back(Output& to, index_t position) {
  try {
    to.chunks->go_back(position);
  } catch (const FailedWrite& error) {
    fail(std::strerror(error.code().value()));
  }
}

void CreatedFile::finish(Output& output) {
  try {
    if (output.chunks) output.chunks->finish();
  } catch (const FailedWrite& error) {
    fail(std::strerror(error.code().value()));
  }
  if (!output.handle.close()) fail();
}

}  // namespace qrtool::hdf5
