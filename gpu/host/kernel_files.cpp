// SPDX-License-Identifier: Apache-2.0
// kernel_files.cpp: one file for each image, written under another name and renamed.
#include "gpu/host/kernel_files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "core/machine/cache_folder.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".kernels";
/// The folder may have so many bytes; then the oldest files go until half of it is left.
constexpr std::uintmax_t most_bytes = std::uintmax_t{512} << 20;

std::optional<fs::path> folder() {
  const char* const word = std::getenv("QRTOOL_CACHE");
  return word != nullptr && std::string_view(word) == "off" ? std::nullopt : cache_folder();
}

/// The name of a key, and the words before its image.
std::string name_of(std::string_view key) {
  return fmt::format("{:016x}{:016x}", hash_of(key), hash_of(key, key.size()));
}
std::string head_of(std::string_view key, std::string_view image) {
  return fmt::format("qrtool kernels 1 {} {} {:016x}\n", name_of(key), image.size(),
                     hash_of(image));
}

void remove_oldest(const fs::path& of) {
  struct File {
    fs::file_time_type written;
    std::uintmax_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  std::uintmax_t all = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(of)) {
    if (entry.path().extension() != ending) continue;
    files.push_back({entry.last_write_time(), entry.file_size(), entry.path()});
    all += files.back().bytes;
  }
  if (all <= most_bytes) return;
  std::ranges::sort(files, {}, &File::written);
  for (const File& file : files) {
    if (all <= most_bytes / 2) return;
    fs::remove(file.path);
    all -= file.bytes;
  }
}

}  // namespace

std::optional<std::string> kept_kernels(std::string_view key) {
  const std::optional<fs::path> place = folder();
  if (!place) return std::nullopt;
  std::ifstream file(*place / (name_of(key) + std::string(ending)), std::ios::binary);
  std::string head;
  if (!std::getline(file, head)) return std::nullopt;
  std::string image(std::istreambuf_iterator<char>(file), {});
  if (head + '\n' != head_of(key, image)) return std::nullopt;
  return image;
}

void keep_kernels(std::string_view key, std::string_view image) {
  const std::optional<fs::path> place = folder();
  if (!place) return;
  const fs::path name = *place / (name_of(key) + std::string(ending));
  static std::atomic<unsigned> number = 0;
  const fs::path part = fmt::format("{}.{}.{}", name.string(), getpid(), ++number);
  std::error_code ignored;
  try {
    if (fs::create_directories(*place)) fs::permissions(*place, fs::perms::owner_all);
    std::ofstream file(part, std::ios::binary);
    file << head_of(key, image) << image;
    file.close();
    if (!file) throw fs::filesystem_error("write", part, std::make_error_code(std::errc::io_error));
    fs::rename(part, name);
    remove_oldest(*place);
  } catch (const fs::filesystem_error&) {
    fs::remove(part, ignored);
  }
}

}  // namespace qrtool
