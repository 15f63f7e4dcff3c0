// SPDX-License-Identifier: Apache-2.0
// heap_texts.cpp: asks HDF5 for the bytes that are stored for an attribute, by a conversion that
// leaves them as they are, and reads the texts from their heap.
#include "io/hdf5/structure/heap_texts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/read_write_at.hpp"
#include "io/hdf5/structure/driver.hpp"
#include "io/hdf5/structure/global_heap.hpp"

namespace qrtool::hdf5 {
namespace {

/// From a text of variable length to as many opaque bytes as the file stores for it.
herr_t leave_as_stored(hid_t, hid_t, H5T_cdata_t* call, std::size_t, std::size_t, std::size_t,
                       void*, void*, hid_t) {
  if (call->command == H5T_CONV_INIT) call->need_bkg = H5T_BKG_NO;
  return 0;
}

Handle opaque_type(std::size_t bytes) { return {H5Tcreate(H5T_OPAQUE, bytes), H5Tclose}; }

/// Returns a function that reads the file from an address, counted from the start of HDF5's part of
/// the file.
ReadBytes bytes_of(const InputFile& file) {
  hsize_t start = 0;
  const Handle creation(H5Fget_create_plist(file.handle), H5Pclose);
  if (creation) H5Pget_userblock(creation, &start);
  return [start, descriptor = descriptor_of(file.handle), size = file.size](
             std::uint64_t address, std::span<std::byte> to) {
    const std::uint64_t from = start + address;
    if (from < start || from > size || to.size() > size - from) return false;
    const TwoParts parts{{{to.data(), to.size()}, {nullptr, 0}}};
    return read_at(descriptor, from, parts) == to.size();
  };
}

}  // namespace

void throw_damaged_attribute(const InputFile& file, const std::string& cause) {
  throw InputError(fmt::format("{}: damaged HDF5 file (an attribute cannot be read: {})",
                               file.shown, escape(cause)));
}

herr_t register_stored_texts() {
  // A Handle would begin a Session, which waits for the library to be set up.
  const hid_t text = H5Tcopy(H5T_C_S1), opaque = H5Tcreate(H5T_OPAQUE, 1);
  herr_t result = -1;
  if (text >= 0 && opaque >= 0 && H5Tset_size(text, H5T_VARIABLE) >= 0)
    result = H5Tregister(H5T_PERS_SOFT, "qrtool_stored_text", text, opaque, leave_as_stored);
  if (text >= 0) H5Tclose(text);
  if (opaque >= 0) H5Tclose(opaque);
  return result;
}

std::vector<std::string> heap_texts(const InputFile& file, hid_t attribute, std::size_t count) {
  const ReadBytes read = bytes_of(file);
  const std::optional<Widths> widths = read_widths(read);
  if (!widths) throw_damaged_attribute(file, "its superblock cannot be read");
  // An entry is the length of a text, the address of its heap, and its number there.
  constexpr std::size_t word = 4;
  const std::size_t bytes = word + widths->address + word;
  if (count == 0) return {};
  if (count > file.size / bytes)
    throw_damaged_attribute(file, fmt::format("it claims {} texts", count));
  if (H5Aget_storage_size(attribute) < count * bytes)
    throw_damaged_attribute(file, "it is shorter than its texts need");
  const Handle stored_type = opaque_type(bytes);
  std::vector<std::byte> stored(count * bytes);
  if (!stored_type || H5Aread(attribute, stored_type, stored.data()) < 0)
    throw_damaged_attribute(file, innermost_error(take_error()));
  std::vector<std::string> texts(count);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto place = std::span<const std::byte>(stored).subspan(i * bytes, bytes);
    const HeapObject object{.length = number_at(place.first(word)),
                            .heap = number_at(place.subspan(word, widths->address)),
                            .number = number_at(place.last(word))};
    // Each text has bytes of its own in the file, so their sum is limited by its size.
    total += object.length;
    if (total > file.size) throw_damaged_attribute(file, fmt::format("a text of {} bytes", total));
    const std::string problem = read_heap_object(object, read, texts[i]);
    if (!problem.empty()) throw_damaged_attribute(file, problem);
    texts[i].resize(std::min(texts[i].find('\0'), texts[i].size()));
  }
  return texts;
}

}  // namespace qrtool::hdf5
