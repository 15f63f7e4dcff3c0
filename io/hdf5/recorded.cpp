// SPDX-License-Identifier: Apache-2.0
// recorded.cpp: reads each attribute and compares it with the values that this tool writes.
#include "io/hdf5/recorded.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool::hdf5 {
namespace {

bool has_attribute(const InputFile& file, const char* name) {
  return H5Aexists(file.handle, name) > 0;
}

/// The text of an attribute, which must be one of `known`; empty where there is no such attribute.
std::string known_value(const InputFile& file, const char* name,
                        std::initializer_list<std::string_view> known) {
  std::string value = string_attribute(file, file.handle, name);
  if (std::find(known.begin(), known.end(), value) != known.end()) return value;
  if (value.empty() && !has_attribute(file, name)) return value;
  throw InputError(fmt::format("{}: its attribute {} is '{}', not one of {}", file.shown, name,
                               escape(value), fmt::join(known, ", ")),
                   "the file is damaged, or a newer version of qrtool wrote it");
}

}  // namespace

Recorded read_recorded(const InputFile& file) {
  // Only this tool writes an attribute with this name.
  const bool is_ours = has_attribute(file, "qrtool_version");
  if (!is_ours && string_attribute(file, file.handle, "format") != "qrtool") return {};
  known_value(file, "format", {"qrtool"});
  known_value(file, "format_version", {"1.0", "1.1"});
  known_value(file, "sign", {"positive", "lapack"});
  Recorded recorded{.by_qrtool = true,
                    .source_file = string_attribute(file, file.handle, "source_file"),
                    .source_dataset = string_attribute(file, file.handle, "source_dataset"),
                    .mode = known_value(file, "mode", {"reduced", "complete", "r", "raw"})};
  const std::string order = known_value(file, "order", {"row", "column"});
  if (!order.empty()) recorded.order = order == "row" ? Order::row : Order::column;
  recorded.is_mixed = known_value(file, "precision", {"single", "double", "mixed"}) == "mixed";
  return recorded;
}

}  // namespace qrtool::hdf5
