// SPDX-License-Identifier: Apache-2.0
// contents.cpp: asks the format, and reads the reports of sets of files.
#include "io/open/contents.hpp"

#include <algorithm>
#include <filesystem>

#include "io/file/text_output.hpp"
#include "io/open/formats.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {

bool has_datasets(const std::string& file) { return format_of_input(file).has_datasets; }

std::vector<Entry> list_entries(const std::string& file) {
  const Format& format = format_of_input(file);
  return format.list_entries == nullptr ? std::vector<Entry>{} : format.list_entries(file);
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
