// SPDX-License-Identifier: Apache-2.0
// recorded.cpp: reads each attribute and compares it with the values that this tool writes.
#include "io/hdf5/datasets/recorded.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/hdf5/datasets/attributes.hpp"
#include "io/hdf5/structure/heap_texts.hpp"
#include "io/read/stored_factors.hpp"
#include "io/source/variable_record.hpp"

namespace qrtool::hdf5 {
namespace {

/// Returns the text of an attribute, which must be one of `known`, or an empty text if there is no
/// such attribute.
std::string known_value(const InputFile& file, hid_t object, const char* name,
                        std::initializer_list<std::string_view> known) {
  std::string value = string_attribute(file, object, name);
  if (std::find(known.begin(), known.end(), value) != known.end()) return value;
  if (value.empty() && !has_attribute(file, object, name)) return value;
  throw InputError(fmt::format("{}: its attribute {} is '{}', not one of {}", file.shown, name,
                               escape(value), fmt::join(known, ", ")),
                   "the file is damaged, or a newer version of qrtool wrote it");
}

}  // namespace

Recorded read_recorded(const InputFile& file, const std::string& group) {
  const Handle object(H5Oopen(file.handle, group.c_str(), H5P_DEFAULT), H5Oclose);
  if (!object) {
    throw InputError(fmt::format("{}: {} cannot be opened ({})", file.shown, escape(group),
                                 escape(innermost_error(take_error()))));
  }
  // Only this tool writes an attribute with this name.
  const bool is_ours = has_attribute(file, object, "qrtool_version");
  if (!is_ours && string_attribute(file, object, "format") != "qrtool") return {};
  known_value(file, object, "format", {"qrtool"});
  known_value(file, object, "format_version", {"1.0", "1.1", "1.2"});
  known_value(file, object, "sign", {"positive", "lapack"});
  Recorded recorded{.by_qrtool = true,
                    .source_file = string_attribute(file, object, "source_file"),
                    .source_dataset = string_attribute(file, object, "source_dataset"),
                    .mode = known_value(file, object, "mode", {"reduced", "complete", "r", "raw"})};
  const std::string order = known_value(file, object, "order", {"row", "column"});
  if (!order.empty()) recorded.order = order == "row" ? Order::row : Order::column;
  recorded.is_mixed =
      known_value(file, object, "precision", {"single", "double", "mixed"}) == "mixed";
  recorded.is_pivoted = known_value(file, object, "pivot", {"yes"}) == "yes";
  for (const char* name : names_of_reading()) {
    if (std::string word = string_attribute(file, object, name); !word.empty())
      recorded.details.emplace_back(name, std::move(word));
  }
  return recorded;
}

std::vector<std::string> read_source_datasets(const InputFile& file) {
  constexpr hssize_t most = 1 << 20;
  constexpr const char* name = "source_datasets";
  if (!has_attribute(file, file.handle, name) || !read_recorded(file).by_qrtool) return {};
  const Attribute attribute(file, file.handle, name);
  const hssize_t count = H5Sget_simple_extent_npoints(attribute.space);
  if (count < 1 || count > most || H5Tis_variable_str(attribute.type) <= 0) {
    take_error();
    throw InputError(
        fmt::format("{}: damaged HDF5 file (its attribute {} cannot be read)", file.shown, name));
  }
  return heap_texts(file, attribute.handle, static_cast<std::size_t>(count));
}

std::string report_of(const std::string& source) {
  const std::string name = name_in_output(source);
  return name.empty() ? "/report" : "/report/" + name;
}

OrderEvidence stated_order(const InputFile& file, const Dataset& dataset) {
  const Order recorded = read_recorded(file).order;
  // Solutions have the order of their right sides, which may differ from the order of A.
  const std::string of_sides = string_attribute(file, file.handle, "right_side_order");
  const bool has_solutions = recorded != Order::automatic && !of_sides.empty();
  if (has_solutions)
    return {of_sides == "column" ? Order::column : Order::row, "as qrtool recorded"};
  if (recorded != Order::automatic) return {recorded, "as qrtool recorded"};
  // `qrtool generate` writes rows.
  if (string_attribute(file, file.handle, "generator").starts_with("qrtool"))
    return {Order::row, "qrtool generate wrote it"};
  return dataset.order;
}

}  // namespace qrtool::hdf5
