// SPDX-License-Identifier: Apache-2.0
// file_contents.cpp: opens everything in a file, and reads no matrix.
#include "app/info/file_contents.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "app/options/options.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/csv/coefficients.hpp"
#include "io/file/rereadable.hpp"
#include "io/open/contents.hpp"
#include "io/open/formats.hpp"
#include "io/open/input.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

// The most datasets that are opened, because each takes a moment.
constexpr std::size_t most_opened = 1000;

InputSpec spec_of(const InfoOptions& o) {
  return {.path = o.file,
          .dataset = o.dataset,
          .order = o.order,
          .memory_bytes = host_limits(std::nullopt, /*threads=*/1).host_bytes / 2,
          .csv = o.csv,
          .raw_values = o.raw_values,
          .takes_complex = true};
}

bool exists(const std::string& file) {
  std::error_code error;
  return std::filesystem::exists(file, error);
}

std::uint64_t size_of_file(const std::string& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  return error ? 0 : bytes;
}

/// Returns the reason why the stored dimensions are read in this order.
std::string reason_of(const Source& source, const Format& format, Order asked) {
  if (asked != Order::automatic) return "as --order says";
  // The text in parentheses, which helps users who want another order, is cut off.
  if (&format != formats().back())
    return std::string(format.own_order.substr(0, format.own_order.find(" (")));
  if (!source.order_is_stated)
    return "the file does not say; h5py and pandas write so, MATLAB, Julia and R do not";
  return source.order_reason;
}

FoundDataset found(Entry entry, Source source, const Format& format, Order asked) {
  std::string reason = reason_of(source, format, asked);
  return {
      .entry = std::move(entry), .source = std::move(source), .order_reason = std::move(reason)};
}

/// Returns a dataset that can be chosen by its name.
FoundDataset open_entry(const InfoOptions& o, const std::string& file, Entry entry) {
  InputSpec spec = spec_of(o);
  spec.path = file;
  spec.dataset = entry.name;
  try {
    // `entry` is copied, because it is needed if one of these calls fails.
    return found(entry, open_input(spec)->source(), format_of_input(file), o.order);
  } catch (const Error& error) {
    entry.problem = error.what();
    return {.entry = std::move(entry)};
  }
}

/// Returns the one array that was named, or that the file is.
FoundDataset open_only(const InfoOptions& o, const Format& format) {
  try {
    Source source = open_input(spec_of(o))->source();
    Entry entry{
        .name = source.dataset, .dims = qrtool::dims_of(source), .stored_type = source.stored_type};
    return found(std::move(entry), std::move(source), format, o.order);
  } catch (const InputError& error) {
    try {
      const Source source = open_array(spec_of(o))->source();
      return {.entry = {.name = source.dataset,
                        .dims = qrtool::dims_of(source),
                        .stored_type = source.stored_type,
                        .problem = "has one dimension"}};
    } catch (const InputError&) {
      throw error;
    }
  }
}

void list_datasets(const InfoOptions& o, FileContents& contents) {
  std::vector<Entry> entries = list_entries(contents.file);
  if (entries.empty()) open_input(spec_of(o));  // says why
  for (Entry& entry : entries) {
    const bool is_openable = entry.problem.empty() && contents.datasets.size() < most_opened;
    contents.datasets.push_back(is_openable ? open_entry(o, contents.file, std::move(entry))
                                            : FoundDataset{.entry = std::move(entry)});
  }
}

/// Opens the file as `factor` would, and keeps the description or the error.
void try_to_read(const InfoOptions& o, FileContents& contents) {
  try {
    contents.read = open_input(spec_of(o))->source();
  } catch (const Error& error) {
    contents.objection = error.what();
    contents.hint = error.hint();
  }
}

/// Returns the entries of an output that is a set of files.
std::vector<Entry> entries_of_set(const std::string& set, FileContents& contents) {
  std::vector<Entry> entries;
  for (const std::string& file : format_of_output(set).files_of_output(set)) {
    if (!exists(file)) continue;
    contents.files.push_back(file);
    contents.bytes += size_of_file(file);
  }
  for (const char* name : set_names) {
    const std::string file = factor_file(set, name);
    if (!exists(file)) continue;
    const Source source =
        open_array({.path = file, .dataset = {}, .takes_complex = true})->source();
    entries.push_back(
        {.name = name, .dims = qrtool::dims_of(source), .stored_type = source.stored_type});
  }
  return entries;
}

void sum_up_outputs(const std::string& path, std::span<const Entry> entries,
                    FileContents& contents) {
  for (StoredOutput& stored : read_stored_outputs(path))
    contents.outputs.push_back(sum_up(std::move(stored), entries));
}

FileContents look_into_set(const std::string& set) {
  const Format& format = format_of_output(set);
  FileContents contents{.file = set, .format = std::string(format.name)};
  const std::vector<Entry> entries = entries_of_set(set, contents);
  for (const Entry& entry : entries) contents.datasets.push_back({.entry = entry});
  sum_up_outputs(set, entries, contents);
  return contents;
}

/// Reads the coefficients of a table, whose report lies beside them.
FileContents look_into_coefficients(const std::string& path) {
  FileContents contents{.file = path,
                        .format = std::string(format_of_output(path).name),
                        .bytes = size_of_file(path),
                        .files = {path, report_file(path, ".json")}};
  const Source x = open_coefficients(path)->source();
  const Entry entry{.name = "X", .dims = qrtool::dims_of(x), .stored_type = x.stored_type};
  contents.datasets.push_back({.entry = entry});
  sum_up_outputs(path, {&entry, 1}, contents);
  return contents;
}

bool is_set(const std::string& path) {
  if (exists(path) || is_standard_input(path)) return false;
  const auto files = format_of_output(path).files_of_output(path);
  return std::any_of(files.begin(), files.end(), exists);
}

}  // namespace

FileContents look_into(const InfoOptions& o) {
  if (is_coefficient_table(o.file)) return look_into_coefficients(o.file);
  if (is_set(o.file)) return look_into_set(o.file);
  if (const std::string set = set_of(o.file); set != o.file) return look_into_set(set);
  const Location location = split_location(o.file);
  const Format& format = format_of_input(location.file);
  FileContents contents{.file = location.file,
                        .format = std::string(format.name),
                        .bytes = size_of_file(location.file)};
  const bool is_named = !location.dataset.empty() || !o.dataset.empty();
  if (is_named || !format.has_datasets) {
    contents.datasets.push_back(open_only(o, format));
    contents.read = contents.datasets.front().source;
    return contents;
  }
  list_datasets(o, contents);
  std::vector<Entry> entries;
  for (const FoundDataset& dataset : contents.datasets) entries.push_back(dataset.entry);
  sum_up_outputs(contents.file, entries, contents);
  if (contents.outputs.empty()) try_to_read(o, contents);
  return contents;
}

}  // namespace qrtool
