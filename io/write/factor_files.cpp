// SPDX-License-Identifier: Apache-2.0
// factor_files.cpp: composes names, and looks for what other runs have left.
#include "io/write/factor_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/text_output.hpp"

namespace qrtool {
namespace {

/// The length of a name without its ending, which it may not have.
std::size_t stem_size(const std::string& path) { return path.size() - ending_of(path).size(); }

}  // namespace

std::string factor_file(const std::string& path, const std::string& dataset) {
  if (dataset == "A" || is_standard_output(path)) return path;
  const std::size_t stem = stem_size(path);
  return fmt::format("{}.{}{}", path.substr(0, stem), dataset, path.substr(stem));
}

std::string report_file(const std::string& path, std::string_view ending) {
  return fmt::format("{}.report{}", path.substr(0, stem_size(path)), ending);
}

std::vector<std::string> files_of_set(const std::string& path, std::string_view report_ending) {
  std::vector<std::string> names;
  if (is_standard_output(path)) return names;
  for (const char* dataset : set_names) names.push_back(factor_file(path, dataset));
  names.push_back(report_file(path, report_ending));
  return names;
}

std::vector<std::string> find_obsolete(const OutputSpec& spec) {
  std::vector<std::string> found;
  if (is_standard_output(spec.path)) return found;
  if (!spec.with_report && spec.numbers.empty()) return found;
  for (const char* name : set_names) {
    const auto is_written = [&](const MatrixDataset& dataset) { return dataset.name == name; };
    if (std::any_of(spec.datasets.begin(), spec.datasets.end(), is_written)) continue;
    const std::string path = factor_file(spec.path, name);
    struct stat info {};
    if (!spec.force && lstat(path.c_str(), &info) == 0) {
      throw OutputError(fmt::format("'{}' exists, a file of '{}' by another --mode", escape(path),
                                    escape(spec.path)),
                        "use --force to remove it");
    }
    if (spec.force) found.push_back(path);
  }
  return found;
}

std::string hint_for_missing_set(const std::string& path) {
  const std::size_t dot = path.rfind('.'), inner = path.rfind('.', dot - 1);
  struct stat info {};
  const bool is_there = inner != std::string::npos && stat(path.c_str(), &info) == 0;
  const std::string dataset = is_there ? path.substr(inner + 1, dot - inner - 1) : "";
  const bool is_factor = std::find(set_names.begin(), set_names.end(), dataset) != set_names.end();
  if (!is_factor && dataset != "report")
    return fmt::format("{} stands for the files {}, {} and others, as factor writes them",
                       escape(path), escape(factor_file(path, "Q")),
                       escape(factor_file(path, "R")));
  return fmt::format("name all of them together: {}{}", escape(path.substr(0, inner)),
                     escape(path.substr(dot)));
}

}  // namespace qrtool
