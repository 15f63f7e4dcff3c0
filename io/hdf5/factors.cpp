// SPDX-License-Identifier: Apache-2.0
// factors.cpp: opens stored factors, and reads what is recorded about them.
#include "io/hdf5/factors.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/hdf5/datasets/attributes.hpp"
#include "io/hdf5/datasets/recorded.hpp"
#include "io/hdf5/structure/watch.hpp"
#include "io/hdf5/values/dataset_reader.hpp"
#include "io/hdf5/values/storage.hpp"
#include "io/report/factors_of_mode.hpp"

namespace qrtool {
namespace {

using hdf5::Dataset;
using hdf5::InputFile;
using hdf5::Session;

/// The place of factors in a file, and the way to read them.
struct FactorsPlace {
  std::string name;  // of one of several datasets; empty: the file holds factors of one
  Order order = Order::row;
  int threads = 1;
};

std::unique_ptr<Reader> open_factor(const std::shared_ptr<InputFile>& file, const char* upper,
                                    const char* lower, const FactorsPlace& place) {
  const bool is_vector = std::string_view(upper) == "/tau" || std::string_view(upper) == "/P";
  const auto vector = is_vector ? hdf5::VectorAs::row : hdf5::VectorAs::no;
  Order order = place.order;
  for (const char* group : {upper, lower}) {
    const std::string path = place.name.empty() ? group : fmt::format("{}/{}", group, place.name);
    Dataset dataset = hdf5::open_dataset(*file, path);
    if (dataset.is_other) {
      throw InputError(fmt::format("{}: {} is no dataset", file->shown, escape(path)));
    }
    if (!dataset.handle) continue;
    if (dataset.problem.empty() && dataset.dims.size() < (is_vector ? 1 : 2)) {
      dataset.problem =
          fmt::format("has rank {} ({})", dataset.dims.size(), hdf5::shape_text(dataset.dims));
    }
    hdf5::require_readable(*file, dataset);
    const Order stated = hdf5::stated_order(*file, dataset).order;
    if (stated != Order::automatic) order = stated;
    if (order == Order::automatic) order = Order::row;
    return hdf5::read_dataset(
        file, std::move(dataset),
        hdf5::DatasetPart{
            .order = order, .stated = order, .vector = vector, .threads = place.threads});
  }
  return nullptr;
}

/// Returns the tries of a report; none if they are not recorded.
std::vector<std::uint8_t> read_tries(const InputFile& file, const std::string& report) {
  const Dataset dataset = hdf5::open_dataset(file, report + "/tries");
  if (!dataset.handle) return {};
  hdf5::require_readable(file, dataset);
  std::size_t count = 1;
  for (const hsize_t extent : dataset.dims) count *= extent;
  if (count == 0) return {};
  const std::vector<hsize_t> from_first(dataset.dims.size(), 0);
  hdf5::Storage storage(file, dataset, /*threads=*/1);
  storage.require_possible_size(from_first, dataset.dims);
  storage.require_chunks(from_first, dataset.dims);
  std::vector<std::uint8_t> tries(count);
  const hdf5::NumbersRead numbers;
  if (H5Dread(dataset.handle, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, tries.data()) < 0)
    throw InputError(fmt::format("{}: dataset {} is damaged ({})", file.shown, dataset.shown,
                                 escape(hdf5::innermost_error(hdf5::take_error()))));
  return tries;
}

}  // namespace

std::string find_hdf5_solutions(const std::string& path) {
  const InputFile file = hdf5::open_file(path);
  const Session session(file.shown);
  for (const char* name : {"/X", "/x"})
    if (hdf5::open_dataset(file, name).handle) return name;
  return "";
}

std::vector<std::string> read_hdf5_attributes(const std::string& path,
                                              const std::vector<const char*>& names) {
  const InputFile file = hdf5::open_file(path);
  const Session session(file.shown);
  std::vector<std::string> texts(names.size());
  if (!hdf5::read_recorded(file, "/").by_qrtool) return texts;
  for (std::size_t i = 0; i < names.size(); ++i)
    texts[i] = hdf5::string_attribute(file, file.handle, names[i]);
  return texts;
}

RecordedInput read_hdf5_recorded_input(const std::string& path) {
  return read_hdf5_recorded_input_of(path, "");
}

RecordedInput read_hdf5_recorded_input_of(const std::string& path, const std::string& source) {
  const InputFile file = hdf5::open_file(path);
  const Session session(file.shown);
  const std::string group = source.empty() ? "/" : hdf5::report_of(source);
  hdf5::Recorded recorded = hdf5::read_recorded(file, group);
  return {.file = recorded.source_file,
          .dataset = recorded.source_dataset,
          .order = recorded.order,
          .details = std::move(recorded.details)};
}

std::vector<std::string> read_hdf5_source_datasets(const std::string& path) {
  const InputFile file = hdf5::open_file(path);
  const Session session(file.shown);
  return hdf5::read_source_datasets(file);
}

StoredFactors open_hdf5_factors(const std::string& path, Order order, int threads) {
  return open_hdf5_factors_of(path, "", order, threads);
}

StoredFactors open_hdf5_factors_of(const std::string& path, const std::string& source, Order order,
                                   int threads) {
  const auto file = std::make_shared<InputFile>(hdf5::open_file(path));
  const Session session(file->shown);
  const std::string report = hdf5::report_of(source);
  const hdf5::Recorded recorded = hdf5::read_recorded(*file, source.empty() ? "/" : report);
  const FactorsPlace place{
      .name = name_in_output(source),
      .order = source.empty() || recorded.order == Order::automatic ? order : recorded.order,
      .threads = threads};
  StoredFactors factors;
  factors.file = source.empty() ? path : fmt::format("{}:{}", path, source);
  factors.by_qrtool = recorded.by_qrtool;
  factors.is_mixed = recorded.is_mixed;
  factors.q = open_factor(file, "/Q", "/q", place);
  factors.r = open_factor(file, "/R", "/r", place);
  factors.p = open_factor(file, "/P", "/p", place);
  factors.v = open_factor(file, "/V", "/v", place);
  factors.tau = open_factor(file, "/tau", "/Tau", place);
  if (factors.by_qrtool) {
    require_factors_of_mode(file->shown, {recorded.mode, recorded.is_pivoted}, factors);
    factors.tries = read_tries(*file, report);
  }
  return factors;
}

}  // namespace qrtool
