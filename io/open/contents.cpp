// SPDX-License-Identifier: Apache-2.0
// contents.cpp: asks the format, and reads the reports of sets of files.
#include "io/open/contents.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/text_output.hpp"
#include "io/open/formats.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {

bool has_datasets(const std::string& file) { return format_of_input(file).has_datasets; }

std::vector<Entry> list_entries(const std::string& file) {
  const Format& format = format_of_input(file);
  return format.list_entries == nullptr ? std::vector<Entry>{} : format.list_entries(file);
}

std::vector<std::string> datasets_like(const std::string& file, const std::string& pattern) {
  std::vector<std::string> names;
  if (!has_datasets(file))
    throw InputError(fmt::format("{}: --dataset '{}': the file holds no datasets", escape(file),
                                 escape(pattern)),
                     "leave --dataset away");
  for (const Entry& entry : list_entries(file)) {
    const bool is_matrix = entry.dims.size() > 1 && entry.problem.empty() &&
                           !entry.stored_type.empty() && !entry.is_coordinates;
    const bool fits = entry.name == pattern ||
                      fnmatch(pattern.c_str(), entry.name.c_str(), 0) == 0 ||
                      fnmatch(("/" + pattern).c_str(), entry.name.c_str(), 0) == 0;
    if (is_matrix && fits) names.push_back(entry.name);
  }
  if (names.empty())
    throw InputError(
        fmt::format("{}: no matrix has a name like '{}'", escape(file), escape(pattern)),
        fmt::format("qrtool info {} lists all of them", escape(file)));
  return names;
}

std::vector<StoredOutput> read_stored_outputs(const std::string& path) {
  std::error_code error;
  const bool is_file = std::filesystem::exists(path, error);
  return (is_file ? format_of_input(path) : format_of_output(path)).stored_outputs(path);
}

std::string set_of(const std::string& path) {
  const std::string ending = ending_of(path);
  if (ending != ".json" && format_of_output(path).files_of_output(path).size() == 1) return path;
  const std::string stem = path.substr(0, path.size() - ending.size());
  const auto stands_before = [&](const std::string& name) { return stem.ends_with("." + name); };
  for (const char* name : set_names) {
    const std::string set = stem.substr(0, stem.rfind('.')) + ending;
    if (!stands_before(name)) continue;
    for (const char* report : {".json", ".csv"})
      if (std::filesystem::exists(report_file(set, report))) return set;
  }
  if (!stands_before("report")) return path;
  // Arrays and Matrix Market files have a report in JSON, text has one in CSV.
  const bool is_json = ending == ".json";
  for (const Format* format : formats()) {
    if (is_json != (format->stored_outputs == read_json_output)) continue;
    for (const std::string_view of_set : format->endings) {
      const std::string set = stem.substr(0, stem.rfind('.')) + std::string(of_set);
      if (format->files_of_output(set).size() == 1) continue;
      for (const char* name : set_names)
        if (std::filesystem::exists(factor_file(set, name))) return set;
    }
  }
  return path;
}

}  // namespace qrtool
