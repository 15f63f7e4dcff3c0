// SPDX-License-Identifier: Apache-2.0
// plugin.cpp: looks through the folders in which HDF5 looks (HDF5_PLUGIN_PATH).
#include "io/hdf5/chunks/plugin.hpp"

#include <H5PLextern.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "io/hdf5/structure/file.hpp"

namespace qrtool::hdf5 {
namespace {

std::vector<std::string> plugin_folders() {
  unsigned allowed = 0, count = 0;
  if (H5PLget_loading_state(&allowed) < 0 || (allowed & H5PL_FILTER_PLUGIN) == 0 ||
      H5PLsize(&count) < 0) {
    return {};
  }
  std::vector<std::string> folders;
  for (unsigned i = 0; i < count; ++i) {
    const ssize_t length = H5PLget(i, nullptr, 0);
    if (length <= 0) continue;
    std::string folder(static_cast<std::size_t>(length) + 1, '\0');
    if (H5PLget(i, folder.data(), folder.size()) < 0) continue;
    folder.pop_back();
    folders.push_back(std::move(folder));
  }
  return folders;
}

/// Returns the filter of a library if the library is that plugin. Otherwise the library is closed
/// again.
const H5Z_class2_t* load(const std::string& path, H5Z_filter_t filter) {
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto type_of = reinterpret_cast<H5PL_type_t (*)()>(dlsym(library, "H5PLget_plugin_type"));
  const auto info_of = reinterpret_cast<const void* (*)()>(dlsym(library, "H5PLget_plugin_info"));
  if (type_of != nullptr && info_of != nullptr && type_of() == H5PL_TYPE_FILTER) {
    const auto* found = static_cast<const H5Z_class2_t*>(info_of());
    if (found != nullptr && found->id == filter) return found;
  }
  dlclose(library);
  return nullptr;
}

const H5Z_class2_t* search(H5Z_filter_t filter) {
  for (const std::string& folder : plugin_folders()) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("lib") || name.find(".so") == std::string::npos) continue;
      if (const H5Z_class2_t* found = load(entry.path(), filter)) return found;
    }
  }
  return nullptr;
}

/// Memory in the form that HDF5's filters expect.
struct FilterMemory {
  explicit FilterMemory(std::size_t bytes) : data(H5allocate_memory(bytes, false)) {
    if (data == nullptr) throw std::bad_alloc();
  }
  FilterMemory(const FilterMemory&) = delete;
  FilterMemory& operator=(const FilterMemory&) = delete;
  ~FilterMemory() { H5free_memory(data); }

  void* data;
};

}  // namespace

const H5Z_class2_t* find_plugin(H5Z_filter_t filter) {
  if (filter < H5Z_FILTER_RESERVED) return nullptr;  // the library's own filters
  const Session session;
  static std::map<H5Z_filter_t, const H5Z_class2_t*> known;
  const auto found = known.find(filter);
  return found != known.end() ? found->second : known.emplace(filter, search(filter)).first->second;
}

std::optional<std::size_t> undo_plugin(H5Z_filter_t filter, std::span<const unsigned> parameters,
                                       std::span<const std::byte> from, Bytes& to) {
  const Session session;
  const H5Z_class2_t* plugin = find_plugin(filter);
  if (plugin == nullptr) return {};
  // A filter frees the memory that it is given, and gives other memory back.
  std::size_t room = std::max<std::size_t>(from.size(), 1);
  FilterMemory memory(room);
  std::copy(from.begin(), from.end(), static_cast<std::byte*>(memory.data));
  const std::size_t made = plugin->filter(H5Z_FLAG_REVERSE, parameters.size(), parameters.data(),
                                          from.size(), &room, &memory.data);
  H5Eclear2(H5E_DEFAULT);
  if (made == 0) return {};
  to.resize(made);
  std::memcpy(to.data(), memory.data, made);
  return made;
}

}  // namespace qrtool::hdf5
