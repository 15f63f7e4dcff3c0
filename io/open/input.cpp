// SPDX-License-Identifier: Apache-2.0
// input.cpp: asks the format of an input, and takes a part where the format cannot.
#include "io/open/input.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/open/formats.hpp"
#include "io/read/column_reader.hpp"
#include "io/read/complex_hint.hpp"
#include "io/read/selected_reader.hpp"
#include "io/read/selection.hpp"

namespace qrtool {
namespace {

/// Refuses a `spec` with options that inputs of this format do not have. Errors: UsageError.
void refuse_choices(const Format& format, const InputSpec& spec) {
  if (!spec.dataset.empty() && !format.has_datasets) {
    throw UsageError(
        fmt::format("{}: a {} file has no datasets to choose from", escape(spec.path), format.name),
        fmt::format("a part of it is for example '{}:[0:100]'", escape(spec.path)));
  }
  if (spec.order == Order::column && !format.own_order.empty()) {
    throw UsageError(
        fmt::format("{}: --order column is for HDF5; {}", escape(spec.path), format.own_order));
  }
  if (spec.raw_values && !format.own_order.empty()) refuse_raw_values(spec.path);
  if (!format.takes_csv_options) refuse_csv_options(spec.csv, escape(spec.path));
}

void refuse_complex(const Reader& reader) {
  const Source& source = reader.source();
  if (!is_complex(source.type)) return;
  const std::string dataset = source.dataset.empty() ? "" : ":" + escape(source.dataset);
  throw InputError(fmt::format("{}{}: is {}; only real numbers are taken here", escape(source.file),
                               dataset, source.stored_type),
                   complex_hint);
}

}  // namespace

std::unique_ptr<Reader> open_input(const InputSpec& spec) {
  const Location location = split_location(spec.path);
  if (!location.dataset.empty() && !spec.dataset.empty()) {
    throw UsageError(
        fmt::format("{}: a dataset is named here and by --dataset as well", escape(spec.path)));
  }
  InputSpec file = spec;
  file.path = location.file;
  if (spec.dataset.empty()) file.dataset = location.dataset;
  const Format& format = format_of_input(file.path);
  Selection selection;
  if (!format.selects) {
    auto [path, part] = split_selection(file.dataset);
    file.dataset = std::move(path);
    selection = std::move(part);
  }
  refuse_choices(format, file);
  std::unique_ptr<Reader> reader = format.open_input(file);
  if (!spec.takes_complex) refuse_complex(*reader);
  reader = select(std::move(reader), selection, spec.takes_vectors);
  if (!spec.has_ones && !spec.skips_missing) return reader;
  return read_completed(std::move(reader), spec.has_ones, spec.skips_missing);
}

std::unique_ptr<Reader> open_array(const InputSpec& spec) {
  InputSpec array = spec;
  array.takes_vectors = true;
  return open_input(array);
}

void refuse_raw_values(const std::string& path) {
  throw UsageError(fmt::format("{}: --raw-values is for HDF5 and netCDF, whose attributes may "
                               "change what numbers mean",
                               escape(path)),
                   "leave --raw-values away");
}

bool takes_csv_options(const std::string& path) {
  return format_of_input(split_location(path).file).takes_csv_options;
}

bool takes_order(const std::string& path) {
  if (path == standard_input) return format_of_input("-").own_order.empty();
  return format_of_input(split_location(path).file).own_order.empty();
}

}  // namespace qrtool
