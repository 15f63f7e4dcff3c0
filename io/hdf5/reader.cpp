// SPDX-License-Identifier: Apache-2.0
// reader.cpp: opens the dataset that is meant, or the selected part of it.
#include "io/hdf5/reader.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/text.hpp"
#include "io/hdf5/datasets/attributes.hpp"
#include "io/hdf5/datasets/recorded.hpp"
#include "io/hdf5/datasets/search.hpp"
#include "io/hdf5/values/dataset_reader.hpp"
#include "io/hdf5/values/dimension_scales.hpp"
#include "io/read/selected_reader.hpp"
#include "io/read/selection.hpp"
#include "io/source/time_units.hpp"

namespace qrtool {
namespace {

using hdf5::Dataset;
using hdf5::DatasetPart;
using hdf5::InputFile;
using hdf5::Session;
using hdf5::VectorAs;

/// If a dataset has a name with the brackets of a selection, the whole dataset is meant.
SelectedPath split_unless_named(const InputFile& file, const std::string& text) {
  if (!may_select(text)) return {text, {}};
  const std::string absolute = text.starts_with('/') ? text : "/" + text;
  if (hdf5::open_dataset(file, absolute).handle) return {text, {}};
  return split_selection(text);
}

/// Returns the ranges of every dimension from its first to its last index, without steps.
std::vector<Range> without_steps(std::vector<Range> ranges) {
  for (Range& range : ranges) {
    if (range.count > 0) range.count = (range.count - 1) * range.step + 1;
    range.step = 1;
  }
  return ranges;
}

/// Returns the ranges that choose the steps among the indices that without_steps() keeps, in the
/// order of Source.
std::vector<Range> steps_of(const std::vector<Range>& ranges, Order order) {
  std::vector<Range> steps;
  for (const Range& range : ranges) {
    if (!range.is_dropped) steps.push_back({.count = range.count, .step = range.step});
  }
  if (order == Order::column) std::swap(steps.back(), steps[steps.size() - 2]);
  return steps;
}

/// Returns the dimensions that the ranges keep, with the selected coordinates. They have the order
/// of Source, for which the last two are swapped if `is_transposed`.
std::vector<Dimension> selected_dimensions(std::vector<Dimension> dimensions,
                                           const std::vector<Range>& ranges, bool is_transposed) {
  if (dimensions.empty()) return {};
  std::vector<Dimension> selected;
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    const Range& range = ranges[d];
    if (range.is_dropped) continue;
    Dimension& dimension = selected.emplace_back(std::move(dimensions[d]));
    dimension.extent = range.count;
    if (dimension.coordinates.empty()) continue;
    std::vector<double> chosen;
    for (index_t i = 0; i < range.count; ++i)
      chosen.push_back(
          dimension.coordinates[static_cast<std::size_t>(range.first + i * range.step)]);
    dimension.coordinates = std::move(chosen);
  }
  if (is_transposed) std::swap(selected.back(), selected[selected.size() - 2]);
  return selected;
}

}  // namespace

std::unique_ptr<Reader> open_hdf5_input(const InputSpec& spec) {
  if (spec.takes_vectors) return open_hdf5_array(spec);
  const auto file = std::make_shared<InputFile>(hdf5::open_file(spec.path));
  const Session session(file->shown);
  const SelectedPath named = split_unless_named(*file, spec.dataset);
  Dataset dataset = hdf5::find_matrices(*file, named.path);
  hdf5::OrderEvidence evidence{.order = spec.order};
  if (spec.order == Order::automatic) evidence = hdf5::stated_order(*file, dataset);
  const bool is_stated = evidence.order != Order::automatic && !spec.order_is_guess;
  const Order order = evidence.order == Order::automatic ? Order::row : evidence.order;
  const std::string& text = named.selection.text;
  const std::vector<index_t> dims(dataset.dims.begin(), dataset.dims.end());
  const std::vector<Range> ranges = resolve(
      named.selection, dims, fmt::format("{}:{}{}", file->shown, dataset.shown, escape(text)));
  std::vector<Dimension> dimensions =
      selected_dimensions(hdf5::read_dimensions(*file, dataset), ranges, order == Order::column);
  auto reader = hdf5::read_dataset(file, std::move(dataset),
                                   DatasetPart{.order = order,
                                               .stated = order,
                                               .order_is_stated = is_stated,
                                               .order_reason = evidence.reason,
                                               .raw_values = spec.raw_values,
                                               .remainders = spec.remainders,
                                               .dimensions = std::move(dimensions),
                                               .ranges = without_steps(ranges),
                                               .selection = text,
                                               .threads = spec.threads,
                                               .memory_bytes = spec.memory_bytes});
  // HDF5 is several times as slow with steps as without.
  return take_steps(std::move(reader), steps_of(ranges, order));
}

std::unique_ptr<Reader> open_hdf5_array(const InputSpec& spec) {
  const auto file = std::make_shared<InputFile>(hdf5::open_file(spec.path));
  const Session session(file->shown);
  const SelectedPath named = split_unless_named(*file, spec.dataset);
  Dataset dataset = hdf5::find_array(*file, named.path);
  const std::string shown =
      fmt::format("{}:{}{}", file->shown, dataset.shown, escape(named.selection.text));
  const std::vector<index_t> dims(dataset.dims.begin(), dataset.dims.end());
  const std::vector<Range> ranges = resolve(named.selection, dims, shown, /*matrix_rank=*/0);
  std::vector<Range> steps = steps_of(ranges, Order::row);
  const bool is_vector = steps.size() == 1;
  if (is_vector) steps.push_back({.count = 1});
  const hdf5::OrderEvidence evidence = hdf5::stated_order(*file, dataset);
  std::vector<Dimension> dimensions =
      selected_dimensions(hdf5::read_dimensions(*file, dataset), ranges, /*is_transposed=*/false);
  TextPairs details;
  if (is_vector && !spec.raw_values)
    details = time_details(hdf5::string_attribute(*file, dataset.handle, "units"),
                           hdf5::string_attribute(*file, dataset.handle, "calendar"));
  auto reader =
      hdf5::read_dataset(file, std::move(dataset),
                         DatasetPart{.stated = evidence.order,
                                     .order_reason = evidence.reason,
                                     .raw_values = spec.raw_values,
                                     .remainders = spec.remainders,
                                     .dimensions = std::move(dimensions),
                                     .vector = is_vector ? VectorAs::column : VectorAs::no,
                                     .details = std::move(details),
                                     .ranges = without_steps(ranges),
                                     .selection = named.selection.text,
                                     .threads = spec.threads,
                                     .memory_bytes = spec.memory_bytes});
  return take_steps(std::move(reader), steps);
}

}  // namespace qrtool
