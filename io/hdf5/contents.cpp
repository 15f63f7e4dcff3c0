// SPDX-License-Identifier: Apache-2.0
// contents.cpp: lists the datasets of an HDF5 file, and reads the attributes and the report of an
// output of this tool.
#include "io/hdf5/contents.hpp"

#include <fmt/format.h>

#include <limits>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/hdf5/datasets/attributes.hpp"
#include "io/hdf5/datasets/recorded.hpp"
#include "io/hdf5/datasets/search.hpp"
#include "io/hdf5/structure/watch.hpp"
#include "io/hdf5/values/storage.hpp"

namespace qrtool {
namespace {

using hdf5::Dataset;
using hdf5::Handle;
using hdf5::InputFile;
using hdf5::Session;

/// Names that HDF5 gives one after another, and an exception that came between. In a damaged file
/// that leads HDF5 round and round they have more bytes than the file.
struct Names {
  const std::string& shown;  // the file's name
  std::uint64_t most_bytes = 0;
  std::vector<std::string> all = {};
  std::exception_ptr failure = {};
  herr_t add(const char* name) noexcept {
    hdf5::note_progress();
    return hdf5::keep_exception(failure, [&] {
      all.emplace_back(name);
      const std::uint64_t bytes = all.back().size() + 1;
      if (bytes > most_bytes)
        throw InputError(
            fmt::format("{}: damaged HDF5 file (its names have more bytes than the file)", shown));
      most_bytes -= bytes;
    });
  }
};

herr_t collect_name(hid_t, const char* name, const H5A_info_t*, void* names) {
  return static_cast<Names*>(names)->add(name);
}

[[noreturn]] void throw_unreadable(const InputFile& file, const std::string& path) {
  throw InputError(fmt::format("{}: {} cannot be read ({})", file.shown, escape(path),
                               escape(hdf5::innermost_error(hdf5::take_error()))));
}

/// All attributes of an object that are one text or one number.
TextPairs attributes_of(const InputFile& file, const std::string& path) {
  const Handle object(H5Oopen(file.handle, path.c_str(), H5P_DEFAULT), H5Oclose);
  Names names{.shown = file.shown, .most_bytes = file.size};
  if (!object ||
      H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_name, &names) < 0) {
    if (names.failure) std::rethrow_exception(names.failure);
    throw_unreadable(file, path);
  }
  TextPairs pairs;
  for (const std::string& name : names.all) {
    std::string text = hdf5::string_attribute(file, object, name.c_str());
    if (text.empty())
      for (const double number : hdf5::number_attribute(file, object, name.c_str()))
        text = fmt::format("{}", number);
    if (!text.empty()) pairs.emplace_back(name, std::move(text));
  }
  return pairs;
}

/// Reads the numbers of a column of any type. In format_version 1.1 the status is an enumeration.
ReportNumbers read_numbers(const InputFile& file, Dataset dataset, const std::string& name) {
  const Handle type(H5Dget_type(dataset.handle), H5Tclose);
  const bool is_enum = H5Tget_class(type) == H5T_ENUM;
  if (is_enum) dataset.problem.clear();
  hdf5::require_readable(file, dataset);
  ReportNumbers numbers{.name = name, .dims = {dataset.dims.begin(), dataset.dims.end()}};
  std::size_t count = 1;
  for (const hsize_t extent : dataset.dims) count *= extent;
  if (count == 0) return numbers;
  const std::vector<hsize_t> from_first(dataset.dims.size(), 0);
  hdf5::Storage storage(file, dataset, /*threads=*/1);
  storage.require_possible_size(from_first, dataset.dims);
  storage.require_chunks(from_first, dataset.dims);
  numbers.values.resize(count);
  const hdf5::NumbersRead reading;
  if (H5Dread(dataset.handle, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
              numbers.values.data()) < 0)
    throw InputError(fmt::format("{}: dataset {} is damaged ({})", file.shown, dataset.shown,
                                 escape(hdf5::innermost_error(hdf5::take_error()))));
  for (const double bar : hdf5::number_attribute(file, dataset.handle, "bar"))
    if (bar > 0) numbers.bar = bar;
  return numbers;
}

herr_t collect_dataset_name(hid_t group, const char* name, const H5L_info_t*, void* names) {
  H5O_info_t info;
  if (H5Oget_info_by_name2(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
      info.type == H5O_TYPE_DATASET)
    return static_cast<Names*>(names)->add(name);
  return 0;
}

/// Reads the columns of the report in a group such as /report.
std::vector<ReportNumbers> read_report_group(const InputFile& file, const std::string& path) {
  // Factors of another program have no report.
  if (!hdf5::open_object(file, path)) return {};
  const Handle group(H5Gopen2(file.handle, path.c_str(), H5P_DEFAULT), H5Gclose);
  Names names{.shown = file.shown, .most_bytes = file.size};
  if (!group ||
      H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect_dataset_name, &names) < 0) {
    if (names.failure) std::rethrow_exception(names.failure);
    throw_unreadable(file, path);
  }
  std::vector<ReportNumbers> report;
  for (const std::string& name : names.all) {
    Dataset dataset = hdf5::open_dataset(file, path + "/" + name);
    if (dataset.handle) report.push_back(read_numbers(file, std::move(dataset), name));
  }
  return report;
}

}  // namespace

std::vector<Entry> list_hdf5_entries(const std::string& name) {
  const InputFile file = hdf5::open_file(name);
  const Session session(file.shown);
  std::vector<Entry> entries;
  for (const Dataset& dataset : hdf5::list_datasets(file))
    entries.push_back({.name = dataset.path,
                       .dims = {dataset.dims.begin(), dataset.dims.end()},
                       .stored_type = dataset.stored_type,
                       .problem = dataset.problem,
                       .is_coordinates = dataset.is_scale});
  return entries;
}

std::vector<StoredOutput> read_hdf5_outputs(const std::string& path) {
  const InputFile file = hdf5::open_file(path);
  const Session session(file.shown);
  const TextPairs root = attributes_of(file, "/");
  const StoredOutput of_file{.attributes = root};
  if (of_file.attribute("format") != "qrtool") return {};
  std::vector<StoredOutput> outputs;
  for (const std::string& source : hdf5::read_source_datasets(file)) {
    const std::string report = hdf5::report_of(source);
    StoredOutput output{.dataset = source,
                        .attributes = attributes_of(file, report),
                        .report = read_report_group(file, report)};
    for (const auto& pair : root)
      if (output.attribute(pair.first).empty()) output.attributes.push_back(pair);
    outputs.push_back(std::move(output));
  }
  if (outputs.empty())
    outputs.push_back({.attributes = root, .report = read_report_group(file, "/report")});
  return outputs;
}

}  // namespace qrtool
