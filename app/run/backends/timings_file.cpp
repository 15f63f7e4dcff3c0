// SPDX-License-Identifier: Apache-2.0
// timings_file.cpp: finds, reads, writes and removes the files.
#include "app/run/backends/timings_file.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "app/engine/opencl.hpp"
#include "core/error.hpp"
#include "core/machine/cache_folder.hpp"
#include "core/text.hpp"
#include "io/file/read_text.hpp"
#include "io/file/text_output.hpp"

namespace qrtool {
namespace {

namespace fs = std::filesystem;

/// The largest size of the file; a larger one is not ours. Each program needs some 150 bytes.
constexpr std::uintmax_t most_file_bytes = std::uintmax_t{1} << 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Returns the text of the file, or an empty text if it cannot be read.
std::string read_file(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > most_file_bytes) return {};
  return read_text(path).value_or("");
}

/// Returns the measurements of this process that are not in the file.
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

constexpr std::string_view rates_ending = ".rates.csv";

/// Returns a name that every file system accepts.
std::string file_name_of(const std::string& device) {
  std::string name = device;
  for (char& c : name) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    if (!is_plain) c = '_';
  }
  return name;
}

/// Returns the beginning of the names of all tables.
std::string first_part(const fs::path& timings) { return timings.stem().string() + "."; }

std::unique_ptr<const CostTable> load(const std::string& device) {
  const std::optional<std::string> path = own_rates_path(device);
  if (!path) return nullptr;
  const std::optional<std::string> text = read_text(*path);
  if (!text) return nullptr;
  try {
    CostTable table = CostTable::from_text(*text, *path);
    if (table.device() == device) return std::make_unique<const CostTable>(std::move(table));
  } catch (const InputError&) {  // the tables of the repository serve as well
  }
  return nullptr;
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
  const std::optional<std::string> folder = cache_folder();
  return folder ? std::optional(*folder + "/timings.json") : std::nullopt;
}

void remember_timings() noexcept {
  try {
    const std::vector<DeviceTimes> times = device_times();
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

std::optional<std::string> own_rates_path(const std::string& device) {
  const std::optional<std::string> timings = timings_path();
  if (!timings) return std::nullopt;
  const fs::path beside = *timings;
  return (beside.parent_path() /
          (first_part(beside) + file_name_of(device) + std::string(rates_ending)))
      .string();
}

const CostTable* own_rates(const std::string& device) {
  static auto& tables = *new std::map<std::string, std::unique_ptr<const CostTable>>;
  const auto found = tables.find(device);
  if (found != tables.end()) return found->second.get();
  return tables.emplace(device, load(device)).first->second.get();
}

bool forget_timings() {
  const std::optional<std::string> path = timings_path();
  if (!path) return false;
  const auto remove = [](const fs::path& file) {
    std::error_code error;
    const bool was_there = fs::remove(file, error);
    if (error)
      throw OutputError(
          fmt::format("{}: cannot be removed ({})", escape(file.string()), error.message()));
    return was_there;
  };
  const fs::path timings = *path;
  bool was_there = remove(timings);
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(timings.parent_path(), ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(first_part(timings)) && name.find(rates_ending) != std::string::npos)
      was_there |= remove(entry.path());
  }
  return was_there;
}

}  // namespace qrtool
