// SPDX-License-Identifier: Apache-2.0
// timings_file.cpp: finds, reads and writes the file.
#include "app/run/backends/timings_file.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "app/engine/opencl.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/read_text.hpp"
#include "io/file/text_output.hpp"

namespace qrtool {
namespace {

namespace fs = std::filesystem;

/// A larger file is not ours. Each program takes some 150 bytes.
constexpr std::uintmax_t most_file_bytes = std::uintmax_t{1} << 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The text of the file; empty where it cannot be read.
std::string read_file(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > most_file_bytes) return {};
  return read_text(path).value_or("");
}

/// The measurements of this process that are not in the file.
std::vector<std::pair<DeviceInfo, KeptSample>>& new_samples() {
  static auto& samples = *new std::vector<std::pair<DeviceInfo, KeptSample>>;
  return samples;
}

void write_file(const std::string& path, const std::string& text) {
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder);
  TextOutput output(path, /*force=*/true);
  output.buffer().append(text);
  output.commit();
}

}  // namespace

Timings load_timings() {
  const std::optional<std::string> path = timings_path();
  return path ? Timings::from_text(read_file(*path)) : Timings();
}

std::optional<std::string> timings_path() {
  if (std::getenv("QRTOOL_TIMINGS") != nullptr) {
    const std::string path = environment("QRTOOL_TIMINGS");
    return path.empty() ? std::nullopt : std::optional(path);
  }
  // A relative path in XDG_CACHE_HOME is to be ignored (XDG Base Directory Specification).
  const std::string cache = environment("XDG_CACHE_HOME"), home = environment("HOME");
  if (cache.starts_with('/')) return cache + "/qrtool/timings.json";
  if (home.starts_with('/')) return home + "/.cache/qrtool/timings.json";
  return std::nullopt;
}

void remember_timings() noexcept {
  try {
    const std::vector<DeviceTimes> times = opencl_times();
    const std::optional<std::string> path = timings_path();
    if (times.empty() || !path) return;
    // Another run may have written the file since this one read it.
    Timings timings = load_timings();
    bool is_news = !new_samples().empty();
    for (const DeviceTimes& device : times) is_news |= timings.add(device);
    for (const auto& [info, sample] : new_samples()) timings.add(info, sample);
    new_samples().clear();
    if (is_news) write_file(*path, timings.to_text());
  } catch (...) {  // only an estimate gets worse
  }
}

void keep_sample(const DeviceInfo& info, const KeptSample& sample) {
  new_samples().emplace_back(info, sample);
}

bool forget_timings() {
  const std::optional<std::string> path = timings_path();
  std::error_code error;
  const bool was_there = path && fs::remove(*path, error);
  if (error)
    throw OutputError(fmt::format("{}: cannot be removed ({})", escape(*path), error.message()));
  return was_there;
}

}  // namespace qrtool
