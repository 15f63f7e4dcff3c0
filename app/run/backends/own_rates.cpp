// SPDX-License-Identifier: Apache-2.0
// own_rates.cpp: finds, reads and removes the user's tables.
#include "app/run/backends/own_rates.hpp"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <memory>

#include "app/engine/timings.hpp"
#include "app/run/backends/timings_file.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/read_text.hpp"

namespace qrtool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view rates_ending = ".rates.csv";

/// A name that every file system takes.
std::string file_name_of(const std::string& device) {
  std::string name = device;
  for (char& c : name) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    if (!is_plain) c = '_';
  }
  return name;
}

/// What the names of all tables begin with.
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

bool forget_own_rates() {
  const std::optional<std::string> timings = timings_path();
  if (!timings) return false;
  const fs::path beside = *timings;
  bool was_there = false;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(beside.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(first_part(beside)) || name.find(rates_ending) == std::string::npos)
      continue;
    if (!fs::remove(entry.path(), error) || error)
      throw OutputError(fmt::format("{}: cannot be removed ({})", escape(entry.path().string()),
                                    error.message()));
    was_there = true;
  }
  return was_there;
}

}  // namespace qrtool
