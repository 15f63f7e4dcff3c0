// SPDX-License-Identifier: Apache-2.0
// solutions.cpp: finds solutions in a set of files, in a table of coefficients or in a dataset.
#include "io/open/solutions.hpp"

#include <filesystem>

#include "io/csv/coefficients.hpp"
#include "io/file/input_file.hpp"
#include "io/open/contents.hpp"
#include "io/open/factors.hpp"
#include "io/open/formats.hpp"
#include "io/open/input.hpp"
#include "io/open/solution_set.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {

std::unique_ptr<Reader> open_solutions(const std::string& path, int threads,
                                       std::size_t memory_bytes) {
  InputSpec spec{.path = path,
                 .dataset = {},
                 .threads = threads,
                 .memory_bytes = memory_bytes,
                 .takes_complex = true};
  const Location location = split_location(path);
  if (const std::string named = factor_file(location.file, "X"); std::filesystem::exists(named)) {
    require_one_run_of_solutions(location.file);
    spec.path = named;
  } else if (is_coefficient_table(location.file)) {
    return open_coefficients(location.file);
  } else if (location.dataset.empty()) {
    const Format& format = format_of_input(location.file);
    if (format.has_datasets) spec.dataset = format.find_solutions(location.file);
  }
  return open_array(spec);
}

std::unique_ptr<Reader> open_beside_solutions(const std::string& path, const std::string& name,
                                              int threads, std::size_t memory_bytes) {
  if (recorded_attributes(path, {"command"}).front() != "solve") return nullptr;
  InputSpec spec{.path = path,
                 .dataset = {},
                 .order = Order::row,
                 .threads = threads,
                 .memory_bytes = memory_bytes,
                 .takes_vectors = true,
                 .takes_complex = true};
  const Location location = split_location(path);
  if (const std::string named = factor_file(location.file, name); std::filesystem::exists(named)) {
    spec.path = named;
    return open_array(spec);
  }
  // A set is several files, and none has the name of the set.
  const bool is_file = std::filesystem::exists(location.file);
  if (!is_file || !location.dataset.empty() || !has_datasets(location.file)) return nullptr;
  for (const Entry& entry : list_entries(location.file))
    if (name_in_output(entry.name) == name) {
      spec.dataset = entry.name;
      return open_array(spec);
    }
  return nullptr;
}

}  // namespace qrtool
