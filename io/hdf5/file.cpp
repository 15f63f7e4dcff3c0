// SPDX-License-Identifier: Apache-2.0
// file.cpp: sets HDF5 up, closes handles, and collects error texts.
#include "io/hdf5/file.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace qrtool::hdf5 {
namespace {

std::atomic<bool> closing_stopped{false};

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

void set_up_library() {
  // This must be the first call. The library's exit handler would crash after a failed write.
  H5dont_atexit();
  // The variable would override the property that turns locking off for the temporary files of the
  // output. Values other than FALSE and 0 ask for locking, which reading does anyway.
  const char* locking = std::getenv("HDF5_USE_FILE_LOCKING");
  if (locking && std::string_view(locking) != "FALSE" && std::string_view(locking) != "0") {
    unsetenv("HDF5_USE_FILE_LOCKING");
  }
  H5open();
  // A file must not make the tool open another one.
  H5Lunregister(H5L_TYPE_EXTERNAL);
}

herr_t append_description(unsigned, const H5E_error2_t* error, void* text) {
  auto& joined = *static_cast<std::string*>(text);
  if (error->desc && *error->desc) {
    if (!joined.empty()) joined += "; ";
    joined += error->desc;
  }
  return 0;
}

}  // namespace

Session::Session() : lock_(library_mutex()) {
  static const bool ready = (set_up_library(), true);
  (void)ready;
  // In thread-safe builds every thread has its own setting for printing errors.
  thread_local const bool quiet = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  (void)quiet;
}

void stop_closing() noexcept { closing_stopped = true; }
bool is_closing_stopped() noexcept { return closing_stopped; }

bool Handle::close() noexcept {
  const hid_t id = std::exchange(id_, H5I_INVALID_HID);
  if (id < 0) return true;
  if (closing_stopped) return false;
  const Session session;
  return close_(id) >= 0;
}

std::string take_error() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append_description, &text);
  H5Eclear2(H5E_DEFAULT);
  return text;
}

std::string innermost_error(const std::string& error) {
  const std::size_t last = error.rfind("; ");
  return last == std::string::npos ? error : error.substr(last + 2);
}

std::string string_attribute(hid_t object, const char* name) {
  constexpr std::size_t longest = 65536;
  if (H5Aexists(object, name) <= 0) return {};
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  const Handle type(attribute ? H5Aget_type(attribute) : H5I_INVALID_HID, H5Tclose);
  const Handle space(attribute ? H5Aget_space(attribute) : H5I_INVALID_HID, H5Sclose);
  if (!type || !space || H5Tget_class(type) != H5T_STRING) return {};
  if (H5Sget_simple_extent_npoints(space) != 1) return {};
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute, type, &text) < 0 || !text) return {};
    std::string copy(text);
    H5free_memory(text);
    return copy;
  }
  const std::size_t size = H5Tget_size(type);
  if (size == 0 || size > longest) return {};
  std::string text(size, '\0');
  if (H5Aread(attribute, type, text.data()) < 0) return {};
  text.resize(std::min(text.find('\0'), size));
  return text;
}

std::vector<Box> cut_into_boxes(std::span<const index_t> leading, index_t first, index_t count) {
  const std::size_t rank = leading.size();
  // below[d] is the number of matrices under one index of dimension d.
  std::vector<index_t> below(rank, 1);
  for (std::size_t d = rank; d-- > 1;) below[d - 1] = below[d] * leading[d];

  std::vector<Box> boxes;
  while (count > 0) {
    Box box{std::vector<hsize_t>(rank), std::vector<hsize_t>(rank, 1), 1};
    // The box takes as many indices as possible of the outermost dimension that begins a whole
    // index here.
    std::size_t outer = 0;
    while (outer < rank && (first % below[outer] != 0 || count < below[outer])) ++outer;
    for (std::size_t d = 0; d < rank; ++d) {
      const index_t index = first / below[d] % leading[d];
      box.start[d] = static_cast<hsize_t>(index);
      if (d == outer) {
        const index_t taken = std::min(leading[d] - index, count / below[d]);
        box.count[d] = static_cast<hsize_t>(taken);
        box.matrices = taken * below[d];
      } else if (d > outer) {
        box.count[d] = static_cast<hsize_t>(leading[d]);
      }
    }
    first += box.matrices;
    count -= box.matrices;
    boxes.push_back(std::move(box));
  }
  return boxes;
}

}  // namespace qrtool::hdf5
