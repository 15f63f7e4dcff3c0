// SPDX-License-Identifier: Apache-2.0
// reader.cpp: opens inputs and stored factors through their formats.
#include "io/reader.hpp"
#include "io/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/complex_hint.hpp"
#include "io/csv/coefficients.hpp"
#include "io/factor_files.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/format.hpp"
#include "io/hdf5/factors.hpp"
#include "io/hdf5/format.hpp"
#include "io/open/solution_set.hpp"
#include "io/selected_reader.hpp"
#include "io/selection.hpp"
#include "io/variable_record.hpp"

namespace qrtool {
namespace {

constexpr index_t usual_piece_bytes = index_t{1} << 20;

/// Refuses a `spec` that chooses what an input of this format does not offer. Errors: UsageError.
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

/// The selection at the end of a recorded dataset, as text; empty where it has none.
std::string selection_of(const std::string& recorded) {
  try {
    return split_selection(recorded).selection.text;
  } catch (const UsageError&) {
    return {};  // a name with brackets
  }
}

std::string shape_of(const Source& source) {
  return format_shape(source.leading, source.m, source.n);
}

[[noreturn]] void throw_contradiction(const std::string& file, const char* first, const Source& a,
                                      const char* second, const Source& b,
                                      const std::string& hint = {}) {
  throw InputError(fmt::format("{}: {} ({}) and {} ({}) do not belong together", escape(file),
                               first, shape_of(a), second, shape_of(b)),
                   hint);
}

/// Keeps Q and R, or only R, or V and tau, and checks that their shapes agree.
void require_consistent(StoredFactors& factors) {
  const std::string file = escape(factors.file);
  if (factors.r) {
    factors.v.reset();
    factors.tau.reset();
    const Source& r = factors.r->source();
    if (factors.p) {
      const Source& p = factors.p->source();
      if (p.leading != r.leading || p.m != 1 || p.n != r.n)
        throw_contradiction(file, "P", p, "R", r);
    }
    if (!factors.q) return;
    const Source& q = factors.q->source();
    if (q.leading == r.leading && q.n == r.m) return;
    const bool are_turned =
        q.leading == r.leading && q.m == r.n && format_of_output(factors.file).own_order.empty();
    throw_contradiction(file, "Q", q, "R", r,
                        are_turned ? fmt::format("they belong together with --order {}",
                                                 q.order == Order::column ? "row" : "column")
                                   : "");
  }
  factors.p.reset();
  if (factors.q) throw InputError(fmt::format("{}: holds Q, but no R", file));
  if (!factors.v) {
    throw InputError(fmt::format("{}: holds neither R nor V and tau", file),
                     "the datasets must be named /Q and /R (or /R alone, or /V and /tau)");
  }
  if (!factors.tau) throw InputError(fmt::format("{}: holds V, but no tau", file));
  const Source &v = factors.v->source(), &tau = factors.tau->source();
  if (v.leading != tau.leading || tau.m != 1 || tau.n != std::min(v.m, v.n)) {
    throw_contradiction(file, "V", v, "tau", tau);
  }
}

}  // namespace

index_t Reader::most_piece_rows() const {
  const index_t row_bytes = source_.n * static_cast<index_t>(size_of(source_.type));
  return std::max<index_t>(usual_piece_bytes / std::max<index_t>(row_bytes, 1), 1);
}

index_t Reader::piece_end(index_t, index_t first_row) const {
  return std::min(first_row + most_piece_rows(), source_.m);
}

std::string_view name_of(Order order) {
  switch (order) {
    case Order::row:
      return "row";
    case Order::column:
      return "column";
    default:
      return "auto";
  }
}

bool has_doubtful_order(const Source& source) {
  return !source.order_is_stated && source.array_dims.empty() && source.m <= source.n &&
         source.n > 1 && source.count() > 0;
}

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
  return select(std::move(reader), selection, spec.takes_vectors);
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

std::vector<index_t> dims_of(const Source& source) {
  if (!source.array_dims.empty()) return source.array_dims;
  std::vector<index_t> dims = source.leading;
  dims.insert(dims.end(), {source.m, source.n});
  return dims;
}

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
  // A set has no file of its own name.
  const bool is_file = std::filesystem::exists(location.file);
  if (!is_file || !location.dataset.empty() || !has_datasets(location.file)) return nullptr;
  for (const Entry& entry : list_entries(location.file))
    if (name_in_output(entry.name) == name) {
      spec.dataset = entry.name;
      return open_array(spec);
    }
  return nullptr;
}

std::vector<std::string> recorded_attributes(const std::string& path,
                                             const std::vector<const char*>& names) {
  const std::string file = split_location(path).file;
  std::error_code error;
  const bool is_file = std::filesystem::exists(file, error);
  return (is_file ? format_of_input(file) : format_of_output(file))
      .recorded_attributes(file, names);
}

std::string name_in_output(const std::string& source) {
  return source.substr(std::min(source.find_first_not_of('/'), source.size()));
}

std::vector<std::string> recorded_datasets(const std::string& factors) {
  if (&format_of_output(factors) != &hdf5_format) return {};
  try {
    return read_hdf5_source_datasets(factors);
  } catch (const InputError&) {
    return {};
  }
}

RecordedInput read_recorded_input(const std::string& factors, const std::string& source) {
  try {
    if (!source.empty()) return read_hdf5_recorded_input_of(factors, source);
    return format_of_output(factors).recorded_input(factors);
  } catch (const InputError&) {
    return {};
  }
}

std::unique_ptr<Reader> open_recorded_input(InputSpec spec, const RecordedInput& recorded) {
  const Location location = split_location(spec.path);
  const Format& format = format_of_input(location.file);
  if (format.own_order.empty()) {
    const bool is_recorded = spec.order == Order::automatic && recorded.order != Order::automatic;
    if (is_recorded) spec.order = recorded.order;
    spec.order_is_guess = is_recorded && !word_of(recorded.details, order_guessed_name).empty();
    spec.raw_values = spec.raw_values || !word_of(recorded.details, raw_values_name).empty();
  }
  if (format.takes_csv_options) spec.csv = with_recorded(spec.csv, recorded.details);
  const std::string& named = spec.dataset.empty() ? location.dataset : spec.dataset;
  spec.path = location.file;
  spec.dataset = named;
  if (recorded.dataset.empty()) return open_input(spec);
  const std::string part = selection_of(recorded.dataset);
  // The dataset may have another name in this file, but the same part of it is meant.
  const std::string whole = recorded.dataset.substr(0, recorded.dataset.size() - part.size());
  if (!named.empty()) {
    if (named == whole) spec.dataset = recorded.dataset;
    return open_input(spec);
  }
  if (format.has_datasets) {
    InputSpec same = spec;
    same.dataset = recorded.dataset;
    try {
      return open_input(same);
    } catch (const InputError&) {
    }
  }
  spec.dataset = part;
  return open_input(spec);
}

StoredFactors open_factors(const std::string& path, Order order, int threads,
                           const std::string& source) {
  StoredFactors factors = source.empty() ? format_of_output(path).open_factors(path, order, threads)
                                         : open_hdf5_factors_of(path, source, order, threads);
  require_consistent(factors);
  return factors;
}

}  // namespace qrtool
